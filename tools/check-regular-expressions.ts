// The last step of `npm run check`: fails if a regular expression in src/ takes more than linear time, whatever bounds its input.
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { costProblem, findRegularExpressions } from './regular-expressions.ts';

const [folder = fileURLToPath(new URL('../src/', import.meta.url))] = process.argv.slice(2);
const problems: string[] = [];
/** By pattern and flags: equal expressions need one analysis. */
const analyses = new Map<string, Promise<string | undefined>>();

for (const file of (await readdir(folder, { recursive: true })).filter(name => name.endsWith('.ts')).toSorted()) {
  const { known, unknown } = findRegularExpressions(await readFile(`${folder}/${file}`, 'utf8'));
  for (const { line } of unknown) problems.push(`${file}:${line} is not known before it runs: write it as a literal`);
  for (const expression of known) {
    const text = `/${expression.pattern}/${expression.flags}`;
    const analysis = analyses.get(text) ?? costProblem(expression);
    analyses.set(text, analysis);
    const problem = await analysis;
    if (problem !== undefined) problems.push(`${file}:${expression.line} ${text} ${problem}`);
  }
}

for (const problem of problems) console.error(problem);
if (analyses.size === 0) console.error(`no regular expression in ${folder}`);
process.exitCode = problems.length === 0 && analyses.size > 0 ? 0 : 1;
