// Verifies the signature of a token with jose, with a key and an algorithm that the token cannot choose.
import { type CryptoKey, compactVerify, errors } from 'jose';

/** `token` has passed `parseCompactJws`, and `key` was imported for `alg`. Rejects only on an internal error. */
export async function isSignedBy(key: CryptoKey, alg: string, token: string): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [alg] });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}
