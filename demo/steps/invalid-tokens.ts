// The section of missing and invalid tokens, forged ones among them.
import { createHmac } from 'node:crypto';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { send } from '../http-client.ts';
import type { Section } from '../run-sections.ts';
import { now, type Scene, step } from './scene.ts';

export function invalidTokens({ demo, tokens, call, request, claims, minted }: Scene): Section {
  const { authentication } = demo;
  const header = (alg: string) => ({ alg, typ: 'at+jwt', kid: authentication.signingKid });
  const unsigned = (alg: string): string => `${base64url(header(alg))}.${base64url(claims())}`;

  /** Signed with another key under the `kid` of the current one. */
  const forged = async (): Promise<string> => {
    const { privateKey } = await generateKeyPair('ES256');
    return new SignJWT(claims()).setProtectedHeader(header('ES256')).sign(privateKey);
  };

  /** Algorithm confusion (RFC 8725 section 2.1): an HMAC with the published public key as the secret. */
  const confused = async (): Promise<string> => {
    const { body } = await send({ origin: authentication.issuer, target: new URL(authentication.jwksUrl).pathname });
    const text = unsigned('HS256');
    return `${text}.${createHmac('sha256', body).update(text).digest('base64url')}`;
  };

  const invalid = '401 token_invalid';
  return {
    title: 'Refused: missing and invalid tokens',
    steps: [
      request('no token', '401 token_missing', {}),
      request('a password instead', '401 token_missing', { headers: { authorization: 'Basic YWxpY2U6eA==' } }),
      request('forged signature', invalid, { token: forged }),
      request('payload changed after signing', invalid, { token: () => changed(tokens.member) }),
      request('alg none', invalid, { token: () => `${unsigned('none')}.` }),
      request('alg HS256, keyed with the public key', invalid, { token: confused }),
      request('wrong audience', invalid, { token: minted({ aud: 'https://api.example.com/invoices' }) }),
      request('wrong issuer', invalid, { token: minted({ iss: 'https://evil.example' }) }),
      request('no account claim', invalid, { token: minted({ acc: undefined }) }),
      request('no expiry', invalid, { token: minted({ exp: undefined }) }),
      request('expired', '401 token_expired', { token: minted({ iat: now() - 900, exp: now() - 300 }) }),
      step('two Authorization headers', '400 request_invalid', () =>
        call({ headers: { authorization: [`Bearer ${tokens.owner}`, `Bearer ${tokens.member}`] } }),
      ),
    ],
  };
}

/** A valid token with a payload that was changed to owner of acme. */
function changed(token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const claims: JWTPayload = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return [header, base64url({ ...claims, acc: 'acme', role: 'owner' }), signature].join('.');
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
