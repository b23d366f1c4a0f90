// Key rings with fixed keys, which fetch nothing.
import type { Config } from '../../src/config/schema.ts';
import type { KeySet } from '../../src/keys/jwks.ts';
import type { IssuerRing } from '../../src/keys/key-ring.ts';
import { findTokenKey } from '../../src/keys/token-key.ts';

/** One for each issuer, all with the same keys. */
export function fixedKeyRings(
  { issuers }: Pick<Config, 'issuers'>,
  set: Pick<KeySet, 'keys' | 'kids'>,
): ReadonlyMap<string, IssuerRing> {
  const notAsked = (): never => {
    throw new Error('not asked of these keys');
  };
  return new Map(
    issuers.map(({ issuer }) => [
      issuer,
      { issuer, isInForce: key => set.keys.has(key), find: header => findTokenKey(set, header), status: notAsked },
    ]),
  );
}
