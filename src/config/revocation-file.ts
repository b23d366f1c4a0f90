// Parses the file of a revocation list: its entries, or every problem with its place.
import { isUtf8 } from 'node:buffer';
import { isMap, isNode, isScalar, LineCounter } from 'yaml';
import { isAccount, isIdentityField } from '../authz/principal.ts';
import { joinSelectors, type Revocation, selectorNames } from '../revocation/revocation-list.ts';
import { parseDateTime } from '../text/instant.ts';
import { maxIdLength } from '../token/claims.ts';
import { issuerGrammar, issuerRule } from './issuer-schema.ts';
import { readPlainList } from './plain-list.ts';
import { type Problem, toProblem } from './problems.ts';
import { unknownKeyProblem } from './value-schemas.ts';
import { composePiece, type ListPiece, splitList } from './yaml-list.ts';

const maxEntries = 100_000;
const maxProblems = 100;
const tooMany = `the file must not have more than ${maxEntries} entries: remove those that have expired`;
const nothing: Revocation = { selectors: '', key: '', issuedBefore: Infinity, expires: Infinity };

type Report = (path: readonly PropertyKey[], node: unknown, message: string) => void;

interface FoundProblem {
  readonly path: readonly PropertyKey[];
  readonly offset: number;
  readonly message: string;
}

/** Calls `onEntries` with some entries at a time. An empty result means that the list is valid. */
export function parseRevocations(
  bytes: Uint8Array,
  onEntries: (entries: readonly Revocation[]) => void,
): readonly Problem[] {
  if (!isUtf8(bytes))
    return [toProblem({ path: [], position: { line: 1, column: 1 }, message: 'the file must be text in UTF-8' })];
  const text = new TextDecoder().decode(bytes);
  const found: FoundProblem[] = [];
  let count = 0;
  for (const piece of splitList(text)) {
    const entries = readPlainEntries(piece) ?? readEntries(piece, count, found);
    count += entries.length;
    if (count > maxEntries) found.push({ path: [], offset: 0, message: tooMany });
    if (count > maxEntries || found.length > maxProblems) break;
    if (found.length === 0) onEntries(entries);
  }
  return toProblems(text, found);
}

/** Undefined if an entry is written in another way, or is wrong. */
function readPlainEntries({ source }: ListPiece): readonly Revocation[] | undefined {
  const entries = readPlainList(source)?.map(toRevocation);
  return entries?.every(entry => entry !== undefined) ? entries : undefined;
}

/** Adds the problems to those found. The result has an item for each item of the list. */
function readEntries(piece: ListPiece, count: number, found: FoundProblem[]): readonly Revocation[] {
  const { items, problems } = composePiece(piece);
  found.push(...problems.map(problem => ({ path: [], ...problem })));
  return items.map((item, i) => {
    const report: Report = (path, node, message) =>
      found.push({ path: [count + i, ...path], offset: piece.shift + startOf(node), message });
    return toRevocation(readMembers(item, report)) ?? nothing;
  });
}

/** Reports each problem, so that the texts are those of an entry if there is none. */
function readMembers(item: unknown, report: Report): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  if (!isMap(item)) {
    report([], item, 'must be a mapping');
    return texts;
  }
  const seen = new Set<string>();
  for (const { key, value } of item.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const text: unknown = isScalar(value) ? value.value : undefined;
    if (seen.has(name)) report([name], key, 'is set twice: remove one');
    seen.add(name);
    const problemOf = rules.get(name);
    if (problemOf === undefined) report([name], key, unknownKey);
    else if (typeof text !== 'string') report([name], isScalar(value) ? value : key, 'must be text: put it in quotes');
    else {
      const problem = problemOf(text);
      if (problem !== undefined) report([name], value, problem);
      texts.set(name, text);
    }
  }
  if (!selectorNames.some(name => seen.has(name)))
    report([], item, `must have at least one of ${selectorNames.join(', ')}`);
  return texts;
}

/** Undefined if it is not an entry. */
function toRevocation(texts: ReadonlyMap<string, string>): Revocation | undefined {
  for (const [name, text] of texts) {
    const problemOf = rules.get(name);
    if (problemOf === undefined || problemOf(text) !== undefined) return undefined;
  }
  const names = selectorNames.filter(name => texts.has(name));
  const key = joinSelectors(names, name => texts.get(name));
  if (key === undefined) return undefined;
  const instantOf = (name: string): number => parseDateTime(texts.get(name) ?? '') ?? Infinity;
  return { selectors: names.join(', '), key, issuedBefore: instantOf('issuedBefore'), expires: instantOf('expires') };
}

const identityRule = 'must be 1 to 128 visible ASCII characters without space , ; and "';
const idRule = `must have 1 to ${maxIdLength} characters`;
const timeRule = 'must be an RFC 3339 time such as 2026-11-23T04:00:00Z';

const isTime = (text: string): string | undefined => (parseDateTime(text) === undefined ? timeRule : undefined);

// A value that no accepted token has would stop nobody, although whoever wrote it believes so.
const rules = new Map<string, (text: string) => string | undefined>([
  ['iss', text => (issuerGrammar.test(text) ? undefined : issuerRule)],
  ['uid', text => (isIdentityField(text) ? undefined : identityRule)],
  ['acc', text => (isAccount(text, true) ? undefined : 'must be 1 to 128 of A-Z a-z 0-9 . _ ~ -, and not . or ..')],
  ['app', text => (isIdentityField(text) ? undefined : identityRule)],
  ['jti', text => (text !== '' && text.length <= maxIdLength ? undefined : idRule)],
  ['issuedBefore', isTime],
  ['expires', isTime],
]);
const unknownKey = unknownKeyProblem([...rules.keys()]);

function startOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

/** One pass over the text for all of them. */
function toProblems(text: string, found: readonly FoundProblem[]): readonly Problem[] {
  if (found.length === 0) return [];
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1);
  const more = found
    .slice(maxProblems, maxProblems + 1)
    .map(({ offset }) => ({ path: [], offset, message: 'more problems are not listed' }));
  return [...found.slice(0, maxProblems), ...more].map(({ path, offset, message }) => {
    const { line, col } = lines.linePos(offset);
    return toProblem({ path, position: { line, column: col }, message });
  });
}
