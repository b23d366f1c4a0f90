// Key pairs for tests: generated once per run and name, because RSA generation is slow.
import { type CryptoKey, exportJWK, generateKeyPair, type JWK } from 'jose';
import { secrets } from './secrets.ts';

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  /** The public half as an issuer would publish it, with kid, alg and use. */
  readonly publicJwk: JWK;
}

const made = new Map<string, Promise<SigningKey>>();

/** The key pair of this kid; the same one for the same kid and algorithm. */
export function signingKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const name = `${alg} ${kid}`;
  const known = made.get(name);
  if (known !== undefined) return known;
  const making = makeSigningKey(kid, alg);
  made.set(name, making);
  return making;
}

async function makeSigningKey(kid: string, alg: string): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const { d = '', p = '', q = '', dp = '', dq = '', qi = '' } = await exportJWK(privateKey);
  for (const member of [d, p, q, dp, dq, qi]) secrets.mint('private key', member);
  const publicJwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
  return { kid, alg, privateKey, publicJwk };
}
