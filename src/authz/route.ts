// The routes that a path matches, and the accounts that it names. route-tree.ts finds those routes.
import type { RouteTemplate } from './route-template.ts';

/** A route as the configuration has it. */
export interface RouteDefinition {
  readonly path: string;
  readonly roles?: readonly string[] | undefined;
  /** `strict` by default. */
  readonly characters?: 'strict' | 'rfc3986' | undefined;
  readonly scopes?: readonly string[] | undefined;
}

export interface Route {
  readonly template: RouteTemplate;
  /** The only roles that may call; undefined allows every role. */
  readonly roles: ReadonlySet<string> | undefined;
  /** Whether a parameter other than the account, and `/*`, may match a segment outside the strict grammar. */
  readonly isWide: boolean;
  /** The scopes of which a token needs one; undefined leaves all. */
  readonly scopes: ReadonlySet<string> | undefined;
}

/** All routes that a path matches; every one of them must permit the request. */
export interface RouteMatch {
  readonly kind: 'match';
  /** The template with the most segments, for the log. */
  readonly route: string;
  readonly routes: readonly Route[];
  /** The templates of grants that match too. */
  readonly grants: readonly string[];
  readonly segments: readonly string[];
}

/** The segment at every `:account_id` of every matching template. */
export function accountSegments({ routes, segments }: RouteMatch): readonly string[] {
  const found: string[] = [];
  for (const { template } of routes) {
    for (const [i, { kind }] of template.segments.entries()) {
      if (kind === 'account') found.push(segments[i] ?? '');
    }
  }
  return found;
}
