// Tokens for tests: valid by default; every part can be replaced, down to the signed text.
import { webcrypto } from 'node:crypto';
import { compileIssuerAccounts } from '../src/authz/issuer-accounts.ts';
import { compilePermissions } from '../src/authz/permission.ts';
import type { ForwardClaims } from '../src/headers/headers.ts';
import { compileSource } from '../src/token/claim-source.ts';
import type { ClaimRules } from '../src/token/claims.ts';
import { type ClaimSources, compileClaimSources } from '../src/token/identity-claims.ts';
import { secrets } from './secrets.ts';
import { type SigningKey, signingKey } from './signing-key.ts';

export const issuer = 'https://idp.test';
export const audience = 'https://api.test/subscriptions';

/** The uid of a valid token: allowed only where the identity of a verified token is. */
export const uid = secrets.fresh('identity');

/** The time of all tests that inject the clock, in seconds since the epoch. */
export const now = 1_800_000_000;

/** The claims of a valid token at `now`; a member set to undefined is left out. */
export function claims(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    iss: issuer,
    aud: audience,
    iat: now - 60,
    exp: now + 3600,
    uid,
    app: 'web',
    acc: 'acct1',
    role: 'owner',
    ...changes,
  };
}

/** The rules of an issuer with the default claims, which may speak for every account. */
export function claimRules(
  changes: {
    issuer?: string;
    claims?: Partial<ClaimSources>;
    roles?: readonly string[];
    scopes?: readonly string[];
    accounts?: readonly string[];
    dots?: boolean;
    lower?: boolean;
    allowIntegerClaims?: boolean;
    forwardClaims?: ForwardClaims;
  } = {},
): ClaimRules {
  const tableOf = (names: readonly string[]) => compilePermissions(new Map(names.map(name => [name, ['*']])));
  return {
    ...compileClaimSources(
      { aud: 'aud', uid: 'uid', app: 'app', acc: 'acc', role: 'role', scope: 'scope', ...changes.claims },
      changes.allowIntegerClaims ?? false,
    ),
    forwarded: Object.values(changes.forwardClaims ?? {}).map(text => compileSource(text, false)),
    issuer: changes.issuer ?? issuer,
    account: undefined,
    audiences: new Set([audience]),
    roles: tableOf(changes.roles ?? ['owner', 'member']),
    scopes: changes.scopes && tableOf(changes.scopes),
    accounts: compileIssuerAccounts(changes.accounts ?? ['*']),
    grammar: { dots: changes.dots ?? false, lower: changes.lower ?? false },
  };
}

export interface TokenParts {
  readonly key?: SigningKey;
  /** Changes to the header; a member set to undefined is left out. */
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** The exact text of the header or payload, before base64url. */
  readonly headerText?: string | Buffer;
  readonly payloadText?: string | Buffer;
  /** The exact header or payload segment, signed unchanged. */
  readonly headerSegment?: string;
  readonly payloadSegment?: string;
  /** The exact signature segment. */
  readonly signature?: string;
}

export async function token(parts: TokenParts = {}): Promise<string> {
  const key = parts.key ?? (await signingKey('k1'));
  const header = { alg: key.alg, typ: 'JWT', kid: key.kid, ...parts.header };
  const headerSegment = parts.headerSegment ?? base64url(parts.headerText ?? JSON.stringify(header));
  // A claim that account-authz does not read and no output may show.
  const payload = { unread: secrets.fresh('claim'), jti: secrets.fresh('identity'), ...claims(parts.claims) };
  const payloadSegment = parts.payloadSegment ?? base64url(parts.payloadText ?? JSON.stringify(payload));
  const input = `${headerSegment}.${payloadSegment}`;
  const text = `${input}.${parts.signature ?? (await sign(input, key))}`;
  secrets.mint('token', text);
  return text;
}

export function base64url(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

const signingParameters: Readonly<
  Record<string, webcrypto.AlgorithmIdentifier | webcrypto.EcdsaParams | webcrypto.RsaPssParams>
> = {
  RS256: { name: 'RSASSA-PKCS1-v1_5' },
  RS384: { name: 'RSASSA-PKCS1-v1_5' },
  RS512: { name: 'RSASSA-PKCS1-v1_5' },
  PS256: { name: 'RSA-PSS', saltLength: 32 },
  ES256: { name: 'ECDSA', hash: 'SHA-256' },
  ES384: { name: 'ECDSA', hash: 'SHA-384' },
  ES512: { name: 'ECDSA', hash: 'SHA-512' },
  EdDSA: { name: 'Ed25519' },
  Ed25519: { name: 'Ed25519' },
};

export async function sign(input: string, key: SigningKey): Promise<string> {
  const parameters = signingParameters[key.alg];
  if (parameters === undefined) throw new Error(`no parameters for ${key.alg}`);
  const signature = await webcrypto.subtle.sign(parameters, key.privateKey as webcrypto.CryptoKey, Buffer.from(input));
  return Buffer.from(signature).toString('base64url');
}
