// Compiles an envoy.type.matcher.v3 StringMatcher or RegexMatcher into a test of a header name. Envoy's header names are lower case.
import { RE2JS } from 're2js';
import { memoized } from './memoized.ts';
import { createNameSet, type Matcher, matchedBy, type NameSet, parseNameRegex, stepsSoFar } from './name-regex.ts';
import type { ProtoValue } from './proto-value.ts';

/** Undefined if the pattern cannot be judged, which is reported when it is read. */
export type NamePattern = (name: string) => boolean | undefined;

/** Those of the names that the pattern matches. Undefined as above. */
type NameFilter = (names: NameSet) => readonly string[] | undefined;

/** Envoy allows about as much in a pattern, and compiling takes a second for each MiB. */
export const maxPatternLength = 32_768;

const textMatches: Readonly<Record<string, (name: string, text: string) => boolean>> = {
  exact: (name, text) => name === text,
  prefix: (name, text) => name.startsWith(text),
  suffix: (name, text) => name.endsWith(text),
  contains: (name, text) => name.includes(text),
};

function readFilter(matcher: ProtoValue): NameFilter {
  const regex = matcher.field('regex');
  const text = regex.text() ?? '';
  if (text.length > maxPatternLength) regex.cannotBeJudged(`is longer than ${maxPatternLength} characters`);
  if (text.length > maxPatternLength) return () => undefined;
  // Most patterns of a long list need not be read.
  const head = text.includes('|') ? '' : (/^[\w/-]*(?![?*{\w/-])/.exec(text)?.[0] ?? '');
  let compiled: CompiledRegex | undefined;
  return names => {
    if (!names.lines.includes(`\n${head}`)) return [];
    compiled ??= compile(text, budgetOf(matcher.root));
    if (typeof compiled !== 'string') return compiled(names);
    regex.cannotBeJudged(compiled);
    return undefined;
  };
}

export function readRegex(matcher: ProtoValue): NamePattern {
  const filter = readFilter(matcher);
  return name => {
    const found = filter(nameSetOf([name]));
    return found && found.length > 0;
  };
}

// Of names and patterns that each listener has again.
const setsByText = new Map<string, NameSet>();
const compiledBy = new Map<string, CompiledRegex>();
const maxKept = 1000;

/** The same list is found at once. */
const nameSetOf = memoized((names: readonly string[]): NameSet => {
  const text = names.join('\n');
  const found = setsByText.get(text) ?? createNameSet(names);
  if (setsByText.size < maxKept) setsByText.set(text, found);
  return found;
});

/** Or why it cannot be judged. */
type CompiledRegex = ((names: NameSet) => readonly string[]) | string;

/** Microseconds that patterns of a file which need RE2 may take: about 5,000 of them. */
const maxCompiling = 4_000_000;
const stepsPerMicrosecond = 3;
const budgetOf = memoized((_root: ProtoValue) => ({ left: maxCompiling }));

/** RE2 as in Envoy is slow, and left to what the lint does not read itself. */
function compile(text: string, budget: { left: number }): CompiledRegex {
  const known = compiledBy.get(text);
  if (known !== undefined) return known;
  // What is not read costs nothing.
  const own = budget.left < 0 ? undefined : parseNameRegex(text);
  if (own === undefined && budget.left >= 0) budget.left -= costOf(text);
  if (budget.left < 0) return 'is one of thousands of regular expressions, more than the lint reads';
  const compiled = own === undefined ? compileRe2(text) : (names: NameSet) => countedMatch(own, names, budget);
  if (compiledBy.size < maxKept) compiledBy.set(text, compiled);
  return compiled;
}

function countedMatch(own: Matcher, names: NameSet, budget: { left: number }): readonly string[] {
  const before = stepsSoFar();
  const found = matchedBy(own, names);
  budget.left -= (stepsSoFar() - before) / stepsPerMicrosecond;
  return found;
}

/** RE2 permits no more than 1000 repetitions of a letter, also by numbers in each other. */
function costOf(text: string): number {
  const numbers = [...text.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, least, most]) => Number(most || least));
  const repeated = numbers.reduce((all, each) => Math.min(1000, all * Math.max(1, each)), 1);
  return 800 + text.length * repeated * (/[?*]|\{0?,/.test(text) ? 20 : 1);
}

function compileRe2(text: string): CompiledRegex {
  try {
    const compiled = RE2JS.compile(text);
    return ({ names }) => names.filter(name => compiled.testExact(name));
  } catch {
    return 'is no regular expression of RE2';
  }
}

export function readStringMatcher(matcher: ProtoValue): NamePattern {
  const regex = matcher.field('safe_regex');
  if (regex.isPresent) return readRegex(regex);
  const ignoresCase = matcher.field('ignore_case').flag() === true;
  for (const [kind, fits] of Object.entries(textMatches)) {
    const field = matcher.field(kind);
    if (!field.isPresent) continue;
    const text = field.text();
    return name => (text === undefined ? undefined : fits(name, ignoresCase ? text.toLowerCase() : text));
  }
  matcher.cannotBeJudged('matches in a way that is not known here');
  return () => undefined;
}

/** Those of the names that no pattern of a ListStringMatcher matches. A pattern that cannot be judged counts as a match. */
export function unmatched(list: ProtoValue, names: readonly string[]): readonly string[] {
  // One after the other: a file may have 300,000, and none is needed again.
  return list
    .items('patterns')
    .reduce((left, each) => (left.length === 0 ? left : without(left, readRemoval(each)(left))), names);
}

/** The same list if nothing is removed. */
export function without(names: readonly string[], removed: readonly string[]): readonly string[] {
  return removed.length === 0 ? names : names.filter(name => !removed.includes(name));
}

/** Takes from a list of names those that a StringMatcher matches or that cannot be judged. The same list is best asked again. */
export function readRemoval(matcher: ProtoValue): (names: readonly string[]) => readonly string[] {
  const regex = matcher.field('safe_regex');
  const filter = regex.isPresent ? readFilter(regex) : undefined;
  const pattern = filter === undefined ? readStringMatcher(matcher) : undefined;
  return names => {
    if (filter === undefined) return names.filter(name => pattern?.(name) ?? true);
    return filter(nameSetOf(names)) ?? names;
  };
}
