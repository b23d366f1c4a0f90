// Parses a JWK Set (RFC 7517): bytes and the issuer's algorithms in, verification keys and skipped keys with reasons out. No I/O.
// Weak and private keys and keys for another use are skipped; x5c and unknown members are ignored. What is written in another way and
// still means one thing is read: a byte order mark, padding, a coordinate without its leading zeros, null for what is absent.
import { hash, KeyObject } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { importJWK } from 'jose';
import { maxDocumentBytes } from '../http/fetch.ts';
import { isJsonObject, itemsOf, type JsonValue, memberOf, nameOfType, parseBoundedJson } from '../json/strict-json.ts';
import { listWords, printable } from '../text/printable.ts';
import { type Problem, problem } from '../text/problem.ts';

/** Maximum length of a kid in characters; a set holds no longer one. */
export const maxKidLength = 256;

// Far above an honest document: a set of 100 keys with certificate chains has 3,000 values.
const documentBounds = { maxDepth: 64, maxValues: 10_000 };
const byteOrderMark = [0xef, 0xbb, 0xbf];
const maxKeys = 100;
const maxNamedKeys = 20;
const maxShownLength = 64;

/** A public key of an issuer. A refresh keeps the object while kid, key and algorithms stay the same: caches compare identity. */
export interface VerificationKey {
  readonly kid: string | undefined;
  /** RFC 7638, SHA-256. */
  readonly thumbprint: string;
  /** The key imported for this algorithm; undefined if the key does not serve it. */
  cryptoKeyFor(alg: string): KeyObject | undefined;
}

export interface KeySet {
  readonly kind: 'keySet';
  /** Each with the thumbprints of its certificate that the set has, see certificateName. */
  readonly keys: ReadonlyMap<VerificationKey, ReadonlySet<string>>;
  readonly kids: ReadonlySet<string>;
  readonly skipped: readonly SkippedKey[];
  /** The keys in use as JWKs, for the seed on disk. */
  readonly publicJwks: readonly PublicJwk[];
}

export interface SkippedKey {
  /** Its kid, or its place in the set: `keys[2]`. Bounded and printable, as the reason is. */
  readonly key: string;
  readonly reason: string;
}

export interface KeySetProblem extends Problem {
  readonly skipped: readonly SkippedKey[];
}

/** Only the public members of a key, in canonical form. */
type PublicJwk = Readonly<Record<string, string>>;

/** A usable entry of a set. */
interface Candidate {
  readonly name: string;
  readonly kid: string | undefined;
  readonly thumbprint: string;
  readonly members: PublicJwk;
  readonly algorithms: ReadonlySet<string>;
  readonly certificates: ReadonlySet<string>;
  /** One for each entry of the set that holds this key under this kid. */
  readonly publicJwks: readonly PublicJwk[];
}

// RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1; RFC 8037 section 2.
const privateReason = 'it shows its private half';
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
const certificateMembers = ['x5t', 'x5t#S256'] as const;

/**
 * Keys that `previous` already holds unchanged are reused as the same objects. Never rejects. Each import has its own turn of the
 * event loop, so that checks go on: importing a P-521 key takes a millisecond.
 */
export async function parseKeySet(
  bytes: Uint8Array,
  algorithms: readonly string[],
  { previous = [], mediaType }: { previous?: Iterable<VerificationKey>; mediaType?: string | undefined } = {},
): Promise<KeySet | KeySetProblem> {
  const entries = parseEntries(bytes, mediaType);
  if ('kind' in entries) return { ...entries, skipped: [] };
  const { candidates, skipped } = readEntries(entries, algorithms);
  const known = [...previous];
  const keys = new Map<VerificationKey, ReadonlySet<string>>();
  const publicJwks: PublicJwk[] = [];
  for (const candidate of candidates) {
    const unchanged = known.find(key => isUnchanged(key, candidate, algorithms));
    if (unchanged === undefined) await nextTurn();
    const key = unchanged ?? (await importKey(candidate));
    if (typeof key === 'string') {
      skipped.push({ key: candidate.name, reason: key });
      continue;
    }
    keys.set(key, candidate.certificates);
    publicJwks.push(...candidate.publicJwks);
  }
  if (keys.size === 0) return { ...problem(`no usable key: ${listSkipped(skipped)}`), skipped };
  const kids = new Set(Array.from(keys.keys(), ({ kid }) => kid).filter(kid => kid !== undefined));
  return { kind: 'keySet', keys, kids, skipped, publicJwks };
}

