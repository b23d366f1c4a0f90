// Key rings with fixed keys, which fetch nothing.
import type { Config } from '../../src/config/schema.ts';
import type { IssuerRing } from '../../src/keys/issuer-ring.ts';
import type { VerificationKey } from '../../src/keys/jwks.ts';

/** One for each issuer, all with the same keys. */
export function fixedKeyRings(
  { issuers }: Pick<Config, 'issuers'>,
  keys: ReadonlyMap<string, VerificationKey>,
): ReadonlyMap<string, IssuerRing> {
  const notAsked = (): never => {
    throw new Error('not asked of these keys');
  };
  return new Map(
    issuers.map(({ issuer }) => [
      issuer,
      {
        issuer,
        current: kid => keys.get(kid),
        find: kid => {
          const key = keys.get(kid);
          return key === undefined ? { kind: 'unknown' } : { kind: 'key', key };
        },
        status: notAsked,
      },
    ]),
  );
}
