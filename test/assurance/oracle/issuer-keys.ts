// The usable keys of an issuer by the contract, and signature verification, with node:crypto only.
import { constants, createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto';

/**
 * usable: loaded and confirmed; outage: loaded, but the issuer is unreachable since then; loading: never loaded;
 * stale: loaded, but not confirmed for longer than maxAgeSeconds.
 */
export type KeysState = 'usable' | 'outage' | 'loading' | 'stale';

export interface PublishedKey extends JsonWebKey {
  readonly kid?: string;
  readonly alg?: string;
  readonly use?: string;
  readonly x5t?: string;
  readonly 'x5t#S256'?: string;
}

export interface IssuerKeys {
  readonly state: KeysState;
  readonly published: readonly PublishedKey[];
}

export type KeyAnswer =
  | { readonly kind: 'key'; readonly jwk: PublishedKey; readonly key: KeyObject }
  | { readonly kind: 'no such key' }
  | { readonly kind: 'cannot tell' };

/** The members of a token's header that choose its key. */
export interface KeyHeader {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly x5t: string | undefined;
  readonly x5tS256: string | undefined;
}

// "The key of a token is the one usable key of its issuer that fits its alg and has its kid (any, where it has none); where several fit, the
// one whose x5t#S256 or x5t equals the header's; no such key, or still several: token_invalid (the same key twice counts once)."
export function findKey(keys: IssuerKeys, { alg, kid, x5t, x5tS256 }: KeyHeader): KeyAnswer {
  if (keys.state === 'loading' || keys.state === 'stale') return { kind: 'cannot tell' };
  const usable = usableKeys(keys.published).filter(({ jwk }) => kid === undefined || jwk.kid === kid);
  // An unknown kid while the issuer is unreachable: cannot decide. A token without kid asks for nothing.
  if (usable.length === 0 && kid !== undefined && keys.state === 'outage') return { kind: 'cannot tell' };
  const fitting = usable.filter(each => fits(alg, each));
  const named = fitting.filter(
    ({ jwk }) => (x5t !== undefined && jwk.x5t === x5t) || (x5tS256 !== undefined && jwk['x5t#S256'] === x5tS256),
  );
  const one = theOnly(fitting) ?? theOnly(named);
  return one === undefined ? { kind: 'no such key' } : { kind: 'key', ...one };
}

function theOnly([first, ...others]: readonly UsableKey[]): UsableKey | undefined {
  return first !== undefined && others.every(({ key }) => key.equals(first.key)) ? first : undefined;
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

function fits(alg: string, { jwk, key }: UsableKey): boolean {
  const made = Object.hasOwn(algorithms, alg) ? algorithms[alg] : undefined;
  if (made === undefined || key.asymmetricKeyType !== made.type) return false;
  if (jwk.alg !== undefined && jwk.alg !== alg) return false;
  return made.curve === undefined || key.asymmetricKeyDetails?.namedCurve === made.curve;
}

/** Whether the key is for the algorithm and verifies the signature over the input. */
export function proves(alg: string, { jwk, key }: UsableKey, input: string, signature: Buffer): boolean {
  const made = algorithms[alg];
  if (made === undefined || !fits(alg, { jwk, key })) return false;
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
