// Derives from the configuration which header names matter to the check, and why.

import { createIdentityHeaders, removedByAllow } from '../headers.ts';
import type { EnvoyPolicy } from '../settings.ts';

export interface OwnedNames {
  /** The headers that an allow sets. */
  readonly identity: readonly string[];
  /** Spellings of them with `_`; each allow removes them. */
  readonly lookAlikes: readonly string[];
  /** Samples of other headers under the prefix that a client may send. */
  readonly otherPrefixedNames: readonly string[];
  /** The headers that a response sets or removes. */
  readonly mutated: readonly string[];
  /** The headers of `account.headers`. */
  readonly account: readonly string[];
  /** The headers that may hold the token, `authorization` included. */
  readonly tokens: readonly string[];
  /** Whether the host is a part of the decision. */
  readonly hasHosts: boolean;
  /** The headers that make an upstream serve another path, method or, where it matters, host. */
  readonly overrides: readonly string[];
  /** Why nothing may change the header after the check; undefined if it may change. */
  meaningOf(header: string, change: 'add' | 'remove'): string | undefined;
}

// The characters of a header name besides letters, digits and hyphens (RFC 9110 section 5.6.2); Envoy has an action for the underscore.
const signs = [..."!#$%&'*+.^`|~"];

/** Samples of what CGI and WSGI read as one of these names: each other sign for all hyphens, a dot for the first or the last. */
export function otherSpellings(headers: readonly string[], withUnderscores: boolean): readonly string[] {
  const all = withUnderscores ? [...signs, '_'] : signs;
  const spellings = headers.flatMap(name => [
    name.replaceAll('-', '.'),
    name.replace('-', '.'),
    name.replace(/-(?=[^-]*$)/, '.'),
    ...all.map(sign => name.replaceAll('-', () => sign)),
  ]);
  return [...new Set(spellings)].filter(spelling => !headers.includes(spelling));
}

export function createOwnedNames(policy: EnvoyPolicy): OwnedNames {
  const { identityPrefix: prefix, accountHeaders, forwardsToken, headers } = policy;
  const { names, lookAlikes } = createIdentityHeaders(prefix);
  const identity = [...names.values()];
  const rewritten = headers.filter(({ allow }) => allow === 'rewrites').flatMap(each => each.names);
  const tokens = headers.filter(({ kind }) => kind === 'token').flatMap(each => each.names);
  const overrides = headers.filter(({ kind }) => kind === 'override').flatMap(each => each.names);
  return {
    identity,
    lookAlikes,
    otherPrefixedNames: [`${prefix}email`, `${prefix}x`],
    mutated: [...identity, ...lookAlikes, ...removedByAllow(headers), ...rewritten],
    account: accountHeaders,
    tokens,
    hasHosts: policy.hosts !== undefined,
    overrides,
    meaningOf(header, change) {
      const name = header.toLowerCase();
      // As CGI and WSGI read names (RFC 3875 section 4.1.18).
      const plain = name.replaceAll(/[^a-z0-9:]/g, '-');
      if (plain.startsWith(prefix)) return 'an identity header';
      if (accountHeaders.includes(plain)) return 'an account header';
      // account-authz removes it, unless `token.forward` is on.
      if (tokens.includes(plain)) return change === 'add' || forwardsToken ? 'the token' : undefined;
      if (plain === 'origin' && policy.hasCookiePlace && change === 'add') return 'the page that sends a cookie';
      if (name.startsWith(':') || name === 'host') return 'a part of the request line';
      return overrides.includes(plain) ? 'a header by which upstreams take another path, method or host' : undefined;
    },
  };
}
