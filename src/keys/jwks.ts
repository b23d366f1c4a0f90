// A strict reader of JWK Sets (RFC 7517): bytes and the issuer's algorithms in, verification keys and named refusals out.
// No I/O. What is ambiguous, weak, private or meant for another use never becomes a key; x5c and its kin are not looked at.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CryptoKey, calculateJwkThumbprint, importJWK } from 'jose';
import type { JsonBounds } from '../json/json-bounds.ts';
import { isJsonObject, memberOf, parseBoundedJson } from '../json/strict-json.ts';
import { type Material, type PublicJwk, readMaterial } from './key-material.ts';

export type { PublicJwk } from './key-material.ts';

/** Bound of a key set document, as it came and decompressed. */
export const maxKeySetBytes = 512 * 1024;

/** Bound of a kid in characters; no longer one is ever in a set. */
export const maxKidLength = 256;

/** Bounds of a document from an issuer, far above an honest one: a set of 100 keys with certificate chains has 3,000 values. */
export const documentBounds: JsonBounds = { maxDepth: 64, maxValues: 10_000 };

const maxKeys = 100;

/**
 * A public key of an issuer. The object stays the same across refreshes for as long as the key under its kid and the
 * algorithms that it serves stay the same, so that identity tells whether something verified with it still counts.
 */
export interface VerificationKey {
  readonly kid: string;
  /** RFC 7638, SHA-256. */
  readonly thumbprint: string;
  /** The key imported for this algorithm; undefined where it may not verify that for this issuer. */
  cryptoKeyFor(alg: string): CryptoKey | undefined;
}

export type SkippedKeyReason =
  | 'not an object'
  | 'no kid'
  | 'kid too long'
  | 'symmetric key'
  | 'private key published'
  | 'for another use'
  | 'key type not supported'
  | 'curve not supported'
  | 'algorithm not allowed'
  | 'malformed'
  | 'RSA modulus'
  | 'RSA exponent'
  | 'point off the curve'
  | 'point of small order'
  | 'two keys under one kid';

export interface SkippedKey {
  readonly kid: string | undefined;
  readonly reason: SkippedKeyReason;
}

export interface KeySet {
  readonly kind: 'keySet';
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly skipped: readonly SkippedKey[];
  /** The keys in use as JWKs, for writing the set down. */
  readonly publicJwks: readonly PublicJwk[];
}

export interface KeySetProblem {
  readonly kind: 'problem';
  readonly problem:
    | 'body too large'
    | 'not UTF-8'
    | 'not JSON'
    | 'a member twice'
    | 'nested too deep'
    | 'too many values'
    | 'not a key set'
    | 'too many keys'
    | 'no usable key';
  readonly skipped: readonly SkippedKey[];
}

interface Candidate extends Material {
  readonly thumbprint: string;
  readonly kid: string;
  /** The `alg` member, where there is one. */
  readonly alg: string | undefined;
  readonly algorithms: readonly string[];
}

// RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1; RFC 8037 section 2.
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/**
 * Reads a set; keys that `previous` already holds unchanged are carried over as the same objects. Never rejects. Each import has a turn
 * of the event loop to itself, since that of a P-521 key takes a millisecond: whatever an issuer publishes, checks go on meanwhile.
 */
export async function parseKeySet(
  bytes: Uint8Array,
  algorithms: readonly string[],
  previous: ReadonlyMap<string, VerificationKey> = new Map(),
): Promise<KeySet | KeySetProblem> {
  if (bytes.length > maxKeySetBytes) return { kind: 'problem', problem: 'body too large', skipped: [] };
  const json = parseBoundedJson(bytes, documentBounds);
  if (json.kind === 'problem') return { ...json, skipped: [] };
  const entries: unknown = memberOf(json.value, 'keys');
  if (!Array.isArray(entries)) return { kind: 'problem', problem: 'not a key set', skipped: [] };
  if (entries.length > maxKeys) return { kind: 'problem', problem: 'too many keys', skipped: [] };

  const skipped: SkippedKey[] = [];
  const candidates = withoutConflicts(await collect(entries, algorithms, skipped), skipped);
  const keys = new Map<string, VerificationKey>();
  const publicJwks: PublicJwk[] = [];
  for (const sameKey of candidates) {
    const unchanged = findUnchanged(sameKey, algorithms, previous);
    if (unchanged === undefined) await nextTurn();
    const imported = unchanged ?? (await importKey(sameKey));
    if (typeof imported === 'string') {
      skipped.push({ kid: sameKey[0].kid, reason: imported });
      continue;
    }
    keys.set(imported.kid, imported);
    publicJwks.push(...sameKey.map(toPublicJwk));
  }
  if (keys.size === 0) return { kind: 'problem', problem: 'no usable key', skipped };
  return { kind: 'keySet', keys, skipped, publicJwks };
}

