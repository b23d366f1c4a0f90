// The seeds of a key ring, one for each of its issuers: loads the newest one that may be used, and writes in the order of the calls.
import type { Problem } from '../text/problem.ts';
import type { VerificationKey } from './jwks.ts';
import { type Authorities, hasAll } from './key-authorities.ts';
import type { PublicJwk } from './key-material.ts';
import { createKeySeed, type KeySeed, type KeySeedSettings } from './key-seed.ts';

/** Keys that a ring starts with: from a seed or from the ring before. */
export interface InheritedKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** Since the start of the fetch that confirmed them. */
  readonly ageMs: number;
  /** Those of caFile when that fetch began. */
  readonly authorities: Authorities;
}

interface RingSeed {
  /** `authorities` are those of caFile now. */
  load(authorities: Authorities | Problem): Promise<InheritedKeys | undefined>;
  save(publicJwks: readonly PublicJwk[], authorities: Authorities, confirmedWallMs: number): void;
  remove(): void;
  /** Resolves when all writes are done. */
  written(): Promise<void>;
}

interface RingSeedSettings extends Omit<KeySeedSettings, 'cacheDirectory' | 'issuer'> {
  readonly issuers: readonly string[];
  /** Undefined: no seed. */
  readonly cacheDirectory: string | undefined;
  readonly readOnly: boolean;
  readonly maxAgeMs: number;
  readonly wallNow: () => number;
  /** Gets the first problem of each load that found no seed and of each write, undefined if there is none. */
  readonly onResult: (problem: string | undefined) => void;
}

export function createRingSeed(settings: RingSeedSettings): RingSeed {
  const { issuers, cacheDirectory, readOnly, maxAgeMs, wallNow, onResult } = settings;
  const seeds =
    cacheDirectory === undefined ? [] : issuers.map(issuer => createKeySeed({ ...settings, issuer, cacheDirectory }));
  let writing: Promise<void> = Promise.resolve();

  async function loadUsable(
    seed: KeySeed,
    trusted: Authorities | Problem,
  ): Promise<InheritedKeys | string | undefined> {
    const loaded = await seed.load();
    if (loaded.kind === 'none') return undefined;
    if (loaded.kind === 'problem') return loaded.problem;
    const { keySet, authorities, confirmedWallMs } = loaded;
    if ('kind' in trusted || !hasAll(trusted, authorities))
      return 'seed not used: fetched under an authority that is not trusted any more';
    const ageMs = wallNow() - confirmedWallMs;
    // The negation also refuses NaN.
    if (!(ageMs >= 0 && ageMs < maxAgeMs)) return `seed not used: ${ageMs < 0 ? 'from the future' : 'too old'}`;
    return { keys: keySet.keys, ageMs, authorities };
  }

  function write(change: (seed: KeySeed) => Promise<string | undefined>): void {
    if (readOnly || seeds.length === 0) return;
    writing = writing.then(async () => {
      let problem: string | undefined;
      for (const seed of seeds) {
        const found = await change(seed);
        problem ??= found;
      }
      onResult(problem);
    });
  }

  return {
    async load(trusted) {
      let newest: InheritedKeys | undefined;
      let problem: string | undefined;
      for (const seed of seeds) {
        const loaded = await loadUsable(seed, trusted);
        if (typeof loaded === 'string') problem ??= loaded;
        else if (loaded !== undefined && !(newest !== undefined && newest.ageMs <= loaded.ageMs)) newest = loaded;
      }
      if (newest === undefined) onResult(problem);
      return newest;
    },
    save: (publicJwks, authorities, confirmedWallMs) =>
      write(seed => seed.save(publicJwks, authorities, confirmedWallMs)),
    remove: () => write(seed => seed.remove()),
    written: () => writing,
  };
}
