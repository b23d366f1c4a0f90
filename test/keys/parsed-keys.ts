// Key sets that are parsed for a test.
import type { JWK } from 'jose';
import { signingKey } from '../../lab/signing-key.ts';
import { isSupportedAlgorithm, type KeySet, parseKeySet, type VerificationKey } from '../../src/keys/jwks.ts';

export const algorithms = ['RS256', 'ES256', 'EdDSA'];
/** Those that this Node has. */
export const postQuantum = ['ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87'].filter(isSupportedAlgorithm);

export const bytesOf = (value: unknown): Uint8Array =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

export const parse = (value: unknown, allowed = algorithms) => parseKeySet(bytesOf(value), allowed);

export async function keySetOf(keys: readonly unknown[], allowed = algorithms, before?: KeySet): Promise<KeySet> {
  const parsed = await parseKeySet(bytesOf({ keys }), allowed, { previous: before?.keys.keys() ?? [] });
  if (parsed.kind === 'problem') throw new Error(`${parsed.problem} ${JSON.stringify(parsed.skipped)}`);
  return parsed;
}

/** The first key of this kid. */
export function keyIn({ keys }: KeySet, kid: string | undefined): VerificationKey | undefined {
  return [...keys.keys()].find(key => key.kid === kid);
}

export const jwk = async (kid: string, alg = 'ES256'): Promise<JWK> => (await signingKey(kid, alg)).publicJwk;

/** A base64url number whose bytes are changed. */
export function changed(value: string | undefined, change: (bytes: Buffer) => Buffer): string {
  return change(Buffer.from(value ?? '', 'base64url')).toString('base64url');
}
