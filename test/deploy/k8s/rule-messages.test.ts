// Each message of a rule is named by a row: a rule that nothing turns red could be deleted unnoticed.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const rules = readdirSync(new URL('rules/', import.meta.url)).map(name => `rules/${name}`);

/** A message is the last of a pair, `[whether it holds, message]`, or what a list of findings is mapped to. */
const message = /(?:,|=>)\s*(?:'([^'\n]+ [^'\n]+)'|`([^`]+ [^`]+)`)(?: as const)?,?\s*[\])]/g;

describe('a rule of k8s/', () => {
  it('gives no message that no row of rule-mistakes.tsv or planted-mistakes.test.ts names', () => {
    const rows = read('rule-mistakes.tsv') + read('planted-mistakes.test.ts');
    const found = [...rules, 'pod-security.ts'].flatMap(name =>
      Array.from(read(name).matchAll(message), ([, plain, template]) => plain ?? template ?? ''),
    );
    // Addresses and options stand in pairs too.
    const messages = found.filter(each => !/^--|TCP\/443|the Internet/.test(each));
    expect(messages).to.have.length.above(120);
    const pattern = (text: string): RegExp =>
      new RegExp(
        `${text
          .split(/\$\{[^}]*\}/)
          .map(each => each.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
          .join('[^\\t\\n]*')}['\\n]`,
      );
    expect(messages.filter(each => !pattern(each).test(rows))).to.deep.equal([]);
  });
});
