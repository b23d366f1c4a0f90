// Parses route templates: literal segments, `:account_id`, `:other` and a trailing `/*`. No template becomes a regular expression.

/** The name of the parameter that is the account, unless the configuration gives it another. */
export const defaultAccountParameter = 'account_id';

export type TemplateSegment =
  | { readonly kind: 'literal'; readonly value: string }
  | { readonly kind: 'account' }
  | { readonly kind: 'any'; readonly name: string };

export interface RouteTemplate {
  readonly kind: 'template';
  /** As it was written. */
  readonly text: string;
  /** Without the trailing `*`; never empty. */
  readonly segments: readonly TemplateSegment[];
  /** Ends in `/*`: matches the path itself and every path under it. */
  readonly subtree: boolean;
}

// A longer path is refused before it is matched.
const maxTemplateBytes = 2048;
const literalGrammar = /^[A-Za-z0-9._~:@-]+$/;
/** The grammar of the name of a parameter. */
export const parameterGrammar = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function parseRouteTemplate(
  text: string,
  accountParameter = defaultAccountParameter,
): RouteTemplate | NotationProblem {
  const template = parse(text, accountParameter);
  return typeof template === 'string' ? { kind: 'problem', problem: template } : template;
}

function parse(text: string, accountParameter: string): RouteTemplate | string {
  if (!text.startsWith('/')) return 'must start with "/"';
  if (text.length > maxTemplateBytes)
    return `must not be longer than ${maxTemplateBytes} bytes: longer request paths are refused`;
  const subtree = text.endsWith('/*');
  const path = subtree ? text.slice(0, -'/*'.length) : text;
  if (path === '' || path === '/') return 'must have at least one segment: "/" and "/*" alone would match every path';
  const segments: TemplateSegment[] = [];
  for (const segmentText of path.slice(1).split('/')) {
    const segment = parseSegment(segmentText, accountParameter);
    if (typeof segment === 'string') return segment;
    segments.push(segment);
  }
  return { kind: 'template', text, segments, subtree };
}

/** Throws on an invalid template, which the validation of a configuration reports. */
export function toRouteTemplate(text: string, accountParameter = defaultAccountParameter): RouteTemplate {
  const template = parseRouteTemplate(text, accountParameter);
  if (template.kind === 'problem') throw new Error(`the configuration has an invalid route: it ${template.problem}`);
  return template;
}

/** The path up to the first parameter, by whole segments; `/` if it begins with one. */
export function literalStart({ segments }: RouteTemplate): string {
  const literals: string[] = [];
  for (const segment of segments) {
    if (segment.kind !== 'literal') break;
    literals.push(segment.value);
  }
  return `/${literals.join('/')}`;
}

type Paths = Pick<RouteTemplate, 'segments' | 'subtree'>;

/** Whether a path can match both. `fold` makes equal literals equal texts. */
export function overlapsTemplate(one: Paths, other: Paths, fold = (literal: string): string => literal): boolean {
  const shared = Math.min(one.segments.length, other.segments.length);
  for (let i = 0; i < shared; i += 1) {
    const [mine, its] = [one.segments[i], other.segments[i]];
    if (mine?.kind !== 'literal' || its?.kind !== 'literal') continue;
    if (fold(mine.value) !== fold(its.value)) return false;
  }
  if (one.segments.length > shared) return other.subtree;
  return other.segments.length === shared || one.subtree;
}

/** Whether every path that matches the inner template matches the outer one too. */
export function coversTemplate(outer: Paths, inner: Paths): boolean {
  const { length } = outer.segments;
  const hasLength = outer.subtree
    ? inner.segments.length >= length
    : !inner.subtree && inner.segments.length === length;
  return (
    hasLength &&
    outer.segments.every((segment, i) => {
      const own = inner.segments[i];
      return segment.kind !== 'literal' || (own?.kind === 'literal' && own.value === segment.value);
    })
  );
}

function parseSegment(text: string, accountParameter: string): TemplateSegment | string {
  if (text === '') return 'must not have an empty segment: remove "//", or "/" at the end';
  if (text === '.' || text === '..') return 'must not have a "." or ".." segment: write the path without it';
  if (text.startsWith(':')) return parseParameter(text.slice(1), accountParameter);
  if (text.includes('*')) return 'must have "*" only as its whole last segment ("/*")';
  if (text.startsWith('{') && text.endsWith('}'))
    return `must write a parameter as :name, and that of the account as :${accountParameter}`;
  if (!literalGrammar.test(text)) return 'must have only A-Z a-z 0-9 . _ ~ : @ - in a segment: paths are never decoded';
  return { kind: 'literal', value: text };
}

function parseParameter(name: string, accountParameter: string): TemplateSegment | string {
  if (!parameterGrammar.test(name))
    return 'must have a parameter name of letters, digits and _ that starts with a letter or _';
  if (name === accountParameter) return { kind: 'account' };
  // Such a parameter would match any account and check none.
  const spelling = toSpelling(name);
  const isMisspelt = spelling === toSpelling(accountParameter) || (spelling === 'accountid' && name !== 'account_id');
  return isMisspelt ? `must write the account parameter as :${accountParameter}` : { kind: 'any', name };
}

function toSpelling(name: string): string {
  return name.replaceAll('_', '').toLowerCase();
}

/** Has the shape of `Problem`. Declared here because authz/ imports no other folder. */
export interface NotationProblem {
  readonly kind: 'problem';
  /** The rest of a sentence about the entry: "must start with /". */
  readonly problem: string;
}
