// The header names that Envoy shows, removes and lets account-authz change. The lint judges a bootstrap by the same names.

/** What account-authz is shown besides the account headers. */
export const shownHeaders = ['authorization', 'x-request-id', 'traceparent', 'tracestate'] as const;

/** Headers that make an upstream act on another path or method than the checked one. */
export const overrides = [
  ...['x-original-url', 'x-rewrite-url'],
  ...['x-http-method-override', 'x-http-method', 'x-method-override'],
] as const;

/** Headers that the ext_authz filter sets, so that a client must not. */
export const setByExtAuthz = ['x-envoy-auth-partial-body', 'x-envoy-auth-failure-mode-allowed'] as const;

/** RE2 for the name with whatever sign in place of each hyphen. */
export function anySpelling(name: string): string {
  return name.replaceAll('-', '[^a-z0-9]');
}

/** RE2 for `overrides` in any spelling. */
export const overridePatterns = ['x-(original|rewrite)-url', 'x-(http-method|(http-)?method-override)'].map(
  anySpelling,
);

/** RE2 for every name under the identity prefix, in any spelling. */
export function ownedPattern(prefix: string): string {
  return `${anySpelling(prefix)}.*`;
}

/** RE2 for the names that an answer of account-authz may set or remove. */
export function mutablePattern({
  identityPrefix,
  forwardsToken,
}: {
  identityPrefix: string;
  forwardsToken: boolean;
}): string {
  const owned = `${identityPrefix.replaceAll('-', '[-_]')}.*`;
  return forwardsToken ? `^${owned}$` : `^(${owned}|authorization)$`;
}