/** A JSON document that an issuer publishes, or what came in its place. `mediaType` is only named. */
export function parseDocument(bytes: Uint8Array, mediaType: string | undefined): JsonValue | Problem {
  if (bytes.length > maxDocumentBytes) return problem('body too large');
  const hasMark = byteOrderMark.every((byte, i) => bytes[i] === byte);
  const parsed = parseBoundedJson(hasMark ? bytes.subarray(byteOrderMark.length) : bytes, documentBounds);
  if (parsed.kind === 'value' || mediaType === undefined) return parsed;
  return problem(`${printable(mediaType, maxShownLength)}, ${parsed.problem}`);
}

/** Names a thumbprint of a certificate as a key set or the header of a token has it: `x5t` or `x5t#S256`. */
export function certificateName(member: (typeof certificateMembers)[number], thumbprint: string): string {
  return `${member} ${thumbprint.replace(/={1,2}$/, '')}`;
}

function parseEntries(bytes: Uint8Array, mediaType: string | undefined): readonly unknown[] | Problem {
  const json = parseDocument(bytes, mediaType);
  if (json.kind === 'problem') return json;
  const entries = memberOf(json.value, 'keys');
  if (Array.isArray(entries)) return entries.length > maxKeys ? problem('too many keys') : entries.map(withoutNulls);
  if (memberOf(json.value, 'jwks_uri') !== undefined)
    return problem('not a key set: metadata, which discoveryUrl reads');
  const found = isJsonObject(json.value) ? 'an object without the list "keys"' : nameOfType(json.value);
  return problem(`not a key set: ${found}`);
}

/** Some serializers write a member that a key has not. */
function withoutNulls(jwk: unknown): unknown {
  return isJsonObject(jwk) ? Object.fromEntries(Object.entries(jwk).filter(([, value]) => value !== null)) : jwk;
}

function readEntries(entries: readonly unknown[], algorithms: readonly string[]) {
  const skipped: SkippedKey[] = [];
  const candidates = new Map<string, Candidate>();
  // A leaked key is also skipped where another entry shows its public half only: whoever read the set can sign with it.
  const leaked = new Set(
    entries
      .filter(isPrivate)
      .map(readMaterial)
      .map(material => (typeof material === 'string' ? '' : thumbprintOf(material))),
  );
  for (const [i, jwk] of entries.entries()) {
    const kid = memberOf(jwk, 'kid');
    const name = typeof kid === 'string' && kid !== '' ? printable(kid, maxShownLength) : `keys[${i}]`;
    const read = isJsonObject(jwk) ? readEntry(jwk, name, algorithms, leaked) : `it is ${nameOfType(jwk)}`;
    if (typeof read === 'string') {
      skipped.push({ key: name, reason: read });
      continue;
    }
    // The same key twice under one kid is one key.
    const id = JSON.stringify([read.kid, read.thumbprint]);
    const same = candidates.get(id);
    candidates.set(id, {
      ...read,
      algorithms: new Set([...(same?.algorithms ?? []), ...read.algorithms]),
      certificates: new Set([...(same?.certificates ?? []), ...read.certificates]),
      publicJwks: [...(same?.publicJwks ?? []), ...read.publicJwks],
    });
  }
  return { candidates: [...candidates.values()], skipped };
}

/** The entry if it can verify signatures by one of the algorithms, or why it is skipped, in a few words. */
function readEntry(
  jwk: Record<string, unknown>,
  name: string,
  algorithms: readonly string[],
  leaked: ReadonlySet<string>,
): Candidate | string {
  const member = (key: string): unknown => memberOf(jwk, key);
  const [kid, use, operations, alg] = ['kid', 'use', 'key_ops', 'alg'].map(member);
  if (member('kty') === 'oct') return 'kty oct: a shared secret';
  if (isPrivate(jwk)) return privateReason;
  if (kid !== undefined && typeof kid !== 'string') return `the kid is ${nameOfType(kid)}`;
  if (kid === '') return 'the kid is empty';
  if (kid !== undefined && kid.length > maxKidLength) return `the kid is longer than ${maxKidLength} characters`;
  // RFC 7517 sections 4.2 and 4.3: each of the two members can exclude verification.
  if (use !== undefined && use !== 'sig') return `use: ${shown(use)}`;
  if (operations !== undefined && !itemsOf(operations).includes('verify')) return 'key_ops without verify';
  if (alg !== undefined && typeof alg !== 'string') return `the alg is ${nameOfType(alg)}`;
  const material = readMaterial(jwk);
  if (typeof material === 'string') return material;
  const thumbprint = thumbprintOf(material);
  if (leaked.has(thumbprint)) return privateReason;
  const { members, fits, type } = material;
  if (alg !== undefined && !fits.includes(alg)) {
    return isAlgorithm(alg) ? `alg ${alg} does not fit ${type}` : `alg ${shown(alg)}`;
  }
  const usable = fits.filter(each => algorithms.includes(each) && (alg === undefined || alg === each));
  if (usable.length === 0)
    return alg === undefined ? `algorithms has none for ${type}` : `alg ${alg} is not one of algorithms`;
  const thumbprints = certificateMembers.flatMap(key => {
    const value = member(key);
    return typeof value === 'string' && value.length <= maxKidLength ? [[key, value] as const] : [];
  });
  const publicJwk = { ...members, use: 'sig', ...Object.fromEntries(thumbprints) };
  return {
    name,
    kid,
    thumbprint,
    members,
    algorithms: new Set(usable),
    certificates: new Set(thumbprints.map(([key, value]) => certificateName(key, value))),
    publicJwks: [{ ...publicJwk, ...(kid !== undefined && { kid }), ...(alg !== undefined && { alg }) }],
  };
}

