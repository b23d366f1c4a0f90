// Whether a token is signed by a key of its issuer: jose verifies it, with a key and an algorithm that the token cannot choose.
import { type CryptoKey, compactVerify, errors } from 'jose';

/** `token` has passed `parseCompactJws`, and `key` was imported for `alg`. Rejects only on a fault. */
export async function isSignedBy(key: CryptoKey, alg: string, token: string): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [alg] });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}
