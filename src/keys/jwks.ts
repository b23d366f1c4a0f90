// Parses a JWK Set (RFC 7517) strictly: bytes and the issuer's algorithms in, verification keys and skipped keys with reasons out.
// No I/O. Ambiguous, weak and private keys, and keys for another use, are skipped; x5c and similar members are ignored.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CryptoKey, calculateJwkThumbprint, importJWK } from 'jose';
import type { JsonBounds } from '../json/json-bounds.ts';
import { isJsonObject, memberOf, parseBoundedJson } from '../json/strict-json.ts';
import { type Problem, problem } from '../text/problem.ts';
import { type Material, type PublicJwk, readMaterial } from './key-material.ts';

/** Maximum size of a key set document, compressed and decompressed. */
export const maxKeySetBytes = 512 * 1024;

/** Maximum length of a kid in characters; a set holds no longer one. */
export const maxKidLength = 256;

/** Far above an honest document: a set of 100 keys with certificate chains has 3,000 values. */
export const documentBounds: JsonBounds = { maxDepth: 64, maxValues: 10_000 };

const maxKeys = 100;

/** A public key of an issuer. A refresh keeps the object while key and algorithms stay the same: caches compare identity. */
export interface VerificationKey {
  readonly kid: string;
  /** RFC 7638, SHA-256. */
  readonly thumbprint: string;
  /** The key imported for this algorithm; undefined if the key does not serve it. */
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
  | 'two keys under one kid';

export interface SkippedKey {
  readonly kid: string | undefined;
  readonly reason: SkippedKeyReason;
}

export interface KeySet {
  readonly kind: 'keySet';
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly skipped: readonly SkippedKey[];
  /** The keys in use as JWKs, for the seed on disk. */
  readonly publicJwks: readonly PublicJwk[];
}

export interface KeySetProblem extends Problem {
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

interface Candidate {
  readonly kid: string;
  readonly thumbprint: string;
  readonly members: PublicJwk;
  readonly algorithms: readonly string[];
  /** One for each entry of the set that holds this key under this kid. */
  readonly publicJwks: readonly PublicJwk[];
}

// RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1; RFC 8037 section 2.
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/**
 * Keys that `previous` already holds unchanged are reused as the same objects. Never rejects. Each import has its own turn of the
 * event loop, so that checks go on: importing a P-521 key takes a millisecond.
 */
export async function parseKeySet(
  bytes: Uint8Array,
  algorithms: readonly string[],
  previous: ReadonlyMap<string, VerificationKey> = new Map(),
): Promise<KeySet | KeySetProblem> {
  if (bytes.length > maxKeySetBytes) return { ...problem('body too large'), skipped: [] };
  const json = parseBoundedJson(bytes, documentBounds);
  if (json.kind === 'problem') return { ...json, skipped: [] };
  const entries: unknown = memberOf(json.value, 'keys');
  if (!Array.isArray(entries)) return { ...problem('not a key set'), skipped: [] };
  if (entries.length > maxKeys) return { ...problem('too many keys'), skipped: [] };

  const skipped: SkippedKey[] = [];
  const candidates = mergeByKid(await collect(entries, algorithms, skipped), skipped);
  const keys = new Map<string, VerificationKey>();
  const publicJwks: PublicJwk[] = [];
  for (const candidate of candidates) {
    const unchanged = findUnchanged(candidate, algorithms, previous.get(candidate.kid));
    if (unchanged === undefined) await nextTurn();
    const key = unchanged ?? (await importKey(candidate));
    if (typeof key === 'string') {
      skipped.push({ kid: candidate.kid, reason: key });
      continue;
    }
    keys.set(key.kid, key);
    publicJwks.push(...candidate.publicJwks);
  }
  if (keys.size === 0) return { ...problem('no usable key'), skipped };
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
  // A leaked key is also skipped where another entry holds its public half only: whoever read the set can sign with it.
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
  const { members } = material;
  const publicJwk = { ...members, kid, use: 'sig', ...(alg === undefined ? {} : { alg }) };
  return { kid, thumbprint: await thumbprintOf(material), members, algorithms: usable, publicJwks: [publicJwk] };
}

// RFC 7517 sections 4.2 and 4.3: each of the two members can exclude verification.
function isForSignatures(jwk: Record<string, unknown>): boolean {
  const use = memberOf(jwk, 'use');
  const operations = memberOf(jwk, 'key_ops');
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

/** One candidate for each kid. The same key twice is one key; a kid of two different keys is skipped. */
function mergeByKid(candidates: readonly Candidate[], skipped: SkippedKey[]): readonly Candidate[] {
  const byKid = new Map<string, Candidate>();
  const conflicts = new Set<string>();
  for (const candidate of candidates) {
    const { kid } = candidate;
    const known = byKid.get(kid) ?? { ...candidate, algorithms: [], publicJwks: [] };
    if (known.thumbprint !== candidate.thumbprint) conflicts.add(kid);
    byKid.set(kid, {
      ...known,
      algorithms: [...known.algorithms, ...candidate.algorithms],
      publicJwks: [...known.publicJwks, ...candidate.publicJwks],
    });
  }
  for (const kid of conflicts) skipped.push({ kid, reason: 'two keys under one kid' });
  return [...byKid.values()].filter(({ kid }) => !conflicts.has(kid));
}

function findUnchanged(
  { thumbprint, algorithms }: Candidate,
  configured: readonly string[],
  known: VerificationKey | undefined,
): VerificationKey | undefined {
  const isUnchanged = configured.every(alg => (known?.cryptoKeyFor(alg) !== undefined) === algorithms.includes(alg));
  return known?.thumbprint === thumbprint && isUnchanged ? known : undefined;
}

async function importKey({
  kid,
  thumbprint,
  members,
  algorithms,
}: Candidate): Promise<VerificationKey | SkippedKeyReason> {
  try {
    const cryptoKeys = new Map<string, CryptoKey>();
    for (const alg of new Set(algorithms)) {
      const imported = await importJWK({ ...members }, alg);
      if (!(imported instanceof Uint8Array)) cryptoKeys.set(alg, imported);
    }
    return { kid, thumbprint, cryptoKeyFor: alg => cryptoKeys.get(alg) };
  } catch {
    // Sizes and encodings are checked before. What is left for a curve is the equation (SP 800-56A section 5.6.2.3).
    return members.kty === 'EC' ? 'point off the curve' : 'malformed';
  }
}

function thumbprintOf({ members }: Material): Promise<string> {
  return calculateJwkThumbprint({ ...members });
}

function printableKid(jwk: Record<string, unknown>): string | undefined {
  const kid = memberOf(jwk, 'kid');
  return typeof kid === 'string' ? kid.slice(0, maxKidLength) : undefined;
}
