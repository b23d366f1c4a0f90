// Which routes a path falls under, what accounts they find in it and what roles they leave.

import { type Refusal, refusal } from './refusal.ts';
import type { RouteTemplate, TemplateSegment } from './route-template.ts';

export interface Route {
  readonly template: RouteTemplate;
  /** Narrows who may call; absent: every role that the methods allow. */
  readonly roles: ReadonlySet<string> | undefined;
}

/** All routes that a path matches, taken together: each of them binds. */
export interface RouteMatch {
  readonly kind: 'match';
  /** The template with the most segments, for the log. */
  readonly route: string;
  /** Every `:account_id` of every matching template. */
  readonly accounts: readonly string[];
  /** One set for each matching route that narrows: the role must be in all of them. */
  readonly roleSets: readonly ReadonlySet<string>[];
}

export function matchRoutes(routes: readonly Route[], segments: readonly string[]): RouteMatch | Refusal {
  const matching: Route[] = [];
  for (const route of routes) {
    const fit = fits(route.template, segments);
    // An upstream that ignores case would serve the route that we did not apply.
    if (fit === 'but for case') return refusal('request_invalid', 'the path matches a route only if case is ignored');
    if (fit === 'exactly') matching.push(route);
  }
  if (matching.length === 0) return refusal('route_unknown', 'no route matches');
  return {
    kind: 'match',
    route: matching.reduce((most, each) => (isMoreSpecific(each.template, most.template) ? each : most)).template.text,
    accounts: matching.flatMap(({ template }) => segments.filter((_, i) => template.segments[i]?.kind === 'account')),
    roleSets: matching.flatMap(({ roles }) => (roles === undefined ? [] : [roles])),
  };
}

function isMoreSpecific(one: RouteTemplate, other: RouteTemplate): boolean {
  return one.segments.length > other.segments.length;
}

function fits(template: RouteTemplate, segments: readonly string[]): 'exactly' | 'but for case' | 'not' {
  const wanted = template.segments;
  // A shorter path lacks a segment below, which no kind of segment lets pass.
  if (!template.subtree && segments.length > wanted.length) return 'not';
  let exact = true;
  for (const [i, segment] of wanted.entries()) {
    if (isSame(segment, segments[i])) continue;
    if (segment.kind !== 'literal' || segment.value.toLowerCase() !== segments[i]?.toLowerCase()) return 'not';
    exact = false;
  }
  return exact ? 'exactly' : 'but for case';
}

function isSame(segment: TemplateSegment, text: string | undefined): boolean {
  return segment.kind === 'literal' ? segment.value === text : text !== undefined;
}
