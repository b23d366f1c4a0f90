// Every link between the pages leads to a file and a heading, and every page can be reached from the index.
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { expect } from 'chai';
import { allPages } from '../../lab/document.ts';

const project = new URL('../../', import.meta.url);
const withoutCode = (text: string): string => text.replaceAll(/^ *```.*?^ *```$/gms, '').replaceAll(/`[^`\n]*`/g, '');

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

interface Link {
  readonly from: string;
  readonly link: string;
  readonly path: string;
  readonly anchor: string | undefined;
}

const pages = allPages();
const links: readonly Link[] = pages.flatMap(({ path: from, text }) =>
  Array.from(withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link)
    .filter(link => !/^https?:/.test(link))
    .map(link => {
      const [file = '', anchor] = link.split('#');
      return { from, link, path: file === '' ? from : posix.normalize(posix.join(posix.dirname(from), file)), anchor };
    }),
);

describe('links in the documents', () => {
  it('lead to a file', () => {
    expect(links).to.have.length.of.at.least(200);
    expect(links.filter(({ path }) => !existsSync(new URL(path, project)))).to.deep.equal([]);
  });

  it('lead to a heading where they have an anchor', () => {
    const withAnchor = links.filter(({ anchor, path }) => anchor !== undefined && path.endsWith('.md'));
    expect(withAnchor).to.have.length.of.at.least(30);
    const dead = withAnchor.filter(
      ({ path, anchor = '' }) => !anchorsOf(readFileSync(new URL(path, project), 'utf8')).includes(anchor),
    );
    expect(dead.map(({ from, link }) => `${from}: ${link}`)).to.deep.equal([]);
  });

  it('lead from docs/README.md to every page under docs/', () => {
    const reached = new Set(['docs/README.md']);
    for (const page of reached) for (const { from, path } of links) if (from === page) reached.add(path);
    const lost = pages.map(({ path }) => path).filter(path => path.startsWith('docs/') && !reached.has(path));
    expect(lost).to.deep.equal([]);
  });
});
