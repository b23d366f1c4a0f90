// The usable keys of an issuer by the contract, and signature verification, with node:crypto only.
import { constants, createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto';

/**
 * usable: loaded and confirmed; outage: loaded, but the issuer is unreachable since then; loading: never loaded;
 * stale: loaded, but not confirmed for longer than maxAgeSeconds.
 */
export type KeysState = 'usable' | 'outage' | 'loading' | 'stale';

export interface PublishedKey extends JsonWebKey {
  readonly kid: string;
  readonly alg?: string;
  readonly use?: string;
}

export interface IssuerKeys {
  readonly state: KeysState;
  readonly published: readonly PublishedKey[];
}

export type KeyAnswer =
  | { readonly kind: 'key'; readonly jwk: PublishedKey; readonly key: KeyObject }
  | { readonly kind: 'no such key' }
  | { readonly kind: 'cannot tell' };

export function findKey(keys: IssuerKeys, kid: string): KeyAnswer {
  if (keys.state === 'loading' || keys.state === 'stale') return { kind: 'cannot tell' };
  const usable = usableKeys(keys.published).filter(({ jwk }) => jwk.kid === kid);
  const [first, ...others] = usable;
  // Two different keys under one kid: neither is used.
  if (first !== undefined && others.every(({ key }) => key.equals(first.key))) return { kind: 'key', ...first };
  // An unknown kid while the issuer is unreachable: cannot decide.
  return { kind: keys.state === 'outage' ? 'cannot tell' : 'no such key' };
}

interface UsableKey {
  readonly jwk: PublishedKey;
  readonly key: KeyObject;
}

const read = new WeakMap<readonly PublishedKey[], readonly UsableKey[]>();

function usableKeys(published: readonly PublishedKey[]): readonly UsableKey[] {
  const known = read.get(published);
  if (known !== undefined) return known;
  const usable = published.flatMap(jwk => {
    // Keys for encryption are skipped; a symmetric key is never a public key.
    if ((jwk.use !== undefined && jwk.use !== 'sig') || jwk.kty === 'oct') return [];
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    return isStrong(key) ? [{ jwk, key }] : [];
  });
  read.set(published, usable);
  return usable;
}

// RSA keys of 2048 to 8192 bits with an odd exponent of at least 65537.
function isStrong(key: KeyObject): boolean {
  if (key.asymmetricKeyType !== 'rsa') return true;
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  return modulusLength >= 2048 && modulusLength <= 8192 && publicExponent >= 65537n && publicExponent % 2n === 1n;
}

// The parameters of each algorithm: RFC 7518 section 3.1, RFC 8037 section 3.1, RFC 9864.
const algorithms: Readonly<
  Record<
    string,
    {
      readonly type: 'rsa' | 'ec' | 'ed25519';
      readonly hash: string | null;
      readonly curve?: string;
      readonly bytes?: number;
    }
  >
> = {
  RS256: { type: 'rsa', hash: 'sha256' },
  RS384: { type: 'rsa', hash: 'sha384' },
  RS512: { type: 'rsa', hash: 'sha512' },
  PS256: { type: 'rsa', hash: 'sha256' },
  PS384: { type: 'rsa', hash: 'sha384' },
  PS512: { type: 'rsa', hash: 'sha512' },
  ES256: { type: 'ec', hash: 'sha256', curve: 'prime256v1', bytes: 64 },
  ES384: { type: 'ec', hash: 'sha384', curve: 'secp384r1', bytes: 96 },
  ES512: { type: 'ec', hash: 'sha512', curve: 'secp521r1', bytes: 132 },
  EdDSA: { type: 'ed25519', hash: null },
  Ed25519: { type: 'ed25519', hash: null },
};

/** Whether the key is for the algorithm and verifies the signature over the input. */
export function proves(alg: string, { jwk, key }: UsableKey, input: string, signature: Buffer): boolean {
  const made = Object.hasOwn(algorithms, alg) ? algorithms[alg] : undefined;
  if (made === undefined || key.asymmetricKeyType !== made.type) return false;
  if (jwk.alg !== undefined && jwk.alg !== alg) return false;
  if (made.curve !== undefined && key.asymmetricKeyDetails?.namedCurve !== made.curve) return false;
  // RFC 7518 section 3.4: r and s, each of the full size, not DER.
  if (made.bytes !== undefined && signature.length !== made.bytes) return false;
  const options = alg.startsWith('PS')
    ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : { key, dsaEncoding: 'ieee-p1363' as const };
  const proofs = proofsOf(key);
  const name = `${alg} ${input} ${signature.toString('base64')}`;
  const known = proofs.get(name) ?? verify(made.hash, Buffer.from(input), options, signature);
  proofs.set(name, known);
  return known;
}

// A cache, because signatures are expensive and most tokens are repeated.
const proofsByKey = new WeakMap<KeyObject, Map<string, boolean>>();

function proofsOf(key: KeyObject): Map<string, boolean> {
  const known = proofsByKey.get(key) ?? new Map<string, boolean>();
  proofsByKey.set(key, known);
  return known;
}
