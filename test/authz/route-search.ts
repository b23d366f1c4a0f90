// A linear search that tries every route in turn: the reference that the route tree is compared with.
import { type Refusal, refusal } from '../../src/authz/refusal.ts';
import type { Route, RouteMatch } from '../../src/authz/route.ts';

export function searchRoutes(routes: readonly Route[], segments: readonly string[]): RouteMatch | Refusal {
  const isWide = (segment: string): boolean => !/^[\w.~:@-]+$/.test(segment);
  const loose = routes.filter(route => matches(route, segments, isLooselyEqual));
  const exact = loose.filter(route => matches(route, segments, (literal, segment) => literal === segment));
  if (exact.length < loose.length)
    return refusal('request_invalid', 'the path matches a route only if case is ignored or segments are decoded');
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
  return { kind: 'match', route: mostSpecific.template.text, routes: exact, segments };
}

function isLooselyEqual(literal: string, segment: string): boolean {
  return decodeURIComponent(segment).toUpperCase().toLowerCase() === literal.toUpperCase().toLowerCase();
}

function matches(
  { template }: Route,
  segments: readonly string[],
  isEqual: (literal: string, segment: string) => boolean,
): boolean {
  const expected = template.segments;
  const hasLength = template.subtree ? segments.length >= expected.length : segments.length === expected.length;
  return hasLength && expected.every((each, i) => each.kind !== 'literal' || isEqual(each.value, segments[i] ?? ''));
}
