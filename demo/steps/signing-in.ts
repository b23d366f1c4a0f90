// The section in which alice signs in, and applications get tokens.
import type { JWTPayload } from 'jose';
import { alice, billingJob, webApp } from '../directory.ts';
import { type HttpResponse, jsonOf } from '../http-client.ts';
import {
  authorize,
  deriveAccountToken,
  exchangeCode,
  newProofKey,
  refresh,
  requestBackendToken,
  signIn,
} from '../oauth-client.ts';
import type { Outcome, Section } from '../run-sections.ts';
import { type Scene, step } from './scene.ts';

export function signingIn({ demo, tokens }: Scene): Section {
  const { issuer } = demo.authentication;
  const newCode = async (): Promise<{ readonly code: string; readonly verifier: string }> => {
    const { verifier, challenge } = newProofKey();
    const { headers } = await authorize(issuer, webApp, tokens.session, challenge);
    return { code: new URL(headers.location ?? '').searchParams.get('code') ?? '', verifier };
  };
  return {
    title: 'Alice signs in, and applications get tokens',
    steps: [
      step('sign in with a wrong password', '401', async () => ({
        actual: `${(await signIn(issuer, alice.name, 'looking-glass')).status}`,
      })),
      step('sign in with the right one', '200 session', async () => {
        const response = await signIn(issuer, alice.name, alice.password);
        const { session_token, accounts } = jsonOf(response);
        tokens.session = String(session_token);
        return { actual: `${response.status} session`, notes: [`accounts of alice: ${memberships(accounts)}`] };
      }),
      step('web application: authorization code with PKCE', '200 tokens', async () => {
        const { code, verifier } = await newCode();
        const response = await exchangeCode(issuer, webApp, code, verifier);
        tokens.refresh = String(jsonOf(response).refresh_token);
        return tokensShown(response);
      }),
      step('an intercepted code without its verifier', '400 invalid_grant', async () => {
        const { code } = await newCode();
        return errorShown(await exchangeCode(issuer, webApp, code, newProofKey().verifier));
      }),
      step('web application: refresh token', '200 tokens', async () => {
        const response = await refresh(issuer, webApp, tokens.refresh);
        tokens.owner = accessToken(response);
        return { actual: `${response.status} tokens` };
      }),
      step('the same refresh token again', '400 invalid_grant', async () =>
        errorShown(await refresh(issuer, webApp, tokens.refresh)),
      ),
      step('backend: client credentials', '200 tokens', async () => {
        const response = await requestBackendToken(issuer, billingJob);
        tokens.backend = accessToken(response);
        return tokensShown(response);
      }),
      step('derive a token for globex, as a member', '200 tokens', async () => {
        const response = await deriveAccountToken(issuer, tokens.session, 'globex');
        tokens.member = accessToken(response);
        return tokensShown(response);
      }),
      step('derive a token for initech, as a stranger', '403 not_a_member', async () =>
        errorShown(await deriveAccountToken(issuer, tokens.session, 'initech')),
      ),
    ],
  };
}

function errorShown(response: HttpResponse): Outcome {
  return { actual: `${response.status} ${String(jsonOf(response).error)}` };
}

/** With the identity claims of the access token, without the token. */
function tokensShown(response: HttpResponse): Outcome {
  const [, payload = ''] = accessToken(response).split('.');
  const { uid, app, acc, role } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as JWTPayload;
  return { actual: `${response.status} tokens`, notes: [`uid ${uid}, app ${app}, acc ${acc}, role ${role}`] };
}

function accessToken(response: HttpResponse): string {
  return String(jsonOf(response).access_token);
}

function memberships(accounts: unknown): string {
  const list = accounts as readonly { readonly account_id: string; readonly role: string }[];
  return list.map(({ account_id, role }) => `${account_id} (${role})`).join(', ');
}
