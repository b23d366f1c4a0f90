// A token verifier with the keys k1 and r1, its clock and its finder in the hands of a test.
import { KeyObject } from 'node:crypto';
import { type CryptoKey, importJWK } from 'jose';
import { secrets } from '../../lab/secrets.ts';
import { type SigningKey, signingKey } from '../../lab/signing-key.ts';
import { claimRules, issuer, now, token } from '../../lab/token.ts';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import { findTokenKey } from '../../src/keys/token-key.ts';
import { createVerifiedTokens, type VerifiedTokens } from '../../src/token/verified-tokens.ts';
import {
  createTokenVerifier,
  type IssuerKeys,
  normalizeTokenType,
  type Verification,
} from '../../src/token/verifier.ts';

export interface Lab {
  /** `certificate` is that of the client, as Envoy shows it. */
  verify(token: string, certificate?: string): Promise<Verification>;
  reasonOf(token: string): Promise<string>;
  readonly keys: Map<string, VerificationKey>;
  /** The result of the verifier as it is: a promise only if it has to wait. */
  verifyNow(text: string): unknown;
  clock: number;
  /** The result of `find` for an absent kid. */
  missing: 'unknown' | 'unavailable';
  /** Replaces the finder once it is set. */
  find?: IssuerKeys['find'];
}

export async function verificationKey({ publicJwk, alg, kid }: SigningKey): Promise<VerificationKey> {
  const cryptoKey = KeyObject.from((await importJWK({ ...publicJwk }, alg)) as CryptoKey);
  return { kid, thumbprint: kid, cryptoKeyFor: requested => (requested === alg ? cryptoKey : undefined) };
}

export async function lab(
  changes: {
    keys?: readonly SigningKey[];
    algorithms?: readonly string[];
    tokenTypes?: readonly string[];
    allowIntegerClaims?: boolean;
    clockToleranceSeconds?: number;
    maxTokens?: number;
    verifiedTokens?: VerifiedTokens<VerificationKey>;
    maxSignatures?: number;
    maxBytes?: number;
    others?: Readonly<Record<string, IssuerKeys>>;
  } = {},
): Promise<Lab> {
  const signing = changes.keys ?? [await signingKey('k1'), await signingKey('r1', 'RS256')];
  const keys = new Map(await Promise.all(signing.map(async key => [key.kid, await verificationKey(key)] as const)));
  const finder: IssuerKeys = {
    isInForce: key => [...keys.values()].includes(key),
    find(header) {
      if (result.find !== undefined) return result.find(header);
      const certified = new Map([...keys.values()].map(key => [key, new Set<string>()]));
      const set = { keys: certified, kids: new Set(keys.keys()) };
      const isKnown = header.kid === undefined || keys.has(header.kid);
      const unavailable = { kind: 'unavailable', detail: 'no key set yet' } as const;
      return isKnown || result.missing === 'unknown' ? findTokenKey(set, header) : unavailable;
    },
  };
  const trusted = (name: string, found: IssuerKeys) => ({
    rules: claimRules({ issuer: name, allowIntegerClaims: changes.allowIntegerClaims ?? false }),
    algorithms: new Set(changes.algorithms ?? ['RS256', 'ES256', 'EdDSA']),
    tokenTypes: new Set(
      (changes.tokenTypes ?? ['JWT', 'at+jwt']).map(type => (type === '' ? '' : normalizeTokenType(type))),
    ),
    keys: found,
  });
  const issuers = new Map(
    Object.entries({ [issuer]: finder, ...changes.others }).map(([name, found]) => [name, trusted(name, found)]),
  );
  const verifier = createTokenVerifier({
    issuers,
    times: { clockToleranceSeconds: changes.clockToleranceSeconds ?? 60, maxLifetimeSeconds: 86_400 },
    maxBytes: changes.maxBytes ?? 8192,
    verifiedTokens: changes.verifiedTokens ?? createVerifiedTokens(changes.maxTokens ?? 100),
    maxSignatures: changes.maxSignatures ?? 2000,
    now: () => result.clock,
  });
  const verify = async (text: string, certificate = ''): Promise<Verification> => {
    const verification = await verifier.verify(text, { certificate });
    // The log may show the detail and the identity, but never jti, which is only compared with the revocation list.
    secrets.show(
      'log',
      JSON.stringify(verification, (name, value) => (name === 'jti' ? undefined : value)),
    );
    return verification;
  };
  const verifyNow = (text: string): unknown => verifier.verify(text, { certificate: '' });
  const result: Lab = {
    keys,
    verify,
    verifyNow,
    async reasonOf(text) {
      const { outcome } = await verify(text);
      return outcome.kind === 'claims' ? 'verified' : outcome.reason;
    },
    clock: now,
    missing: 'unknown',
  };
  return result;
}

/** Replaces a key by one that counts its uses. */
export async function countingKey(at: Lab, kid: string): Promise<{ readonly uses: number }> {
  const key = at.keys.get(kid);
  if (key === undefined) throw new Error('no key');
  const counter = { uses: 0 };
  at.find = () => {
    counter.uses += 1;
    return { kind: 'key', key };
  };
  return counter;
}

/** A forged signature of 64 bytes, different for each number. */
export function forgedSignature(number: number): string {
  const bytes = Buffer.alloc(64, 1);
  bytes.writeUInt32BE(number);
  return bytes.toString('base64url');
}

/** The JSON of the payload of a valid token. */
export async function payload(): Promise<string> {
  const [, segment = ''] = (await token()).split('.');
  return Buffer.from(segment, 'base64url').toString();
}
