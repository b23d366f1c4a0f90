// Tests account and role against the routes that a path matches. route-tree.ts finds those routes.
import type { RouteTemplate } from './route-template.ts';

/** A route as the configuration has it. */
export interface RouteDefinition {
  readonly path: string;
  readonly roles?: readonly string[] | undefined;
  /** `strict` by default. */
  readonly characters?: 'strict' | 'rfc3986' | undefined;
}

export interface Route {
  readonly template: RouteTemplate;
  /** The only roles that may call; undefined allows every role. */
  readonly roles: ReadonlySet<string> | undefined;
  /** Whether a parameter other than the account, and `/*`, may match a segment outside the strict grammar. */
  readonly isWide: boolean;
}

/** All routes that a path matches; every one of them must permit the request. */
export interface RouteMatch {
  readonly kind: 'match';
  /** The template with the most segments, for the log. */
  readonly route: string;
  readonly routes: readonly Route[];
  readonly segments: readonly string[];
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