function isPrivate(jwk: unknown): jwk is Record<string, unknown> {
  return isJsonObject(jwk) && privateMembers.some(name => Object.hasOwn(jwk, name));
}

function isUnchanged(key: VerificationKey, { kid, thumbprint, algorithms }: Candidate, allowed: readonly string[]) {
  if (key.kid !== kid || key.thumbprint !== thumbprint) return false;
  return allowed.every(alg => (key.cryptoKeyFor(alg) !== undefined) === algorithms.has(alg));
}

async function importKey({ kid, thumbprint, members, algorithms }: Candidate): Promise<VerificationKey | string> {
  try {
    const cryptoKeys = new Map<string, KeyObject>();
    for (const alg of algorithms) {
      const imported = await importJWK({ ...members }, alg);
      if (!(imported instanceof Uint8Array)) cryptoKeys.set(alg, KeyObject.from(imported));
    }
    return { kid, thumbprint, cryptoKeyFor: alg => cryptoKeys.get(alg) };
  } catch {
    // Sizes and encodings are checked before. What is left for a curve is the equation (SP 800-56A section 5.6.2.3).
    return members.kty === 'EC' ? `the point is not on ${members.crv}` : 'the key cannot be imported';
  }
}

// The public key of a JWK (RFC 7518 section 6, RFC 8037, RFC 9964).

interface Material {
  /** In the order of RFC 7638. */
  readonly members: PublicJwk;
  /** For a sentence: `RSA`, `P-256`. */
  readonly type: string;
  /** All algorithms for this type of key. */
  readonly fits: readonly string[];
}

const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const edAlgorithms = ['EdDSA', 'Ed25519'];
/** With the bytes of their public keys (FIPS 204, table 2). */
const mlDsaBytes = new Map<unknown, number>([
  ['ML-DSA-44', 1312],
  ['ML-DSA-65', 1952],
  ['ML-DSA-87', 2592],
]);
const ecCurves = [
  { crv: 'P-256', bytes: 32, alg: 'ES256' },
  { crv: 'P-384', bytes: 48, alg: 'ES384' },
  { crv: 'P-521', bytes: 66, alg: 'ES512' },
];

function isAlgorithm(alg: string): boolean {
  return [...rsaAlgorithms, ...edAlgorithms, ...mlDsaBytes.keys(), ...ecCurves.map(each => each.alg)].includes(alg);
}

const { SubtleCrypto: WebCrypto } = globalThis as {
  SubtleCrypto?: { supports?(operation: 'verify', algorithm: string): boolean };
};

/** Node has ML-DSA from 24.7 on, where its OpenSSL is 3.5 or later. */
export function isSupportedAlgorithm(alg: string): boolean {
  return !mlDsaBytes.has(alg) || WebCrypto?.supports?.('verify', alg) === true;
}

/** Checks sizes and encodings, or says what is wrong. The import checks that a point is on its curve. */
function readMaterial(jwk: Record<string, unknown>): Material | string {
  const kty = memberOf(jwk, 'kty');
  const crv = memberOf(jwk, 'crv');
  const curve = kty === 'EC' ? ecCurves.find(each => each.crv === crv) : undefined;
  if (kty === 'RSA') return readRsa(jwk);
  if (curve !== undefined) return readEc(jwk, curve);
  if (kty === 'OKP' && crv === 'Ed25519') return readEd25519(jwk);
  if (kty === 'AKP') return readMlDsa(jwk);
  return kty === 'EC' || kty === 'OKP' ? `crv ${shown(crv)}` : `kty ${shown(kty)}`;
}

