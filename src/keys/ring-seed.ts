// The seeds of issuers that use the same keys of a key ring, one for each: loads the newest one that may be used, and writes in the
// order of the calls.
import type { PublicJwk } from './jwks.ts';
import { createKeySeed, type KeySeed, type KeySeedSettings } from './key-seed.ts';
import type { FirstKeys } from './key-selection.ts';
import type { Anchors, KeyTrust } from './key-trust.ts';

export interface RingSeed {
  load(): Promise<FirstKeys | undefined>;
  save(publicJwks: readonly PublicJwk[], anchors: Anchors, confirmedWallMs: number): void;
  remove(): void;
  /** Resolves when all writes are done. */
  written(): Promise<void>;
}

export interface RingSeedSettings extends Omit<KeySeedSettings, 'cacheDirectory' | 'issuer'> {
  readonly issuers: readonly string[];
  /** Undefined: no seed. */
  readonly cacheDirectory: string | undefined;
  readonly readOnly: boolean;
  readonly maxAgeMs: number;
  readonly trust: KeyTrust;
  readonly wallNow: () => number;
  /** Gets the first problem of each load and write, undefined if there is none. */
  readonly onResult: (problem: string | undefined) => void;
}

export function createRingSeed(settings: RingSeedSettings): RingSeed {
  const { issuers, cacheDirectory, readOnly, maxAgeMs, trust, wallNow, onResult } = settings;
  const seeds =
    cacheDirectory === undefined ? [] : issuers.map(issuer => createKeySeed({ ...settings, issuer, cacheDirectory }));
  let writing: Promise<void> = Promise.resolve();

  async function loadUsable(seed: KeySeed): Promise<FirstKeys | string | undefined> {
    const loaded = await seed.load();
    if (loaded.kind === 'none') return undefined;
    if (loaded.kind === 'problem') return loaded.problem;
    const covered = await trust.covers(loaded.anchors);
    if (covered === false) write([seed], each => each.remove());
    if (covered !== true) return 'seed not used: fetched under an authority that is not trusted any more';
    const ageMs = wallNow() - loaded.confirmedWallMs;
    // The negation also refuses NaN.
    if (!(ageMs >= 0 && ageMs < maxAgeMs)) return `seed not used: ${ageMs < 0 ? 'from the future' : 'too old'}`;
    return { keys: loaded.keySet.keys, ageMs, anchors: loaded.anchors };
  }

  function write(written: readonly KeySeed[], change: (seed: KeySeed) => Promise<string | undefined>): void {
    if (readOnly || written.length === 0) return;
    writing = writing.then(async () => {
      let problem: string | undefined;
      for (const seed of written) {
        const found = await change(seed);
        problem ??= found;
      }
      onResult(problem);
    });
  }

  return {
    async load() {
      let newest: FirstKeys | undefined;
      let problem: string | undefined;
      for (const seed of seeds) {
        const loaded = await loadUsable(seed);
        if (typeof loaded === 'string') problem ??= loaded;
        else if (loaded !== undefined && !(newest !== undefined && newest.ageMs <= loaded.ageMs)) newest = loaded;
      }
      if (newest === undefined) onResult(problem);
      return newest;
    },
    save: (publicJwks, anchors, confirmedWallMs) =>
      write(seeds, seed => seed.save(publicJwks, anchors, confirmedWallMs)),
    remove: () => write(seeds, seed => seed.remove()),
    written: () => writing,
  };
}
