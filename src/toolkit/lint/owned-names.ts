// Derives from the configuration which header names matter to the check, and why.
import { removedByAllow } from '../../headers/headers.ts';
import type { EnvoyPolicy } from '../envoy-settings/settings.ts';

export interface OwnedNames {
  /** The headers that a response sets or removes. */
  readonly mutated: readonly string[];
  /** Those without which account-authz knows no token, no account, or no page that sends it. */
  readonly needed: readonly string[];
  /** Whether the host is a part of the decision. */
  readonly hasHosts: boolean;
  /** Those without which the service does not learn who calls. */
  readonly served: readonly string[];
  /** Why nothing may set the header before the check, or behind it; undefined if it may. */
  meaningOf(header: string, isBehind: boolean): string | undefined;
  /** What no client may send past the check, past a public route, and in trailers, in every spelling. A trusted proxy may say which prefix it cut. */
  held(
    refusesUnderscores: boolean,
    hasTrustedProxy: boolean,
  ): Readonly<Record<'always' | 'publicly' | 'inTrailers', readonly string[]>>;
}

// The characters of a header name besides letters, digits and hyphens (RFC 9110 section 5.6.2); Envoy has an action for the underscore.
const signs = [..."!#$%&'*+.^`|~"];
// They tell where the body ends, or which headers the next hop removes.
const framing = /^(?:content-length|transfer-encoding|connection|proxy-connection|upgrade)$/;

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
  const { identityPrefix: prefix, accountHeaders, forwardsToken, rewrittenHeaders, headers, shownHeaders } = policy;
  const { all: identity, lookAlikes } = policy.identity;
  const rewritten = headers.filter(({ allow }) => allow === 'rewrites').flatMap(each => each.names);
  const ofTokens = headers.filter(({ kind }) => kind === 'token');
  const tokens = ofTokens.flatMap(each => each.names);
  const publicTokens = ofTokens.filter(({ removed }) => removed === 'public').flatMap(each => each.names);
  const overrides = headers.filter(({ kind }) => kind === 'override').flatMap(each => each.names);
  const forPages = ['origin', 'upgrade'].filter(name => rewrittenHeaders.length > 0 && shownHeaders.includes(name));
  const heldBy = new Map<string, ReturnType<OwnedNames['held']>>();
  const prefixed = [...identity, `${prefix}email`, `${prefix}x`];
  return {
    mutated: [...identity, ...lookAlikes, ...removedByAllow(headers), ...rewritten],
    needed: [...accountHeaders, ...tokens, ...forPages],
    served: [...identity, ...accountHeaders, ...(forwardsToken ? tokens : [])],
    hasHosts: policy.hosts !== undefined,
    held(refusesUnderscores, hasTrustedProxy) {
      const key = `${refusesUnderscores} ${hasTrustedProxy}`;
      const known = heldBy.get(key);
      if (known !== undefined) return known;
      const spelled = (names: readonly string[]) => [...names, ...otherSpellings(names, !refusesUnderscores)];
      const always = [...prefixed, ...(refusesUnderscores ? [] : lookAlikes), ...spelled(overrides)];
      const held = {
        always,
        publicly: [
          ...always.filter(name => !(hasTrustedProxy && /^x.forwarded.prefix$/.test(name))),
          ...spelled(accountHeaders),
          ...publicTokens,
        ],
        inTrailers: [...prefixed, ...spelled([...accountHeaders, ...overrides, ...tokens])],
      };
      heldBy.set(key, held);
      return held;
    },
    meaningOf(header, isBehind) {
      const name = header.toLowerCase();
      // As CGI and WSGI read names (RFC 3875 section 4.1.18).
      const plain = name.replaceAll(/[^a-z0-9:]/g, '-');
      if (plain.startsWith(prefix)) return 'an identity header';
      if (accountHeaders.includes(plain)) return 'an account header';
      if (tokens.includes(plain)) return 'the token';
      if (name.startsWith(':') || name === 'host') return 'a part of the request line';
      if (framing.test(name)) return 'a header that frames the body or the connection';
      if (plain === 'origin' && forPages.includes(plain)) return 'the page that sends the token';
      if (isBehind && name === 'content-type' && shownHeaders.includes(name)) return 'the checked type of the body';
      return overrides.includes(plain) ? 'a header by which upstreams take another path, method or host' : undefined;
    },
  };
}
