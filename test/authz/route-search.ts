// A linear search that tries every route in turn: the reference that the route tree is compared with.
import { type Refusal, refusal } from '../../src/authz/refusal.ts';
import type { Route, RouteMatch } from '../../src/authz/route.ts';
import type { RouteTemplate, TemplateSegment } from '../../src/authz/route-template.ts';

export function searchRoutes(routes: readonly Route[], segments: readonly string[]): RouteMatch | Refusal {
  const matching: Route[] = [];
  for (const route of routes) {
    const result = matchTemplate(route.template, segments);
    if (result === 'ignoring case')
      return refusal('request_invalid', 'the path matches a route only if case is ignored');
    if (result === 'exactly') matching.push(route);
  }
  if (matching.length === 0) return refusal('route_unknown', 'no route matches');
  const mostSpecific = matching.reduce((best, each) => (isMoreSpecific(each.template, best.template) ? each : best));
  return { kind: 'match', route: mostSpecific.template.text, routes: matching, segments };
}

function isMoreSpecific(one: RouteTemplate, other: RouteTemplate): boolean {
  return one.segments.length > other.segments.length;
}

function matchTemplate(template: RouteTemplate, segments: readonly string[]): 'exactly' | 'ignoring case' | 'not' {
  const expected = template.segments;
  // A shorter path fails below, at its first missing segment.
  if (!template.subtree && segments.length > expected.length) return 'not';
  let exact = true;
  for (const [i, segment] of expected.entries()) {
    if (segmentMatches(segment, segments[i])) continue;
    if (segment.kind !== 'literal' || segment.value.toLowerCase() !== segments[i]?.toLowerCase()) return 'not';
    exact = false;
  }
  return exact ? 'exactly' : 'ignoring case';
}

function segmentMatches(segment: TemplateSegment, text: string | undefined): boolean {
  return segment.kind === 'literal' ? segment.value === text : text !== undefined;
}
