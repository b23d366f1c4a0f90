// Compiles an envoy.type.matcher.v3 StringMatcher or RegexMatcher into a test of a header name. Envoy's header names are lower case.
import { RE2JS } from 're2js';
import type { ProtoValue } from './proto-value.ts';

/** Undefined if the pattern cannot be judged, which is reported when it is read. */
export type NamePattern = (name: string) => boolean | undefined;

const textMatches: Readonly<Record<string, (name: string, text: string) => boolean>> = {
  exact: (name, text) => name === text,
  prefix: (name, text) => name.startsWith(text),
  suffix: (name, text) => name.endsWith(text),
  contains: (name, text) => name.includes(text),
};

export function readRegex(matcher: ProtoValue): NamePattern {
  const regex = matcher.field('regex');
  try {
    // RE2 as in Envoy, and linear in the length of the text.
    const compiled = RE2JS.compile(regex.text() ?? '');
    return name => compiled.testExact(name);
  } catch {
    regex.cannotBeJudged('is no regular expression of RE2');
    return () => undefined;
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

/** Whether any pattern of a ListStringMatcher matches. A pattern that cannot be judged counts as a match. */
export function readStringMatchers(list: ProtoValue): (name: string) => boolean {
  const patterns = list.items('patterns').map(readStringMatcher);
  return name => patterns.some(pattern => pattern(name) ?? true);
}
