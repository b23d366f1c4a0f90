// Route matches of Envoy and path templates of account-authz as languages, so that it can be computed which paths a route
// really gets: first match wins.
import { parseRouteTemplate, type RouteTemplate, type TemplateSegment } from '../authz/route-template.ts';
import { readRegexLanguage } from './name-pattern.ts';
import type { ProtoValue } from './proto-value.ts';
import {
  anyText,
  type CharacterRange,
  choice,
  type Expression,
  exactly,
  findText,
  isIn,
  type Language,
  lastCodePoint,
  optional,
  sequence,
  toLanguage,
  withoutCase,
} from './regular-language.ts';

export interface RouteMatch {
  /** The paths that it may take. */
  readonly may: Language;
  /** The paths that it surely takes, so that no later route gets them: none if it has other conditions. */
  readonly surely: Language;
  takes(path: string): boolean;
}

const nothing: Expression = { kind: 'choice', options: [] };
const slash = 0x2f;
const notSlash: readonly CharacterRange[] = [
  [0, slash - 1],
  [slash + 1, lastCodePoint],
];
const noText = languageOf(nothing);
const everyText = languageOf(anyText);
const unconditional: ReadonlySet<string> = new Set([
  'prefix',
  'path',
  'path_separated_prefix',
  'safe_regex',
  'case_sensitive',
]);

/** Undefined for what has no path: CONNECT. */
export function readRouteMatch(match: ProtoValue): RouteMatch | undefined {
  if (match.field('connect_matcher').isPresent) return undefined;
  const paths = readPaths(match);
  const may = paths ?? everyText;
  const isSure = paths !== undefined && match.names().every(name => unconditional.has(name));
  return { may, surely: isSure ? may : noText, takes: path => isIn(may, path) };
}

function readPaths(match: ProtoValue): Language | undefined {
  const regex = match.field('safe_regex');
  if (regex.isPresent) return readRegexLanguage(regex);
  const isExact = match.field('case_sensitive').flag() !== false;
  const cased = (expression: Expression) => toLanguage(isExact ? expression : withoutCase(expression));
  const [prefix, path, separated] = ['prefix', 'path', 'path_separated_prefix'].map(name => match.field(name).text());
  if (prefix !== undefined) return cased(sequence(exactly(prefix), anyText));
  if (path !== undefined) return cased(exactly(path));
  if (separated !== undefined) return cased(sequence(exactly(separated), optional(sequence(exactly('/'), anyText))));
  // What is no text has been said already.
  if (!match.names().some(name => unconditional.has(name)))
    match.cannotBeJudged('matches paths in a way that is not known here');
  return undefined;
}

export interface ProtectedPaths {
  readonly exact: Language;
  /** Together with the spellings that an upstream may take for them: another case. */
  readonly lookAlikes: Language;
}

/** The paths under the routes of the configuration. */
export function toProtectedPaths(templates: readonly string[]): ProtectedPaths {
  const expression = choice(...templates.map(toExpression));
  return { exact: languageOf(expression), lookAlikes: languageOf(withoutCase(expression)) };
}

/** Of the wanted paths one that a route gets, for people to read; undefined if it gets none of them. */
export function findRouted(wanted: Language, route: RouteMatch, earlier: readonly RouteMatch[]): string | undefined {
  let left = findText([wanted, route.may], noText);
  if (left.kind === 'none' || earlier.length === 0) return describe(left);
  const unwanted = unionOf(earlier.map(({ surely }) => surely));
  left = findText([wanted, route.may], unwanted);
  return describe(left);
}

function describe(found: ReturnType<typeof findText>): string | undefined {
  switch (found.kind) {
    case 'text':
      return found.text;
    case 'too many':
      return 'what may be a protected path';
    case 'none':
      return undefined;
  }
}

function toExpression(text: string): Expression {
  const template = parseRouteTemplate(text);
  if (template.kind === 'problem') return nothing;
  const { segments, subtree }: RouteTemplate = template;
  return sequence(
    ...segments.flatMap(segment => [exactly('/'), toSegment(segment)]),
    // A trailing slash is ignored in matching.
    optional(subtree ? sequence(exactly('/'), anyText) : exactly('/')),
  );
}

function toSegment(segment: TemplateSegment): Expression {
  switch (segment.kind) {
    case 'literal':
      return exactly(segment.value);
    case 'account':
    case 'any':
      return { kind: 'repeat', inner: { kind: 'characters', ranges: notSlash }, min: 1, max: undefined };
  }
}

function unionOf(languages: readonly Language[]): Language {
  const free: number[][] = [[], []];
  const edges: Language['edges'][number][] = [[], []];
  const steps: Language['steps'][number][] = [[], []];
  for (const language of languages) {
    const offset = free.length;
    free[0]?.push(language.first + offset);
    free.push(...language.free.map(states => states.map(to => to + offset)));
    edges.push(...language.edges.map(each => each.map(({ edge, to }) => ({ edge, to: to + offset }))));
    steps.push(...language.steps.map(each => each.map(({ ranges, to }) => ({ ranges, to: to + offset }))));
    free[language.last + offset]?.push(1);
  }
  return { first: 0, last: 1, free, edges, steps };
}

// Of what is too large nothing is known: all of it may be meant.
function languageOf(expression: Expression): Language {
  return toLanguage(expression) ?? everyText;
}
