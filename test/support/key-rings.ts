// Key rings without waits for the first keys and between polls of files: what a test does not name stays silent.
import { createFileWatch } from '../../src/files/file-watch.ts';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import type { IssuerRing, KeyRingObserver } from '../../src/keys/key-ring.ts';
import { createKeyRings, type KeyRings } from '../../src/keys/key-rings.ts';
import type { TokenKeyHeader } from '../../src/keys/token-key.ts';

type Options = Partial<Parameters<typeof createKeyRings>[0]>;

/** Adds the end of the rings to `ends`. */
export function startKeyRings(
  ends: (() => unknown)[],
  { observer, ...options }: Omit<Options, 'observer'> & { readonly observer?: Partial<KeyRingObserver> } = {},
): KeyRings {
  const rings = createKeyRings({
    observer: { onRefresh: () => undefined, onUsable: () => undefined, onWarning: () => undefined, ...observer },
    proxy: {},
    headStartMs: 0,
    watchFiles: createFileWatch({ pollMs: 20 }),
    ...options,
  });
  ends.push(() => rings.stop());
  return rings;
}

/** The header of a token with this kid. */
export function withKid(kid: string | undefined, alg = 'ES256'): TokenKeyHeader {
  return { alg, kid, x5t: undefined, x5tS256: undefined };
}

/** The usable key of this kid, without asking for a refresh. */
export function current(ring: IssuerRing | undefined, kid: string, alg?: string): VerificationKey | undefined {
  if (ring?.status().kids.includes(kid) !== true) return undefined;
  const lookup = ring.find(withKid(kid, alg));
  return 'kind' in lookup && lookup.kind === 'key' ? lookup.key : undefined;
}
