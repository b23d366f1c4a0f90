// The meaning of route matching, spelled out: every route is tried in turn. The route tree is compared with it.
import { type Refusal, refusal } from '../../src/authz/refusal.ts';
import type { Route, RouteMatch } from '../../src/authz/route.ts';
import type { RouteTemplate, TemplateSegment } from '../../src/authz/route-template.ts';

export function walkRoutes(routes: readonly Route[], segments: readonly string[]): RouteMatch | Refusal {
  const matching: Route[] = [];
  for (const route of routes) {
    const fit = matchTemplate(route.template, segments);
    if (fit === 'but for case') return refusal('request_invalid', 'the path matches a route only if case is ignored');
    if (fit === 'exactly') matching.push(route);
  }
  if (matching.length === 0) return refusal('route_unknown', 'no route matches');
  const most = matching.reduce((so, each) => (isMoreSpecific(each.template, so.template) ? each : so));
  return { kind: 'match', route: most.template.text, routes: matching, segments };
}

function isMoreSpecific(one: RouteTemplate, other: RouteTemplate): boolean {
  return one.segments.length > other.segments.length;
}

function matchTemplate(template: RouteTemplate, segments: readonly string[]): 'exactly' | 'but for case' | 'not' {
  const expected = template.segments;
  // A shorter path fails below, where it lacks a segment.
  if (!template.subtree && segments.length > expected.length) return 'not';
  let exact = true;
  for (const [i, segment] of expected.entries()) {
    if (isSame(segment, segments[i])) continue;
    if (segment.kind !== 'literal' || segment.value.toLowerCase() !== segments[i]?.toLowerCase()) return 'not';
    exact = false;
  }
  return exact ? 'exactly' : 'but for case';
}

function isSame(segment: TemplateSegment, text: string | undefined): boolean {
  return segment.kind === 'literal' ? segment.value === text : text !== undefined;
}
