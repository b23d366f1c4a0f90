// Which header names matter to the check, and in what way. Derived from the configuration, never repeated here.
import type { Config } from '../config/schema.ts';
import { createIdentityHeaders } from '../envoy/identity-headers.ts';

/** The parts of the configuration that Envoy's has to agree with. */
export type CheckedConfig = Pick<Config, 'listen' | 'routes' | 'account' | 'identityHeaders' | 'token'>;

export interface OwnedNames {
  /** What an allow sets. */
  readonly identity: readonly string[];
  /** Spellings with `_` of what an allow sets; each allow removes them. */
  readonly lookAlikes: readonly string[];
  /** What a client may send under our prefix beside that: samples. */
  readonly strays: readonly string[];
  /** What account-authz does to a request: sets and removes. */
  readonly mutated: readonly string[];
  /** What makes an upstream act on another path or method than the one that was checked. */
  readonly overrides: readonly string[];
  /** What must reach account-authz. */
  readonly account: readonly string[];
  /** Why nothing may touch the header once a request has been checked; undefined where it may. */
  meaningOf(header: string, change: 'add' | 'remove'): string | undefined;
}

const overrides = [
  'x-original-url',
  'x-rewrite-url',
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
] as const;

// What may stand in a header name beside letters, digits and hyphens (RFC 9110 section 5.6.2); the underscore has an action of its own.
const signs = [..."!#$%&'*+.^`|~"];

/** Samples of what CGI and its heirs take for one of these names: each other sign for all hyphens, a dot for the first or the last. */
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

export function createOwnedNames({ identityHeaders: prefix, token, account }: CheckedConfig): OwnedNames {
  const { names, lookAlikes } = createIdentityHeaders(prefix);
  const identity = [...names.values()];
  const accountHeaders = account.headers.map(header => header.toLowerCase());
  const strays = [`${prefix}email`, `${prefix}x`];
  return {
    identity,
    lookAlikes,
    strays,
    mutated: [...identity, ...lookAlikes, ...(token.forward ? [] : ['authorization'])],
    overrides,
    account: accountHeaders,
    meaningOf(header, change) {
      const name = header.toLowerCase();
      // As CGI and its heirs read names (RFC 3875 section 4.1.18).
      const plain = name.replaceAll(/[^a-z0-9:]/g, '-');
      if (plain.startsWith(prefix)) return 'an identity header';
      if (accountHeaders.includes(plain)) return 'an account header';
      // Removed by account-authz already, unless it is told to leave it.
      if (plain === 'authorization') return change === 'add' || token.forward ? 'the token' : undefined;
      if (name.startsWith(':') || name === 'host') return 'a part of the request line';
      return overrides.some(each => each === plain)
        ? 'a header by which upstreams take another path or method'
        : undefined;
    },
  };
}
