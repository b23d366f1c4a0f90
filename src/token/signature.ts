// What each signature algorithm means: verifies a compact JWS with a key that jose imported, by node:crypto on its threads.
import { constants, type KeyObject, type SigningOptions, verify } from 'node:crypto';

interface Meaning extends SigningOptions {
  /** Null if the algorithm has its own. */
  readonly hash: string | null;
}

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
const pkcs1 = { padding: constants.RSA_PKCS1_PADDING };
const ecdsa = { dsaEncoding: 'ieee-p1363' } as const;
const sized = (['256', '384', '512'] as const).flatMap((bits): [string, Meaning][] => {
  const hash = `sha${bits}`;
  return [
    [`RS${bits}`, { hash, ...pkcs1 }],
    [`PS${bits}`, { hash, ...pss }],
    [`ES${bits}`, { hash, ...ecdsa }],
  ];
});
const others = ['EdDSA', 'Ed25519', 'ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87'];
/** RFC 7518 section 3.1, RFC 8037 section 3.1, RFC 9964. The curve and the size are those of the key. */
const meanings = new Map<string, Meaning>([...sized, ...others.map((alg): [string, Meaning] => [alg, { hash: null }])]);

/**
 * `key` was imported for `alg`, and `token` has passed `parseCompactJws`, which jose's compactVerify would repeat (docs/dev/performance.md).
 * Rejects only on an internal error.
 */
export function isSignedBy(key: KeyObject, alg: string, token: string): Promise<boolean> {
  const { hash, ...options } = meanings.get(alg) ?? {};
  if (hash === undefined) throw new Error(`an algorithm without a meaning: ${alg}`);
  const dot = token.lastIndexOf('.');
  const signature = Buffer.from(token.slice(dot + 1), 'base64url');
  return new Promise((resolve, reject) => {
    const answer = (error: Error | null, isValid: boolean): void => (error === null ? resolve(isValid) : reject(error));
    verify(hash, Buffer.from(token.slice(0, dot), 'latin1'), { key, ...options }, signature, answer);
  });
}