function readRsa(jwk: Record<string, unknown>): Material | string {
  const [modulus, publicExponent] = [readBase64Url(jwk, 'n'), readBase64Url(jwk, 'e')];
  if (typeof modulus === 'string') return modulus;
  if (typeof publicExponent === 'string') return publicExponent;
  const [n, e] = [withoutLeadingZeros(modulus), withoutLeadingZeros(publicExponent)];
  const bits = n.length * 8 - Math.clz32(n[0] ?? 0) + 24;
  if (bits < 2048 || bits > 8192) return `RSA of ${bits} bits, not 2048 to 8192`;
  if (isEven(n)) return 'n is even';
  // The upper bound keeps verification cheap. Go's crypto/rsa has the same one.
  const exponent = e.reduce((sum, byte) => sum * 256 + byte, 0);
  if (exponent < 65537 || exponent > 0x7fffffff || isEven(e)) return 'e is not an odd number from 65537 to 2147483647';
  const members = { e: e.toString('base64url'), kty: 'RSA', n: n.toString('base64url') };
  return { members, type: 'RSA', fits: rsaAlgorithms };
}

function readEc(jwk: Record<string, unknown>, { crv, bytes, alg }: (typeof ecCurves)[number]): Material | string {
  const [x, y] = [readBase64Url(jwk, 'x'), readBase64Url(jwk, 'y')];
  if (typeof x === 'string') return x;
  if (typeof y === 'string') return y;
  if (x.length > bytes || y.length > bytes) return `x or y is longer than the ${bytes} bytes of ${crv}`;
  // RFC 7518 section 6.2.1.2 asks for the full size. Some providers leave out leading zeros.
  const filled = (coordinate: Buffer): string =>
    Buffer.concat([Buffer.alloc(bytes - coordinate.length), coordinate]).toString('base64url');
  return { members: { crv, kty: 'EC', x: filled(x), y: filled(y) }, type: crv, fits: [alg] };
}

function readEd25519(jwk: Record<string, unknown>): Material | string {
  const x = readBase64Url(jwk, 'x');
  if (typeof x === 'string') return x;
  if (x.length !== 32) return 'x has not the 32 bytes of Ed25519';
  return { members: { crv: 'Ed25519', kty: 'OKP', x: x.toString('base64url') }, type: 'Ed25519', fits: edAlgorithms };
}

// RFC 9964: such a key always names its algorithm, which its thumbprint has too.
function readMlDsa(jwk: Record<string, unknown>): Material | string {
  const alg = memberOf(jwk, 'alg');
  const bytes = mlDsaBytes.get(alg);
  if (typeof alg !== 'string' || bytes === undefined) return `alg ${shown(alg)}`;
  const pub = readBase64Url(jwk, 'pub');
  if (typeof pub === 'string') return pub;
  if (pub.length !== bytes) return `pub has not the ${bytes} bytes of ${alg}`;
  return { members: { alg, kty: 'AKP', pub: pub.toString('base64url') }, type: alg, fits: [alg] };
}

// RFC 7515 section 2, but for padding: no other alphabet, and only the canonical spelling of a value.
function readBase64Url(jwk: Record<string, unknown>, name: string): Buffer | string {
  const value = memberOf(jwk, name);
  if (typeof value !== 'string') return `${name} is ${value === undefined ? 'missing' : nameOfType(value)}`;
  const text = value.replace(/={1,2}$/, '');
  const bytes = Buffer.from(text, 'base64url');
  return text !== '' && bytes.toString('base64url') === text ? bytes : `${name} is not base64url`;
}

function withoutLeadingZeros(bytes: Buffer): Buffer {
  // -1 where all are zero: the last one stays.
  return bytes.subarray(bytes.findIndex(byte => byte !== 0));
}

function isEven(bytes: Buffer): boolean {
  return ((bytes.at(-1) ?? 0) & 1) === 0;
}

/** RFC 7638 section 3. */
function thumbprintOf({ members }: Material): string {
  return hash('sha256', JSON.stringify(members), 'base64url');
}

// Words.

function listSkipped(skipped: readonly SkippedKey[]): string {
  if (skipped.length === 0) return 'the list is empty';
  return listWords(
    skipped.map(({ key, reason }) => `${key} (${reason})`),
    maxNamedKeys,
  );
}

/** Foreign text in a sentence, or the type of another value. */
function shown(value: unknown): string {
  if (typeof value !== 'string') return nameOfType(value);
  return value === '' ? '""' : printable(value, maxShownLength);
}

// The key of a token, in a usable set.
