// Matches a path against the routes, and tests account and role against those that match.

import { type Refusal, refusal } from './refusal.ts';
import type { RouteTemplate, TemplateSegment } from './route-template.ts';

export interface Route {
  readonly template: RouteTemplate;
  /** The only roles that may call; undefined allows every role. */
  readonly roles: ReadonlySet<string> | undefined;
}

/** All routes that a path matches; every one of them must permit the request. */
export interface RouteMatch {
  readonly kind: 'match';
  /** The template with the most segments, for the log. */
  readonly route: string;
  readonly routes: readonly Route[];
  readonly segments: readonly string[];
}

export function matchRoutes(routes: readonly Route[], segments: readonly string[]): RouteMatch | Refusal {
  const matching: Route[] = [];
  for (const route of routes) {
    const fit = matchTemplate(route.template, segments);
    // An upstream that ignores case would serve a route whose rules were not applied.
    if (fit === 'but for case') return refusal('request_invalid', 'the path matches a route only if case is ignored');
    if (fit === 'exactly') matching.push(route);
  }
  if (matching.length === 0) return refusal('route_unknown', 'no route matches');
  const most = matching.reduce((so, each) => (isMoreSpecific(each.template, so.template) ? each : so));
  return { kind: 'match', route: most.template.text, routes: matching, segments };
}

/** Whether every `:account_id` of every matching template is this account. */
export function everyAccountSegmentIs({ routes, segments }: RouteMatch, account: string): boolean {
  return routes.every(({ template }) =>
    template.segments.every(({ kind }, i) => kind !== 'account' || segments[i] === account),
  );
}

/** Whether no matching route is narrowed to other roles. */
export function permitsRole({ routes }: RouteMatch, role: string): boolean {
  return routes.every(({ roles }) => roles === undefined || roles.has(role));
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
