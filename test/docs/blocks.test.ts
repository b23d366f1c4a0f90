// The fenced blocks of README and docs/. test/e2e/documented-commands.test.ts runs their commands.
import { expect } from 'chai';
import { allPages, blocksOf, commandsOf } from '../../lab/document.ts';
import { envoyVersions } from '../../lab/envoy.ts';
import { parseExpressions, unknownMetrics } from '../deploy/monitoring/expressions.ts';
import { standIns } from './stand-ins.ts';

const pages = allPages();

describe('blocks in the documents', () => {
  const blocks = pages.flatMap(({ path, blocks: own }) => own.map(block => ({ path, ...block })));

  it('are parsed with their language and line', () => {
    const text = 'a\n\n```sh\nb\n```\n\n1. c\n\n   ```console\n   $ d\n   e\n   ```\n\n```\n$ f\n```\n';
    expect(blocksOf(text).map(({ line, language }) => [line, language])).to.deep.equal([
      [3, 'sh'],
      [9, 'console'],
      [14, ''],
    ]);
    expect(blocksOf(text).map(commandsOf)).to.deep.equal(['b\n', 'd\n', 'f\n']);
  });

  it('have a language that a test handles', () => {
    // test/docs/middleware.test.ts runs what is in the languages of a service.
    const known = ['', 'sh', 'bash', 'console', 'yaml', 'json', 'js', 'text', 'promql', 'mermaid'];
    known.push('go', 'python', 'java', 'csharp');
    expect(blocks.filter(({ language }) => !known.includes(language))).to.deep.equal([]);
  });

  it('contain no command that no test runs', () => {
    const programs = [...Object.keys(standIns), 'promtool', 'git', 'npx'].join('|');
    // `npm run providers` runs the blocks in bash (test/docs/provider-pages.test.ts).
    const others = blocks.filter(block => commandsOf(block) === undefined && block.language !== 'bash');
    const hidden = others.filter(block => new RegExp(`^(?:${programs}) `, 'm').test(block.text));
    expect(hidden.map(({ path, line }) => `${path}:${line}`)).to.deep.equal([]);
  });

  // `logs deployment/…` reads one replica; with a selector kubectl prints only the last ten lines without --tail. `ask` is a single pod.
  it('read the whole log of every replica', () => {
    const found = pages.flatMap(({ path, text }) =>
      Array.from(text.matchAll(/kubectl [^|\n`]*\blogs [^|\n`]*/g), ([command]) => `${path}: ${command}`),
    );
    expect(found).to.have.length.of.at.least(20);
    expect(found.filter(each => !/ (?:-l \S+ .*--tail=|"\$pod" |logs pod\/ask )/.test(each))).to.deep.equal([]);
    expect(pages.filter(({ text }) => /exec deployment\//.test(text)).map(({ path }) => path)).to.deep.equal([]);
  });

  it('never block on a port-forward: it is the last command, or runs in the background and is stopped', () => {
    const blocking = blocks.filter(({ text }) => {
      const lines = text.trimEnd().split('\n');
      const last = lines.findLastIndex(line => /kubectl .*port-forward/.test(line));
      const isEnded = /& forward=\$!/.test(lines[last] ?? '') && /^ *kill "\$forward"/m.test(text);
      return last >= 0 && last < lines.length - 1 && !isEnded;
    });
    expect(blocking.map(({ path, line }) => `${path}:${line}`)).to.deep.equal([]);
  });

  // An instance that hangs accepts the connection and never answers.
  it('ask admin with a time limit', () => {
    const asked = pages.flatMap(({ path, text }) =>
      Array.from(text.matchAll(/\bfetch\("http:[^\n]*/g), ([command]) => `${path}: ${command}`),
    );
    expect(asked).to.have.length.of.at.least(5);
    expect(asked.filter(each => !each.includes('AbortSignal.timeout('))).to.deep.equal([]);
  });

  it('name exactly the versions of Envoy that the tests run', () => {
    const lists = pages
      .filter(({ path }) => path !== 'CHANGELOG.md')
      .flatMap(({ path, text }) =>
        Array.from(text.matchAll(/1\.36\.4(?:,| to| and)[\d., andto]*\d/g), ([list]) => ({ path, list })),
      );
    expect(lists).to.have.length.of.at.least(5);
    const wrong = lists.filter(({ list }) => list.split(/, | and /).join() !== envoyVersions.join());
    expect(wrong).to.deep.equal([]);
  });

  it('use every stand-in', () => {
    const all = blocks.map(block => commandsOf(block) ?? '').join('\n');
    const unused = Object.keys(standIns).filter(name => !new RegExp(`(?:^|[|&(] ?)${name} `, 'm').test(all));
    expect(unused).to.deep.equal([]);
  });

  it('contain valid PromQL with existing metrics', async () => {
    const expressions = blocks.filter(({ language }) => language === 'promql').map(({ text }) => text);
    expect(expressions).to.have.length.of.at.least(20);
    const { good, output } = await parseExpressions(expressions);
    expect(good, output).to.equal(true);
    expect(await unknownMetrics(expressions)).to.deep.equal([]);
  });
});
