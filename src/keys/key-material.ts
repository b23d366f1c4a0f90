// The public key in a JWK (RFC 7518 section 6, RFC 8037): its members in canonical form, or what is wrong with them.
// Weak and ambiguous keys end here. Whether a point is on its curve is for the import to find.
import { memberOf } from '../json/strict-json.ts';

/** The public members of a key in their canonical form, and nothing else that the issuer may have published. */
export interface PublicJwk {
  readonly [member: string]: string;
}

export interface Material {
  readonly members: PublicJwk;
  /** Every algorithm that this type of key can serve. */
  readonly fits: readonly string[];
}

export type MaterialProblem =
  | 'key type not supported'
  | 'curve not supported'
  | 'malformed'
  | 'RSA modulus'
  | 'RSA exponent'
  | 'point of small order';

const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const ecCurves: ReadonlyMap<string, { readonly bytes: number; readonly alg: string }> = new Map([
  ['P-256', { bytes: 32, alg: 'ES256' }],
  ['P-384', { bytes: 48, alg: 'ES384' }],
  ['P-521', { bytes: 66, alg: 'ES512' }],
]);

// Under a point of small order one signature can be good for every message. Whether 32 other bytes are a point does not matter: a
// signature under bytes that are none is never good. These are all y of small order but for their sign bit (curve25519, cofactor 8), two
// of them with their spelling beyond the field.
const smallOrders: ReadonlySet<string> = new Set([
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
]);

/** The key that a JWK shows, whatever it is for. Nothing of it is imported: sizes and encodings alone are judged. Never throws. */
export function readMaterial(jwk: Record<string, unknown>): Material | MaterialProblem {
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

function readRsa(jwk: Record<string, unknown>): Material | MaterialProblem {
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
  return { members: { kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') }, fits: rsaAlgorithms };
}

function readEc(jwk: Record<string, unknown>): Material | MaterialProblem {
  const crv = memberOf(jwk, 'crv');
  const curve = typeof crv === 'string' ? ecCurves.get(crv) : undefined;
  if (typeof crv !== 'string' || curve === undefined) return 'curve not supported';
  const x = readBase64Url(memberOf(jwk, 'x'));
  const y = readBase64Url(memberOf(jwk, 'y'));
  // RFC 7518 section 6.2.1.2: the full size of a coordinate, no more and no less.
  if (x?.length !== curve.bytes || y?.length !== curve.bytes) return 'malformed';
  const members = { kty: 'EC', crv, x: x.toString('base64url'), y: y.toString('base64url') };
  return { members, fits: [curve.alg] };
}

function readOkp(jwk: Record<string, unknown>): Material | MaterialProblem {
  if (memberOf(jwk, 'crv') !== 'Ed25519') return 'curve not supported';
  const x = readBase64Url(memberOf(jwk, 'x'));
  if (x?.length !== 32) return 'malformed';
  if (isSmallOrder(x)) return 'point of small order';
  return { members: { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') }, fits: ['EdDSA', 'Ed25519'] };
}

function isSmallOrder(bytes: Buffer): boolean {
  const y = Buffer.from(bytes);
  y.writeUInt8(y.readUInt8(31) & 0x7f, 31);
  return smallOrders.has(y.toString('hex'));
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
