// The seed of a key ring, if it has one: reports problems and writes in the order of the calls.
import type { PublicJwk } from './jwks.ts';
import { createKeySeed, type KeySeedSettings, type LoadedSeed } from './key-seed.ts';
import type { Anchors } from './key-trust.ts';

export interface RingSeed {
  load(): Promise<LoadedSeed>;
  save(publicJwks: readonly PublicJwk[], anchors: Anchors, confirmedWallMs: number): void;
  remove(): void;
  /** Resolves when all writes are done. */
  written(): Promise<void>;
}

export interface RingSeedSettings extends Omit<KeySeedSettings, 'cacheDirectory'> {
  /** Undefined: no seed. */
  readonly cacheDirectory: string | undefined;
  readonly readOnly: boolean;
  /** Gets the problem of each write, undefined if it succeeded. */
  readonly onResult: (problem: string | undefined) => void;
}

export function createRingSeed({ cacheDirectory, readOnly, onResult, ...settings }: RingSeedSettings): RingSeed {
  const seed = cacheDirectory === undefined ? undefined : createKeySeed({ ...settings, cacheDirectory });
  const writable = readOnly ? undefined : seed;
  let writing: Promise<void> = Promise.resolve();
  return {
    load: async () => seed?.load() ?? { kind: 'none' },
    save(publicJwks, anchors, confirmedWallMs) {
      if (writable === undefined) return;
      writing = writing.then(async () => onResult(await writable.save(publicJwks, anchors, confirmedWallMs)));
    },
    remove() {
      if (writable === undefined) return;
      writing = writing.then(async () => onResult(await writable.remove()));
    },
    written: () => writing,
  };
}
