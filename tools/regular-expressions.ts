// Finds the regular expressions in a source text, and whether one takes more than linear time.
import { parse } from '@babel/parser';
import { check } from 'recheck';

export interface RegularExpression {
  readonly pattern: string;
  readonly flags: string;
  /** 1-based. */
  readonly line: number;
}

/** An expression that is built at run time and cannot be analysed. */
export interface UnknownExpression {
  readonly line: number;
}

export interface FoundExpressions {
  readonly known: readonly RegularExpression[];
  readonly unknown: readonly UnknownExpression[];
}

// Timeout of recheck; the longest analysis here takes 3 seconds with the native engine, and 10 with the JavaScript one.
const analysisMs = 60_000;

// The search for an attack must not depend on how busy the machine is: recheck's other limits count steps.
const withoutClock = { randomSeed: 0, attackTimeout: null, incubationTimeout: null, seedingTimeout: null };

type Node = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly loc: { readonly start: { readonly line: number } };
};

/** Literals, and calls of `RegExp` with or without `new`. */
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

/** The problem, or undefined if the time is linear in the length of the text. */
export async function costProblem({ pattern, flags }: RegularExpression): Promise<string | undefined> {
  const result = await check(pattern, flags, { timeout: analysisMs, ...withoutClock });
  switch (result.status) {
    case 'safe':
      return undefined;
    case 'vulnerable':
      return `${result.complexity.summary}, for instance with ${result.attack.pattern}`;
    case 'unknown':
      return `not analysed: ${result.error.kind}`;
  }
}
