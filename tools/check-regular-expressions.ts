// The last step of `npm run check`: fails if recheck finds a regular expression in src/ that takes more than linear time, whatever bounds its input.
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parse } from '@babel/parser';
import { check } from 'recheck';

type Node = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly loc: { readonly start: { readonly line: number } };
};

// The search for an attack must not depend on how busy the machine is: the other limits of recheck count steps.
const limits = { timeout: 60_000, randomSeed: 0, attackTimeout: null, incubationTimeout: null, seedingTimeout: null };
const source = fileURLToPath(new URL('../src/', import.meta.url));
/** By pattern and flags: equal expressions need one analysis. */
const analyses = new Map<string, Promise<string | undefined>>();
const problems: string[] = [];

for (const file of (await readdir(source, { recursive: true })).filter(name => name.endsWith('.ts')).toSorted()) {
  const { program } = parse(await readFile(source + file, 'utf8'), { sourceType: 'module', plugins: ['typescript'] });
  for (const node of nodesOf(program)) {
    const place = `${file}:${node.loc.start.line}`;
    const expression = expressionOf(node);
    if (expression === undefined) continue;
    const [pattern, flags] = expression;
    if (typeof pattern !== 'string' || typeof flags !== 'string') {
      problems.push(`${place} is not known before it runs: write it as a literal`);
      continue;
    }
    const text = `/${pattern}/${flags}`;
    const analysis = analyses.get(text) ?? costProblem(pattern, flags);
    analyses.set(text, analysis);
    const problem = await analysis;
    if (problem !== undefined) problems.push(`${place} ${text} ${problem}`);
  }
}
if (analyses.size === 0) problems.push(`no regular expression in ${source}`);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

function* nodesOf(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null || value instanceof RegExp) return;
  if ('type' in value && 'loc' in value) yield value as Node;
  for (const each of Object.values(value)) yield* nodesOf(each);
}

/** Pattern and flags of a literal, or of a call of `RegExp` with or without `new`; what is no plain text is undefined. */
function expressionOf(node: Node): readonly unknown[] | undefined {
  if (node.type === 'RegExpLiteral') return [node.pattern, node.flags];
  const { callee, arguments: given } = node as { callee?: Node & { property?: Node }; arguments?: readonly Node[] };
  if (callee?.name !== 'RegExp' && callee?.property?.name !== 'RegExp') return undefined;
  return [...(given ?? []).map(({ type, value }) => (type === 'StringLiteral' ? value : undefined)), ''];
}

/** Undefined if the time is linear in the length of the text. */
async function costProblem(pattern: string, flags: string): Promise<string | undefined> {
  const result = await check(pattern, flags, limits);
  if (result.status === 'safe') return undefined;
  if (result.status === 'unknown') return `not analysed: ${result.error.kind}`;
  return `${result.complexity.summary}, for instance with ${result.attack.pattern}`;
}
