// The regular expressions in a source text, and whether the time of one grows faster than the text that it reads.
import { parse } from '@babel/parser';
import { check } from 'recheck';

export interface RegularExpression {
  readonly pattern: string;
  readonly flags: string;
  /** Counted from 1. */
  readonly line: number;
}

/** One that is put together when the program runs: nobody can say what it is. */
export interface UnknownExpression {
  readonly line: number;
}

export interface FoundExpressions {
  readonly known: readonly RegularExpression[];
  readonly unknown: readonly UnknownExpression[];
}

// recheck ends an analysis after this time; the longest here takes 3 seconds with the native engine, and 10 with the one in JavaScript.
const analysisMs = 60_000;

type Node = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly loc: { readonly start: { readonly line: number } };
};

/** Literals, and what `RegExp` makes with or without `new`. */
export function findRegularExpressions(source: string): FoundExpressions {
  const known: RegularExpression[] = [];
  const unknown: UnknownExpression[] = [];
  const { program } = parse(source, { sourceType: 'module', plugins: ['typescript'] });
  for (const node of nodesOf(program)) {
    const { line } = node.loc.start;
    if (node.type === 'RegExpLiteral') known.push({ pattern: String(node.pattern), flags: String(node.flags), line });
    if (!makesRegularExpression(node)) continue;
    const [pattern, flags] = [...(node.arguments as readonly unknown[]).map(plainText), ''];
    if (pattern === undefined || flags === undefined) unknown.push({ line });
    else known.push({ pattern, flags, line });
  }
  return { known, unknown };
}

function* nodesOf(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each);
  else if (typeof value === 'object' && value !== null && !(value instanceof RegExp)) {
    if (isNode(value)) yield value;
    for (const each of Object.values(value)) yield* nodesOf(each);
  }
}

function isNode(value: object): value is Node {
  return 'type' in value && typeof value.type === 'string' && 'loc' in value;
}

// `globalThis.RegExp` as well.
function makesRegularExpression(node: Node): boolean {
  if (node.type !== 'NewExpression' && node.type !== 'CallExpression') return false;
  const { callee } = node as {
    readonly callee?: { readonly name?: unknown; readonly property?: { readonly name?: unknown } };
  };
  return callee?.name === 'RegExp' || callee?.property?.name === 'RegExp';
}

function plainText(argument: unknown): string | undefined {
  const { type, value } = argument as { readonly type: string; readonly value?: unknown };
  return type === 'StringLiteral' && typeof value === 'string' ? value : undefined;
}

/** What is wrong with it, or undefined where its time is proportional to the text. */
export async function costProblem({ pattern, flags }: RegularExpression): Promise<string | undefined> {
  const result = await check(pattern, flags, { timeout: analysisMs });
  switch (result.status) {
    case 'safe':
      return undefined;
    case 'vulnerable':
      return `${result.complexity.summary}, for instance with ${result.attack.pattern}`;
    case 'unknown':
      return `not judged: ${result.error.kind}`;
  }
}
