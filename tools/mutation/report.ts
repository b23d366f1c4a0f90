// Formats the results as docs/dev/mutation.md.
import { type Found, type Mutant, nameOf, type Status } from './mutants.ts';
import type { Survivor } from './survivors.ts';

export function report(found: readonly Found[], left: readonly Mutant[], survivors: readonly Survivor[]): string {
  const reasons = new Map(survivors.map(survivor => [nameOf(survivor), survivor]));
  const files = [...new Set([...found.map(({ mutant }) => mutant), ...left].map(({ file }) => file))].sort();
  const row = (name: string, isOf: (mutant: Mutant) => boolean): string => {
    const of = found.filter(({ mutant }) => isOf(mutant));
    const count = (wanted: Status): number => of.filter(({ status }) => status === wanted).length;
    const equivalent = of.filter(({ mutant }) => reasons.get(nameOf(mutant))?.kind === 'equivalent').length;
    const dead = count('killed') + count('timeout');
    const asked = of.length - equivalent;
    const score = asked === 0 ? '' : `${(Math.floor((dead / asked) * 1000) / 10).toFixed(1)} %`;
    const cells = [
      of.length,
      left.filter(isOf).length,
      count('killed'),
      count('timeout'),
      count('survived') + count('unreached'),
      equivalent,
      score,
    ];
    return `| ${[name, ...cells].join(' | ')} |`;
  };
  const alive = found.filter(({ status }) => status === 'survived' || status === 'unreached');
  return `<!-- Made by \`npm run mutate\`; not edited by hand. -->

# Mutation testing

Each mutant is one small change to the source: a condition turned round, a boundary moved, a text emptied, a block removed. A mutant
is killed where a test fails with it. The operators are those of Stryker's instrumenter. The runner is our own: Stryker 10 needs Node 22, and
the mocha runner of Stryker 9 needs mocha 11, while this project runs on Node 20 with mocha 12. In \`tools/mutation/\`, all mutants are compiled once, and each run switches one of them on.

- \`npm run mutate\` asks for every mutant; \`-- --only src/token --minutes 3\` takes a part, and the next run goes on from there.
- A file is asked with the tests that mirror its folder, not with the whole suite: what only a test through Envoy would notice counts as alive here.
- Tests that killed a mutant before run first, then the fastest. The first failure ends a mutant's run.
- The inputs of property tests have a fixed seed in this run. A test that takes ten times as long as without the mutant, and more than
  ten seconds, counts as a timeout, and so do tests that take three times as long together, and more than 45 seconds.
- Score: killed and timed out, of all that were judged but the equivalent ones, rounded down. A mutant counts as killed from the run
  that killed it until its source file changes, with \`--again survivors\` also where tests were changed since. \`tools/mutation/survivors.json\` lists every survivor with its
  reason; an entry that is killed or gone, and a survivor without an entry, end the run with an error.

| file | judged | not judged yet | killed | timed out | alive | of these equivalent | score |
| --- | --- | --- | --- | --- | --- | --- | --- |
${files.map(file => row(`\`${file}\``, mutant => mutant.file === file)).join('\n')}
${row('all', () => true)}

## Alive

| where | change | kind | reason |
| --- | --- | --- | --- |
${alive.map(({ mutant }) => aliveRow(mutant, reasons.get(nameOf(mutant)))).join('\n')}
`;
}

function aliveRow(mutant: Mutant, survivor: Survivor | undefined): string {
  const code = (text: string): string => {
    const line = text.replace(/\s+/g, ' ');
    return `\`${(line.length > 70 ? `${line.slice(0, 70)}…` : line).replaceAll('|', '\\|').replaceAll('`', '´')}\``;
  };
  const change = `${code(mutant.original)} → ${code(mutant.replacement)}`;
  return `| \`${mutant.file}\` | ${change} | ${survivor?.kind ?? 'not listed'} | ${survivor?.reason ?? ''} |`;
}
