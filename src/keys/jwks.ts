// A strict reader of JWK Sets (RFC 7517): bytes and the issuer's algorithms in, verification keys and named refusals out.
// No I/O. What is ambiguous, weak, private or meant for another use never becomes a key; x5c and its kin are not looked at.
import { createHash } from 'node:crypto';
import { isJsonObject, parseStrictJson } from '../json/strict-json.ts';
import { isEd25519Point } from './ed25519-point.ts';
import { createSignatureCheck, type SignatureCheck } from './signature-check.ts';

/** Bound of a key set document, as it came and decompressed. */
export const maxKeySetBytes = 512 * 1024;

/** Bound of a kid in characters; no longer one is ever in a set. */
export const maxKidLength = 256;

const maxKeys = 100;

/**
 * A public key of an issuer. The object stays the same across refreshes for as long as the key under its kid and the
 * algorithms that it serves stay the same, so that identity tells whether something verified with it still counts.
 */
export interface VerificationKey {
  readonly kid: string;
  /** RFC 7638, SHA-256. */
  readonly thumbprint: string;
  /** The check by this key, if it may verify this algorithm for this issuer. */
  signatureCheckFor(alg: string): SignatureCheck | undefined;
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

/** The public members of a key in their canonical form, and nothing else that the issuer may have published. */
export interface PublicJwk {
  readonly [member: string]: string;
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
    | 'not a key set'
    | 'too many keys'
    | 'no usable key';
  readonly skipped: readonly SkippedKey[];
}

interface Material {
  readonly thumbprint: string;
  readonly members: PublicJwk;
  /** Every algorithm that this type of key can serve. */
  readonly fits: readonly string[];
}

interface Candidate extends Material {
  readonly kid: string;
  /** The `alg` member, where there is one. */
  readonly alg: string | undefined;
  readonly algorithms: readonly string[];
}

const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const ecCurves: ReadonlyMap<string, { readonly bytes: number; readonly alg: string }> = new Map([
  ['P-256', { bytes: 32, alg: 'ES256' }],
  ['P-384', { bytes: 48, alg: 'ES384' }],
  ['P-521', { bytes: 66, alg: 'ES512' }],
]);
// RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1; RFC 8037 section 2.
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/** Reads a set; keys that `previous` already holds unchanged are carried over as the same objects. Never throws. */
export function parseKeySet(
  bytes: Uint8Array,
  algorithms: readonly string[],
  previous: ReadonlyMap<string, VerificationKey> = new Map(),
): KeySet | KeySetProblem {
  if (bytes.length > maxKeySetBytes) return { kind: 'problem', problem: 'body too large', skipped: [] };
  const json = parseStrictJson(bytes);
  if (json.kind === 'problem') return { ...json, skipped: [] };
  const entries: unknown = isJsonObject(json.value) ? memberOf(json.value, 'keys') : undefined;
  if (!Array.isArray(entries)) return { kind: 'problem', problem: 'not a key set', skipped: [] };
  if (entries.length > maxKeys) return { kind: 'problem', problem: 'too many keys', skipped: [] };

  const skipped: SkippedKey[] = [];
  const candidates = withoutConflicts(collect(entries, algorithms, skipped), skipped);
  const keys = new Map<string, VerificationKey>();
  const publicJwks: PublicJwk[] = [];
  for (const sameKey of candidates) {
    const imported = importKey(sameKey, algorithms, previous);
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

function collect(entries: readonly unknown[], algorithms: readonly string[], skipped: SkippedKey[]): Candidate[] {
  const candidates: Candidate[] = [];
  const leaked = new Set<string>();
  for (const entry of entries) {
    if (!isJsonObject(entry)) {
      skipped.push({ kid: undefined, reason: 'not an object' });
      continue;
    }
    const candidate = toCandidate(entry, algorithms);
    if (typeof candidate !== 'string') {
      candidates.push(candidate);
      continue;
    }
    skipped.push({ kid: printableKid(entry), reason: candidate });
    if (candidate === 'private key published') {
      const material = readMaterial(entry);
      if (typeof material !== 'string') leaked.add(material.thumbprint);
    }
  }
  // Whoever read the set can sign with a leaked key, also where another entry shows its public half alone.
  return candidates.filter(({ kid, thumbprint }) => {
    if (leaked.has(thumbprint)) skipped.push({ kid, reason: 'private key published' });
    return !leaked.has(thumbprint);
  });
}

function toCandidate(jwk: Record<string, unknown>, algorithms: readonly string[]): Candidate | SkippedKeyReason {
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
  return usable.length === 0 ? 'algorithm not allowed' : { ...material, kid, alg, algorithms: usable };
}

// RFC 7517 sections 4.2 and 4.3: both members say what the key is for, each alone can exclude ours.
function isForSignatures(jwk: Record<string, unknown>): boolean {
  const use = memberOf(jwk, 'use');
  const operations = memberOf(jwk, 'key_ops');
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

function readMaterial(jwk: Record<string, unknown>): Material | SkippedKeyReason {
  switch (memberOf(jwk, 'kty')) {
    case 'RSA':
      return readRsa(jwk);
    case 'EC':
      return readEc(jwk);
    case 'OKP':
      return readOkp(jwk);
    default:
      return 'key type not supported';
  }
}

function readRsa(jwk: Record<string, unknown>): Material | SkippedKeyReason {
  const modulus = readBase64Url(memberOf(jwk, 'n'));
  const exponent = readBase64Url(memberOf(jwk, 'e'));
  if (modulus === undefined || exponent === undefined) return 'malformed';
  const n = withoutLeadingZeros(modulus);
  const bits = n.length * 8 - Math.clz32(n[0] ?? 0) + 24;
  if (bits < 2048 || bits > 8192 || isEven(n)) return 'RSA modulus';
  const e = withoutLeadingZeros(exponent);
  // The upper bound keeps verification cheap; an exponent beyond 31 bits is refused by other verifiers too (Go crypto/rsa).
  const value = e.reduce((sum, byte) => sum * 256 + byte, 0);
  if (value < 65537 || value > 0x7fffffff || isEven(e)) return 'RSA exponent';
  return toMaterial({ e: e.toString('base64url'), kty: 'RSA', n: n.toString('base64url') }, rsaAlgorithms);
}

function readEc(jwk: Record<string, unknown>): Material | SkippedKeyReason {
  const crv = memberOf(jwk, 'crv');
  const curve = typeof crv === 'string' ? ecCurves.get(crv) : undefined;
  if (typeof crv !== 'string' || curve === undefined) return 'curve not supported';
  const x = readBase64Url(memberOf(jwk, 'x'));
  const y = readBase64Url(memberOf(jwk, 'y'));
  // RFC 7518 section 6.2.1.2: the full size of a coordinate, no more and no less.
  if (x?.length !== curve.bytes || y?.length !== curve.bytes) return 'malformed';
  const members = { crv, kty: 'EC', x: x.toString('base64url'), y: y.toString('base64url') };
  return toMaterial(members, [curve.alg]);
}

function readOkp(jwk: Record<string, unknown>): Material | SkippedKeyReason {
  if (memberOf(jwk, 'crv') !== 'Ed25519') return 'curve not supported';
  const x = readBase64Url(memberOf(jwk, 'x'));
  if (x?.length !== 32) return 'malformed';
  if (!isEd25519Point(x)) return 'point off the curve';
  return toMaterial({ crv: 'Ed25519', kty: 'OKP', x: x.toString('base64url') }, ['EdDSA', 'Ed25519']);
}

// RFC 7638 section 3: the required members in lexicographic order, which is the order they are given in above.
function toMaterial(members: PublicJwk, fits: readonly string[]): Material {
  const thumbprint = createHash('sha256').update(JSON.stringify(members)).digest('base64url');
  return { thumbprint, members, fits };
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

function importKey(
  sameKey: readonly [Candidate, ...Candidate[]],
  configured: readonly string[],
  previous: ReadonlyMap<string, VerificationKey>,
): VerificationKey | SkippedKeyReason {
  const [{ kid, thumbprint, members }] = sameKey;
  const algorithms = new Set(sameKey.flatMap(candidate => candidate.algorithms));
  const known = previous.get(kid);
  const isUnchanged = configured.every(alg => (known?.signatureCheckFor(alg) !== undefined) === algorithms.has(alg));
  if (known?.thumbprint === thumbprint && isUnchanged) return known;
  try {
    const checks = new Map([...algorithms].map(alg => [alg, createSignatureCheck(members, alg)]));
    return { kid, thumbprint, signatureCheckFor: alg => checks.get(alg) };
  } catch {
    // Sizes and encodings were checked above, so what is left for a curve is the equation (SP 800-56A section 5.6.2.3).
    return members.kty === 'EC' ? 'point off the curve' : 'malformed';
  }
}

function toPublicJwk({ kid, alg, members }: Candidate): PublicJwk {
  return { ...members, kid, use: 'sig', ...(alg === undefined ? {} : { alg }) };
}

function memberOf(object: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function printableKid(jwk: Record<string, unknown>): string | undefined {
  const kid = memberOf(jwk, 'kid');
  return typeof kid === 'string' ? kid.slice(0, maxKidLength) : undefined;
}

// RFC 7515 section 2: no padding, no other alphabet; one spelling for each value.
function readBase64Url(value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_-]{1,4096}$/.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64url');
  return bytes.toString('base64url') === value ? bytes : undefined;
}

function withoutLeadingZeros(bytes: Buffer): Buffer {
  const start = bytes.findIndex(byte => byte !== 0);
  return start === -1 ? Buffer.alloc(0) : bytes.subarray(start);
}

function isEven(bytes: Buffer): boolean {
  return ((bytes.at(-1) ?? 0) & 1) === 0;
}
