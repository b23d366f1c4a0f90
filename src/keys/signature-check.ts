// A public key and the one algorithm that it serves → the check of a signature. OpenSSL does the work.
import { constants, createPublicKey, createVerify, type JsonWebKey, verify } from 'node:crypto';

/** Whether the key made this signature over these bytes. Throws only on a fault. */
export type SignatureCheck = (signed: Uint8Array, signature: Uint8Array) => boolean;

interface Scheme {
  readonly hash: string | null;
  readonly padding?: number;
  readonly saltLength?: number;
  readonly dsaEncoding?: 'ieee-p1363';
  /** RFC 7518 section 3.4: of no other length. */
  readonly signatureBytes?: number;
}

// RFC 7518 sections 3.3 to 3.5 (the salt of PSS is as long as the hash), RFC 8037 section 3.1.
const pkcs1 = { padding: constants.RSA_PKCS1_PADDING };
const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
const ecdsa = { dsaEncoding: 'ieee-p1363' } as const;
const schemes: ReadonlyMap<string, Scheme> = new Map<string, Scheme>([
  ['RS256', { hash: 'sha256', ...pkcs1 }],
  ['RS384', { hash: 'sha384', ...pkcs1 }],
  ['RS512', { hash: 'sha512', ...pkcs1 }],
  ['PS256', { hash: 'sha256', ...pss }],
  ['PS384', { hash: 'sha384', ...pss }],
  ['PS512', { hash: 'sha512', ...pss }],
  ['ES256', { hash: 'sha256', ...ecdsa, signatureBytes: 64 }],
  ['ES384', { hash: 'sha384', ...ecdsa, signatureBytes: 96 }],
  ['ES512', { hash: 'sha512', ...ecdsa, signatureBytes: 132 }],
  ['EdDSA', { hash: null }],
  ['Ed25519', { hash: null }],
]);

/** The caller has made sure that the key is of the type and the curve that the algorithm asks for. Throws where it is no valid key. */
export function createSignatureCheck(publicJwk: JsonWebKey, alg: string): SignatureCheck {
  const scheme = schemes.get(alg);
  if (scheme === undefined) throw new Error('an algorithm without a scheme');
  const { hash, signatureBytes, ...options } = scheme;
  const key = { key: createPublicKey({ key: publicJwk, format: 'jwk' }), ...options };
  // A fifth cheaper than the other way, which EdDSA needs, since it is over the text itself (RFC 8032 section 5.1).
  if (hash !== null) {
    return (signed, signature) =>
      (signatureBytes === undefined || signature.length === signatureBytes) &&
      createVerify(hash).update(signed).verify(key, signature);
  }
  return (signed, signature) => verify(hash, signed, key, signature);
}