async function collect(
  entries: readonly unknown[],
  algorithms: readonly string[],
  skipped: SkippedKey[],
): Promise<Candidate[]> {
  const candidates: Candidate[] = [];
  const leaked = new Set<string>();
  for (const entry of entries) {
    if (!isJsonObject(entry)) {
      skipped.push({ kid: undefined, reason: 'not an object' });
      continue;
    }
    const candidate = await toCandidate(entry, algorithms);
    if (typeof candidate !== 'string') {
      candidates.push(candidate);
      continue;
    }
    skipped.push({ kid: printableKid(entry), reason: candidate });
    if (candidate === 'private key published') {
      const material = readMaterial(entry);
      if (typeof material !== 'string') leaked.add(await thumbprintOf(material));
    }
  }
  // Whoever read the set can sign with a leaked key, also where another entry shows its public half alone.
  return candidates.filter(({ kid, thumbprint }) => {
    if (leaked.has(thumbprint)) skipped.push({ kid, reason: 'private key published' });
    return !leaked.has(thumbprint);
  });
}

async function toCandidate(
  jwk: Record<string, unknown>,
  algorithms: readonly string[],
): Promise<Candidate | SkippedKeyReason> {
  if (memberOf(jwk, 'kty') === 'oct') return 'symmetric key';
  if (privateMembers.some(name => Object.hasOwn(jwk, name))) return 'private key published';
  const kid = memberOf(jwk, 'kid');
  if (typeof kid !== 'string' || kid === '') return 'no kid';
  if (kid.length > maxKidLength) return 'kid too long';
  if (!isForSignatures(jwk)) return 'for another use';
  const alg = memberOf(jwk, 'alg');
  if (alg !== undefined && typeof alg !== 'string') return 'malformed';
  const material = readMaterial(jwk);
  if (typeof material === 'string') return material;
  const usable = material.fits.filter(name => algorithms.includes(name) && (alg === undefined || alg === name));
  if (usable.length === 0) return 'algorithm not allowed';
  return { ...material, thumbprint: await thumbprintOf(material), kid, alg, algorithms: usable };
}

// RFC 7517 sections 4.2 and 4.3: both members say what the key is for, each alone can exclude ours.
function isForSignatures(jwk: Record<string, unknown>): boolean {
  const use = memberOf(jwk, 'use');
  const operations = memberOf(jwk, 'key_ops');
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

/** Candidates by kid, each list one and the same key; a kid that names two keys is nobody's. */
function withoutConflicts(candidates: readonly Candidate[], skipped: SkippedKey[]): [Candidate, ...Candidate[]][] {
  const byKid = new Map<string, [Candidate, ...Candidate[]]>();
  for (const candidate of candidates) {
    const sameKid = byKid.get(candidate.kid);
    if (sameKid === undefined) byKid.set(candidate.kid, [candidate]);
    else sameKid.push(candidate);
  }
  return [...byKid.values()].filter(sameKid => {
    const [{ kid, thumbprint }] = sameKid;
    const isOneKey = sameKid.every(candidate => candidate.thumbprint === thumbprint);
    if (!isOneKey) skipped.push({ kid, reason: 'two keys under one kid' });
    return isOneKey;
  });
}

function findUnchanged(
  sameKey: readonly [Candidate, ...Candidate[]],
  configured: readonly string[],
  previous: ReadonlyMap<string, VerificationKey>,
): VerificationKey | undefined {
  const [{ kid, thumbprint }] = sameKey;
  const algorithms = algorithmsOf(sameKey);
  const known = previous.get(kid);
  const isUnchanged = configured.every(alg => (known?.cryptoKeyFor(alg) !== undefined) === algorithms.has(alg));
  return known?.thumbprint === thumbprint && isUnchanged ? known : undefined;
}

async function importKey(sameKey: readonly [Candidate, ...Candidate[]]): Promise<VerificationKey | SkippedKeyReason> {
  const [{ kid, thumbprint, members }] = sameKey;
  try {
    const cryptoKeys = new Map<string, CryptoKey>();
    for (const alg of algorithmsOf(sameKey)) {
      const imported = await importJWK({ ...members }, alg);
      if (!(imported instanceof Uint8Array)) cryptoKeys.set(alg, imported);
    }
    return { kid, thumbprint, cryptoKeyFor: alg => cryptoKeys.get(alg) };
  } catch {
    // Sizes and encodings were checked before, so what is left for a curve is the equation (SP 800-56A section 5.6.2.3).
    return members.kty === 'EC' ? 'point off the curve' : 'malformed';
  }
}

function algorithmsOf(sameKey: readonly Candidate[]): ReadonlySet<string> {
  return new Set(sameKey.flatMap(candidate => candidate.algorithms));
}

function thumbprintOf({ members }: Material): Promise<string> {
  return calculateJwkThumbprint({ ...members });
}

function toPublicJwk({ kid, alg, members }: Candidate): PublicJwk {
  return { ...members, kid, use: 'sig', ...(alg === undefined ? {} : { alg }) };
}

function printableKid(jwk: Record<string, unknown>): string | undefined {
  const kid = memberOf(jwk, 'kid');
  return typeof kid === 'string' ? kid.slice(0, maxKidLength) : undefined;
}
