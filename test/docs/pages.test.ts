// The pages: their links work, what they name exists, and the failure modes and the threat model name existing tests.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { expect } from 'chai';
import { allPages } from '../../lab/document.ts';
import { parseExpressions, unknownMetrics } from '../deploy/monitoring/expressions.ts';

const project = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, project), 'utf8');
const pages = allPages();
const withoutCode = (text: string): string => text.replaceAll(/^ *```.*?^ *```$/gms, '').replaceAll(/`[^`\n]*`/g, '');
const links = pages.flatMap(({ path: from, text }) =>
  Array.from(withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link)
    .filter(link => !/^https?:/.test(link))
    .map(link => {
      const [file = '', anchor] = link.split('#');
      return { from, link, path: file === '' ? from : posix.normalize(posix.join(posix.dirname(from), file)), anchor };
    }),
);

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(text: string): readonly string[] {
  const headings = text.replaceAll(/^ *```.*?^ *```$/gms, '').matchAll(/^#+ (.+)$/gm);
  return Array.from(headings, ([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

describe('the documents', () => {
  it('have links that lead to a file, and to a heading where they have an anchor', () => {
    expect(links).to.have.length.of.at.least(200);
    const dead = links.filter(
      ({ path, anchor }) =>
        !existsSync(new URL(path, project)) ||
        (anchor !== undefined && path.endsWith('.md') && !anchorsOf(read(path)).includes(anchor)),
    );
    expect(dead.map(({ from, link }) => `${from}: ${link}`)).to.deep.equal([]);
  });

  it('can all be reached from docs/README.md', () => {
    const reached = new Set(['docs/README.md']);
    for (const page of reached) for (const { from, path } of links) if (from === page) reached.add(path);
    const lost = pages.map(({ path }) => path).filter(path => path.startsWith('docs/') && !reached.has(path));
    expect(lost).to.deep.equal([]);
  });

  it('name only scripts of package.json', () => {
    const { scripts } = JSON.parse(read('package.json'));
    const named = pages
      .filter(({ path }) => path !== 'CHANGELOG.md')
      .flatMap(({ text }) => Array.from(text.matchAll(/npm run (?:--silent )?([\w:-]+)/g), ([, name = '']) => name));
    expect(named.filter(name => !Object.hasOwn(scripts, name))).to.deep.equal([]);
  });

  it('have valid PromQL with existing metrics', async () => {
    const blocks = pages.flatMap(page => page.blocks).filter(({ language }) => language === 'promql');
    expect(blocks).to.have.length.of.at.least(20);
    const expressions = blocks.map(({ text }) => text);
    const { good, output } = await parseExpressions(expressions);
    expect(good, output).to.equal(true);
    expect(await unknownMetrics(expressions)).to.deep.equal([]);
  });
});

describe('docs/failure-modes.md', () => {
  const table = read('docs/failure-modes.md').match(/^\| .*\|$/gm) ?? [];
  const rows = table.slice(1).map(line => line.slice(2, -2).split(' | '));

  it('has a table of four columns', () => {
    expect(rows).to.have.length.of.at.least(25);
    expect(rows.filter(cells => cells.length !== 4)).to.deep.equal([]);
  });

  for (const [what, , , proof = ''] of rows) {
    it(`names an existing test: ${what}`, () => {
      const [, file = '', title = ''] = /^`(test\/\S+\.test\.ts)`: (.+)$/.exec(proof) ?? [];
      const titles = read(file).match(/(?<=\b(?:it|describe)\(\s*(['"`])).*?(?=\1,)/g) ?? [];
      // A page may leave out what a title has around its fact; a word or a letter is no fact.
      expect(title, proof).to.match(/^[A-Z]-\d{3}$|\S+ \S+ \S+/);
      expect(
        titles.some(each => each.includes(title)),
        proof,
      ).to.equal(true);
    });
  }
});

describe('docs/threat-model.md', () => {
  it('has ids for every abuse case, and each is named by a test', () => {
    // A curve such as P-256 is no id.
    const id = /\b(?!P-(?:256|384|521)\b)[A-Z]-\d{3}\b/g;
    const [, abuse = ''] = read('docs/threat-model.md').split('## Abuse cases');
    const rows =
      abuse
        .split('## What is left')[0]
        ?.match(/^\| .*\|$/gm)
        ?.slice(1) ?? [];
    expect(rows).to.have.length.above(20);
    expect(rows.filter(row => !row.match(id))).to.deep.equal([]);
    const files = readdirSync(new URL('test/', project), { recursive: true, encoding: 'utf8' });
    const texts = files.filter(name => name.endsWith('.ts')).map(name => read(`test/${name}`));
    const named = new Set(texts.flatMap(text => text.match(id) ?? []));
    expect(rows.flatMap(row => row.match(id) ?? []).filter(each => !named.has(each))).to.deep.equal([]);
  });
});
