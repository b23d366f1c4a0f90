// Reads the public key of a JWK (RFC 7518 section 6, RFC 8037): its members in canonical form, or what is wrong with them.
// Refuses weak and ambiguous keys. The import checks that a point is on its curve.
import { memberOf } from '../json/strict-json.ts';

/** Only the public members of a key, in canonical form. */
export interface PublicJwk {
  readonly [member: string]: string;
}

export interface Material {
  readonly members: PublicJwk;
  /** All algorithms for this type of key. */
  readonly fits: readonly string[];
}

type MaterialProblem = 'key type not supported' | 'curve not supported' | 'malformed' | 'RSA modulus' | 'RSA exponent';

const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const ecCurves = [
  { crv: 'P-256', bytes: 32, alg: 'ES256' },
  { crv: 'P-384', bytes: 48, alg: 'ES384' },
  { crv: 'P-521', bytes: 66, alg: 'ES512' },
];

/** Checks sizes and encodings only; imports nothing. Never throws. */
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
  // The upper bound keeps verification cheap. Go's crypto/rsa has the same one.
  const value = e.reduce((sum, byte) => sum * 256 + byte, 0);
  if (value < 65537 || value > 0x7fffffff || isEven(e)) return 'RSA exponent';
  return { members: { kty: 'RSA', n: n.toString('base64url'), e: e.toString('base64url') }, fits: rsaAlgorithms };
}

function readEc(jwk: Record<string, unknown>): Material | MaterialProblem {
  const crv = memberOf(jwk, 'crv');
  const curve = ecCurves.find(each => each.crv === crv);
  if (curve === undefined) return 'curve not supported';
  const x = readBase64Url(memberOf(jwk, 'x'));
  const y = readBase64Url(memberOf(jwk, 'y'));
  // RFC 7518 section 6.2.1.2: exactly the size of a coordinate.
  if (x?.length !== curve.bytes || y?.length !== curve.bytes) return 'malformed';
  const members = { kty: 'EC', crv: curve.crv, x: x.toString('base64url'), y: y.toString('base64url') };
  return { members, fits: [curve.alg] };
}

function readOkp(jwk: Record<string, unknown>): Material | MaterialProblem {
  if (memberOf(jwk, 'crv') !== 'Ed25519') return 'curve not supported';
  const x = readBase64Url(memberOf(jwk, 'x'));
  if (x?.length !== 32) return 'malformed';
  return { members: { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') }, fits: ['EdDSA', 'Ed25519'] };
}

// RFC 7515 section 2: no padding, no other alphabet. Only the canonical spelling of a value.
function readBase64Url(value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_-]{1,4096}$/.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64url');
  return bytes.toString('base64url') === value ? bytes : undefined;
}

function withoutLeadingZeros(bytes: Buffer): Buffer {
  // -1 where all are zero: the last one stays.
  return bytes.subarray(bytes.findIndex(byte => byte !== 0));
}

function isEven(bytes: Buffer): boolean {
  return ((bytes.at(-1) ?? 0) & 1) === 0;
}
