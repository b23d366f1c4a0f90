// envoy.type.matcher.v3 StringMatcher and RegexMatcher → whether a name matches. Names of headers are in lower case here, as
// Envoy has them.
import type { ProtoValue } from './proto-value.ts';
import { parseRe2 } from './re2-syntax.ts';
import { isIn, type Language, toLanguage } from './regular-language.ts';

/** Undefined where it cannot be judged, which has been said then. */
export type NamePattern = (name: string) => boolean | undefined;

export function readRegex(matcher: ProtoValue): NamePattern {
  const language = readRegexLanguage(matcher);
  return name => (language === undefined ? undefined : isIn(language, name));
}

export function readRegexLanguage(matcher: ProtoValue): Language | undefined {
  const regex = matcher.field('regex');
  const expression = parseRe2(regex.text() ?? '');
  if (expression.kind === 'problem') {
    regex.cannotBeJudged(expression.problem);
    return undefined;
  }
  const language = toLanguage(expression);
  if (language === undefined) regex.cannotBeJudged('is too large');
  return language;
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
