// Stores the last good key set of a ring on disk, for a start while its issuers are down: bound to the issuers and to the location of the
// keys, and parsed as strictly as an answer from the network.
import { createDocumentSeed, digestOf, type SeedSettings } from '../http/document-seed.ts';
import { maxDocumentBytes } from '../http/fetch.ts';
import { itemsOf } from '../json/strict-json.ts';
import { type KeySet, parseKeySet } from './jwks.ts';
import type { Keys } from './key-set-machine.ts';

/** Keys that a ring starts with: from a seed or from the ring before. */
export interface InheritedKeys {
  readonly set: Keys;
  /** Since the start of the fetch that confirmed them. */
  readonly ageMs: number;
}

/** `location`: see locationKey. */
export interface KeySeedSettings extends SeedSettings {
  /** Of the ring. A seed is used if it was written for one of them. */
  readonly issuers: readonly string[];
  readonly algorithms: readonly string[];
}

// The set is a string in JSON, whose escapes can double it.
const maxBytes = 2 * maxDocumentBytes + 16 * 1024;
// Older versions had the certificate authorities of their fetch.
const version = 5;

export function createKeySeed(settings: KeySeedSettings) {
  const { issuers, algorithms } = settings;
  const { load, save, written } = createDocumentSeed({
    ...settings,
    version,
    maxBytes,
    async restore(field) {
      const jwks = field('jwks');
      if (typeof jwks !== 'string') return 'not a seed';
      if (!issuers.some(issuer => itemsOf(field('issuers')).includes(issuer))) return 'of another issuer or source';
      if (field('digest') !== digestOf(jwks)) return 'damaged';
      const set = await parseKeySet(Buffer.from(jwks), algorithms);
      return set.kind === 'problem' ? set.problem : { set };
    },
  });
  return {
    load,
    save(keys: KeySet['publicJwks'], confirmedWallMs: number): void {
      const jwks = JSON.stringify({ keys });
      save({ issuers, digest: digestOf(jwks), jwks }, confirmedWallMs);
    },
    written,
  };
}
