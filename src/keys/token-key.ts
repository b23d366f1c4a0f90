// Finds the key of a token in a usable key set.
import type { DetailOf } from '../authz/checks.ts';
import { certificateName, type KeySet, type VerificationKey } from './jwks.ts';

/** The members of a token's header that choose its key. */
export interface TokenKeyHeader {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly x5t: string | undefined;
  readonly x5tS256: string | undefined;
}

export type TokenKey =
  | { readonly kind: 'key'; readonly key: VerificationKey }
  | { readonly kind: 'none'; readonly detail: DetailOf<'token_invalid'> };

/** The one key that fits the algorithm and has the kid, any kid where the token has none. Of several, the one that the thumbprints name. */
export function findTokenKey({ keys, kids }: Pick<KeySet, 'keys' | 'kids'>, header: TokenKeyHeader): TokenKey {
  const { alg, kid, x5t, x5tS256 } = header;
  const fitting: VerificationKey[] = [];
  for (const key of keys.keys())
    if ((kid ?? key.kid) === key.kid && key.cryptoKeyFor(alg) !== undefined) fitting.push(key);
  const [first] = fitting;
  if (first === undefined) {
    if (kid === undefined) return { kind: 'none', detail: 'no key of the issuer is for this algorithm' };
    return {
      kind: 'none',
      detail: kids.has(kid) ? 'the key is not for this algorithm' : 'kid is not a key of the issuer',
    };
  }
  if (isOneKey(fitting)) return { kind: 'key', key: first };
  const names = [
    ...(x5t === undefined ? [] : [certificateName('x5t', x5t)]),
    ...(x5tS256 === undefined ? [] : [certificateName('x5t#S256', x5tS256)]),
  ];
  const named = fitting.filter(key => names.some(name => keys.get(key)?.has(name)));
  const [key] = named;
  if (key !== undefined && isOneKey(named)) return { kind: 'key', key };
  return { kind: 'none', detail: 'several keys of the issuer fit, and neither kid nor x5t names one' };
}

/** The same key under several kids counts once. */
function isOneKey(keys: readonly VerificationKey[]): boolean {
  return keys.every(({ thumbprint }) => thumbprint === keys[0]?.thumbprint);
}
