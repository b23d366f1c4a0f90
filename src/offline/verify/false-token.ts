// Makes a token with a false signature: right in all that can be seen without the issuer's private key.
import { randomBytes } from 'node:crypto';
import { someIssuer } from '../../authz/issuer-template.ts';
import type { IssuerConfig } from '../../config/schema.ts';

/** Long enough for RS256, and of random bytes, so no key verifies it. */
const signatureBytes = 256;

/** `kid` is one of the issuer's current set; `now` is in seconds since the epoch. */
export function falseToken(
  { issuer, audiences, algorithms, tokenTypes, accounts }: IssuerConfig,
  kid: string,
  now: number,
): string {
  const [typ = ''] = tokenTypes;
  const iat = Math.floor(now);
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = encode({ alg: algorithms[0], kid, ...(typ === '' ? {} : { typ }) });
  const payload = encode({ iss: someIssuer(issuer, accounts), aud: audiences[0], iat, exp: iat + 60 });
  return `${header}.${payload}.${randomBytes(signatureBytes).toString('base64url')}`;
}
