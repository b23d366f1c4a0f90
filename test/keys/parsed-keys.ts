// Key sets that are parsed for a test.
import type { JWK } from 'jose';
import { signingKey } from '../../lab/signing-key.ts';
import { type KeySet, parseKeySet } from '../../src/keys/jwks.ts';

export const algorithms = ['RS256', 'ES256', 'EdDSA'];

export const bytesOf = (value: unknown): Uint8Array =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

export const parse = (value: unknown, allowed = algorithms) => parseKeySet(bytesOf(value), allowed);

export async function keySetOf(keys: readonly unknown[], allowed = algorithms, previous?: KeySet): Promise<KeySet> {
  const parsed = await parseKeySet(bytesOf({ keys }), allowed, previous?.keys);
  if (parsed.kind === 'problem') throw new Error(`${parsed.problem} ${JSON.stringify(parsed.skipped)}`);
  return parsed;
}

export const jwk = async (kid: string, alg = 'ES256'): Promise<JWK> => (await signingKey(kid, alg)).publicJwk;

/** A base64url number whose bytes are changed. */
export function changed(value: string | undefined, change: (bytes: Buffer) => Buffer): string {
  return change(Buffer.from(value ?? '', 'base64url')).toString('base64url');
}
