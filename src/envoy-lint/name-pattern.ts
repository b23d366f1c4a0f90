// envoy.type.matcher.v3 StringMatcher and RegexMatcher → whether a name matches. Names of headers are in lower case here, as
// Envoy has them.
import { RE2JS } from 're2js';
import type { ProtoValue } from './proto-value.ts';

/** Undefined where it cannot be judged, which has been said then. */
export type NamePattern = (name: string) => boolean | undefined;

export function readRegex(matcher: ProtoValue): NamePattern {
  const regex = matcher.field('regex');
  try {
    // Of RE2 as Envoy is: linear in the text, whatever the expression is.
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
    if (text === undefined) return () => undefined;
    return name => fits(name, ignoresCase ? text.toLowerCase() : text);
  }
  matcher.cannotBeJudged('matches in a way that is not known here');
  return () => undefined;
}

/** Of a ListStringMatcher: whether any of its patterns matches. What cannot be judged matches. */
export function readStringMatchers(list: ProtoValue): (name: string) => boolean {
  const patterns = list.field('patterns').items().map(readStringMatcher);
  return name => patterns.some(pattern => pattern(name) ?? true);
}

const textMatches: Readonly<Record<string, (name: string, text: string) => boolean>> = {
  exact: (name, text) => name === text,
  prefix: (name, text) => name.startsWith(text),
  suffix: (name, text) => name.endsWith(text),
  contains: (name, text) => name.includes(text),
};
