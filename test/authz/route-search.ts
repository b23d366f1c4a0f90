// A linear search that tries every route in turn: the reference that the route tree is compared with.
import { type Refusal, refusal } from '../../src/authz/refusal.ts';
import type { RouteTemplate } from '../../src/authz/route-template.ts';
import type { Route, RouteMatch } from '../../src/authz/route-tree.ts';

export function searchRoutes(routes: readonly Route[], segments: readonly string[]): RouteMatch | Refusal {
  const isWide = (segment: string): boolean => !/^[\w.~:@-]+$/.test(segment);
  const isSent = (literal: string, i: number): boolean => literal === segments[i];
  const readings = segments.map((segment, i) => {
    const folded = decodeURIComponent(segment).toUpperCase().toLowerCase();
    const trimmed = folded.trim();
    const isName = routes.some(({ template }) => {
      const literal = template.segments[i];
      const start = { segments: template.segments.slice(0, i), subtree: true };
      return literal?.kind === 'literal' && literal.value === segment && matches(start, segments, isSent);
    });
    const stems = Array.from(trimmed.matchAll(/[^a-z0-9_~-]/g), ({ index }) => trimmed.slice(0, index));
    return { folded, all: new Set(isName ? [trimmed] : [trimmed, ...stems]) };
  });
  const matching = (isEqual: typeof isSent) => routes.filter(({ template }) => matches(template, segments, isEqual));
  const exact = matching(isSent);
  if (matching((literal, i) => literal.toLowerCase() === readings[i]?.folded).length > exact.length)
    return refusal('request_invalid', 'the path matches a route only if case is ignored or segments are decoded');
  const narrow = matching((literal, i) => readings[i]?.all.has(literal.toLowerCase()) === true).filter(
    ({ template, roles, scopes }) => roles ?? scopes ?? template.segments.some(({ kind }) => kind === 'account'),
  );
  if (narrow.some(route => !exact.includes(route)))
    return refusal('request_invalid', 'the path matches a route only if a segment is trimmed or cut at a sign');
  const forbids = ({ template, isWide: permits }: Route, i: number): boolean =>
    !permits || template.segments[i]?.kind === 'account';
  const isForbidden = segments.some(
    (segment, i) => isWide(segment) && (exact.length === 0 || exact.some(route => forbids(route, i))),
  );
  if (isForbidden) return refusal('request_invalid', 'a character that not every matching route permits');
  const [first, ...others] = exact;
  if (first === undefined) return refusal('route_unknown', 'no route matches');
  const lengthOf = ({ template }: Route): number => template.segments.length;
  const mostSpecific = others.reduce((best, each) => (lengthOf(each) > lengthOf(best) ? each : best), first);
  return { kind: 'match', route: mostSpecific.template.text, routes: exact, grants: [], segments };
}

function matches(
  { segments: expected, subtree }: Pick<RouteTemplate, 'segments' | 'subtree'>,
  segments: readonly string[],
  isEqual: (literal: string, i: number) => boolean,
): boolean {
  const hasLength = subtree ? segments.length >= expected.length : segments.length === expected.length;
  return hasLength && expected.every((each, i) => each.kind !== 'literal' || isEqual(each.value, i));
}
