// The story of the demo: chapters of steps, each with its expected outcome. A step acts on the running demo and returns the actual outcome.
import { createHmac } from 'node:crypto';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { alice, billingJob, webApp } from './directory.ts';
import { type HttpResponse, jsonOf, send } from './http-client.ts';
import type { Demo } from './local-demo.ts';
import {
  authorize,
  deriveAccountToken,
  exchangeCode,
  newProofKey,
  refresh,
  requestBackendToken,
  signIn,
} from './oauth-client.ts';
import type { SeenRequest } from './upstream.ts';

export interface Chapter {
  readonly title: string;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly name: string;
  readonly expected: string;
  act(): Promise<Outcome>;
}

export interface Outcome {
  /** The step succeeds if it equals `expected`. */
  readonly actual: string;
  /** Lines to show under the step. */
  readonly notes?: readonly string[];
}

/** The tokens that the steps got, for later steps and for the requests that the demo prints. */
export interface Tokens {
  session: string;
  refresh: string;
  owner: string;
  member: string;
  backend: string;
}

const subscriptions = '/api/subscriptions';
const acme = `${subscriptions}/accounts/acme`;
const globex = `${subscriptions}/accounts/globex`;
const identityHeaders = /^x[-_]auth[-_]/;
const recoverySeconds = 15;
const everyScope = 'subscriptions';
const readingScope = 'subscriptions:read';

export function story(demo: Demo, tokens: Tokens): readonly Chapter[] {
  const { authentication, partner } = demo;
  const { issuer, audience } = authentication;
  let lastAnswer: HttpResponse | undefined;
  let lastSeen: SeenRequest = { method: '', path: '', httpVersion: '', headers: [] };

  return [
    {
      title: 'Alice signs in, and applications get tokens',
      steps: [
        {
          name: 'sign in with a wrong password',
          expected: '401',
          act: async () => ({ actual: `${(await signIn(issuer, alice.name, 'looking-glass')).status}` }),
        },
        {
          name: 'sign in with the right one',
          expected: '200 session',
          async act() {
            const response = await signIn(issuer, alice.name, alice.password);
            const { session_token, accounts } = jsonOf(response);
            tokens.session = String(session_token);
            return { actual: `${response.status} session`, notes: [`accounts of alice: ${memberships(accounts)}`] };
          },
        },
        {
          name: 'web application: authorization code with PKCE',
          expected: '200 tokens',
          async act() {
            const { code, verifier } = await newCode();
            const response = await exchangeCode(issuer, webApp, code, verifier);
            tokens.refresh = String(jsonOf(response).refresh_token);
            return { actual: `${response.status} tokens`, notes: [claimsShown(response)] };
          },
        },
        {
          name: 'an intercepted code without its verifier',
          expected: '400 invalid_grant',
          async act() {
            const { code } = await newCode();
            return oauthOutcome(await exchangeCode(issuer, webApp, code, newProofKey().verifier));
          },
        },
        {
          name: 'web application: refresh token',
          expected: '200 tokens',
          async act() {
            const response = await refresh(issuer, webApp, tokens.refresh);
            tokens.owner = String(jsonOf(response).access_token);
            return { actual: `${response.status} tokens` };
          },
        },
        {
          name: 'the same refresh token again',
          expected: '400 invalid_grant',
          act: async () => oauthOutcome(await refresh(issuer, webApp, tokens.refresh)),
        },
        {
          name: 'backend: client credentials',
          expected: '200 tokens',
          async act() {
            const response = await requestBackendToken(issuer, billingJob);
            tokens.backend = String(jsonOf(response).access_token);
            return { actual: `${response.status} tokens`, notes: [claimsShown(response)] };
          },
        },
        {
          name: 'derive a token for globex, as a member',
          expected: '200 tokens',
          async act() {
            const response = await deriveAccountToken(issuer, tokens.session, 'globex');
            tokens.member = String(jsonOf(response).access_token);
            return { actual: `${response.status} tokens`, notes: [claimsShown(response)] };
          },
        },
        {
          name: 'derive a token for initech, as a stranger',
          expected: '403 not_a_member',
          act: async () => oauthOutcome(await deriveAccountToken(issuer, tokens.session, 'initech')),
        },
      ],
    },
    {
      title: 'Allowed: the upstream gets the request with the identity headers',
      steps: [
        {
          name: 'alice lists subscriptions',
          expected: '200',
          act: () => call({ token: tokens.owner, shows: identityHeaders }),
        },
        { name: 'alice lists those of acme', expected: '200', act: () => call({ token: tokens.owner, target: acme }) },
        {
          name: 'alice creates one',
          expected: '200',
          act: () => call({ token: tokens.owner, method: 'POST', target: acme, body: '{"plan":"gold"}' }),
        },
        { name: 'alice looks into globex', expected: '200', act: () => call({ token: tokens.member }) },
        {
          name: 'the billing job reads acme',
          expected: '200',
          act: () => call({ token: tokens.backend, target: acme, shows: identityHeaders }),
        },
        {
          name: 'the bearer token is removed',
          expected: '200, none upstream',
          async act() {
            const { actual } = await call({ token: tokens.owner });
            const leaked = lastSeen.headers.some(([name]) => name === 'authorization');
            return { actual: `${actual}, ${leaked ? 'sent' : 'none'} upstream` };
          },
        },
        {
          name: 'forged identity headers are overwritten',
          expected: '200, none upstream',
          async act() {
            const headers = { 'x-auth-uid': 'mallory', 'X-Auth-Role': 'owner', 'x-auth-acc': ['globex', 'initech'] };
            const more = { 'x-auth-admin': 'true' };
            const outcome = await call({
              token: tokens.owner,
              headers: { ...headers, ...more },
              shows: identityHeaders,
            });
            const identity = lastSeen.headers.filter(([name]) => identityHeaders.test(name));
            const asIssued = JSON.stringify(identity.toSorted()) === JSON.stringify(ownerIdentity(issuer));
            return { ...outcome, actual: `${outcome.actual}, ${asIssued ? 'none' : 'some'} upstream` };
          },
        },
      ],
    },
    {
      title: 'Refused: another account, or a role without the permission',
      steps: [
        refused('alice of acme asks for globex', '403 account_mismatch', () => ({
          token: tokens.owner,
          target: globex,
        })),
        refused('the same in a header', '403 account_mismatch', () => ({
          token: tokens.owner,
          headers: { 'x-account-id': 'globex' },
        })),
        refused('the same in the query', '403 account_mismatch', () => ({
          token: tokens.owner,
          target: `${subscriptions}?account_id=globex`,
        })),
        refused('her token for globex does not open acme', '403 account_mismatch', () => ({
          token: tokens.member,
          target: `${subscriptions}?account_id=acme`,
        })),
        refused('a member deletes', '403 role_forbidden', () => ({
          token: tokens.member,
          method: 'DELETE',
          target: `${subscriptions}/42`,
        })),
        refused('a member on the pages of owners and admins', '403 role_forbidden', () => ({
          token: tokens.member,
          target: globex,
        })),
        refused('an unknown role', '403 role_forbidden', async () => ({
          token: await minted({ role: 'emperor' }),
        })),
        refused('a path that is neither protected nor served', '404 from Envoy', () => ({
          token: tokens.owner,
          target: '/api/accounts',
        })),
      ],
    },
    {
      title: "A partner's issuer, and one token of two accounts: initech (owner), umbrella (member)",
      steps: [
        {
          name: 'carol reads initech, as its owner',
          expected: '200',
          act: async () =>
            call({ token: await carols(), target: `${subscriptions}?account_id=initech`, shows: identityHeaders }),
        },
        {
          name: 'she reads umbrella, as a member',
          expected: '200',
          act: async () =>
            call({ token: await carols(), target: `${subscriptions}?account_id=umbrella`, shows: identityHeaders }),
        },
        {
          name: 'she deletes in initech',
          expected: '200',
          act: async () =>
            call({ token: await carols(), method: 'DELETE', target: `${subscriptions}/accounts/initech/42` }),
        },
        refused('she deletes in umbrella', '403 role_forbidden', async () => ({
          token: await carols(),
          method: 'DELETE',
          target: `${subscriptions}/42?account_id=umbrella`,
        })),
        refused('she names no account', '400 account_required', async () => ({ token: await carols() })),
        refused('she names both', '403 account_mismatch', async () => ({
          token: await carols(),
          target: `${subscriptions}?account_id=initech`,
          headers: { 'x-account-id': 'umbrella' },
        })),
        refused('the partner names acme, which is not its own', '403 account_mismatch', async () => ({
          token: await carols({ organization: { acme: { roles: ['owner'] } } }),
          target: acme,
        })),
        {
          name: 'an application with the scope to read',
          expected: '200',
          act: async () => call({ token: await minted({ scope: readingScope }), target: acme }),
        },
        {
          name: 'it writes, for an owner',
          expected: '403 scope_forbidden',
          async act() {
            const outcome = await call({ token: await minted({ scope: readingScope }), method: 'POST', target: acme });
            return { ...outcome, notes: [`www-authenticate: ${lastAnswer?.headers['www-authenticate']}`] };
          },
        },
      ],
    },
    {
      title: 'Refused: missing and invalid tokens',
      steps: [
        refused('no token', '401 token_missing', () => ({})),
        refused('a password instead', '401 token_missing', () => ({
          headers: { authorization: 'Basic YWxpY2U6eA==' },
        })),
        refused('forged signature', '401 token_invalid', async () => ({ token: await forged() })),
        refused('payload changed after signing', '401 token_invalid', () => ({ token: changed(tokens.member) })),
        refused('alg none', '401 token_invalid', () => ({ token: unsigned() })),
        refused('alg HS256, keyed with the public key', '401 token_invalid', async () => ({ token: await confused() })),
        refused('wrong audience', '401 token_invalid', async () => ({
          token: await minted({ aud: 'https://api.example.com/invoices' }),
        })),
        refused('wrong issuer', '401 token_invalid', async () => ({
          token: await minted({ iss: 'https://evil.example' }),
        })),
        refused('no account claim', '401 token_invalid', async () => ({ token: await minted({ acc: undefined }) })),
        refused('no expiry', '401 token_invalid', async () => ({ token: await minted({ exp: undefined }) })),
        refused('expired', '401 token_expired', async () => ({
          token: await minted({ iat: now() - 900, exp: now() - 300 }),
        })),
        refused('two Authorization headers', '400 request_invalid', () => ({
          headers: { authorization: [`Bearer ${tokens.owner}`, `Bearer ${tokens.member}`] },
        })),
      ],
    },
    {
      title: 'Refused: ambiguous paths and headers',
      steps: [
        refused('dot segments out of acme into globex', '403 account_mismatch', () => ({
          token: tokens.owner,
          target: `${acme}/../globex`,
        })),
        refused('the same, the slashes encoded', '400 from Envoy', () => ({
          token: tokens.owner,
          target: `${acme}%2F..%2Fglobex`,
        })),
        refused('the same, encoded twice', '400 request_invalid', () => ({
          token: tokens.owner,
          target: `${acme}/%252e%252e/globex`,
        })),
        refused('a path parameter', '400 request_invalid', () => ({ token: tokens.owner, target: `${acme};v=1` })),
        refused('another case', '404 from Envoy', () => ({ token: tokens.owner, target: '/API/subscriptions' })),
        refused('an account twice in the query', '403 account_mismatch', () => ({
          token: tokens.owner,
          target: `${subscriptions}?account_id=acme&account_id=globex`,
        })),
        refused('an encoded name in the query', '400 request_invalid', () => ({
          token: tokens.owner,
          target: `${subscriptions}?account%5Fid=globex`,
        })),
        refused('an identity header with underscores', '400 from Envoy', () => ({
          token: tokens.owner,
          headers: { x_auth_uid: 'mallory' },
        })),
      ],
    },
    {
      title: 'Keys: rotated, removed, unavailable',
      steps: [
        {
          name: 'keys rotated: a token of the new key',
          expected: '200',
          async act() {
            await authentication.rotateKeys();
            const token = await minted({});
            return eventually('200', () => call({ token }));
          },
        },
        { name: 'a token of the previous key', expected: '200', act: () => call({ token: tokens.owner }) },
        {
          name: 'older keys removed: a token of the new key',
          expected: '200',
          async act() {
            await authentication.rotateKeys({ hard: true });
            tokens.owner = await derived('acme');
            return eventually('200', () => call({ token: tokens.owner }));
          },
        },
        refused('a token of a removed key', '401 token_invalid', () => ({ token: tokens.member })),
        {
          name: 'authentication down: a token of a known key',
          expected: '200',
          async act() {
            await authentication.stop();
            return call({ token: tokens.owner });
          },
        },
        {
          name: 'a token of a key that cannot be fetched',
          expected: '503 keys_unavailable',
          async act() {
            await authentication.rotateKeys();
            tokens.member = await minted({ acc: 'globex', role: 'member' });
            return eventually('503 keys_unavailable', () => call({ token: tokens.member }));
          },
        },
        {
          name: 'the 503 has Retry-After',
          expected: 'Retry-After',
          async act() {
            const seconds = lastAnswer?.headers['retry-after'] ?? '';
            return { actual: /^[1-9]\d*$/.test(seconds) ? 'Retry-After' : 'nothing', notes: [`in ${seconds} s`] };
          },
        },
        {
          name: 'a token of a known key, still',
          expected: '200',
          act: () => call({ token: tokens.owner }),
        },
        {
          name: 'authentication back: recovers by itself',
          expected: '200',
          async act() {
            await authentication.startAgain();
            return eventually('200', () => call({ token: tokens.member }));
          },
        },
      ],
    },
    {
      title: 'account-authz is down: Envoy refuses everything',
      steps: [
        {
          name: 'account-authz stopped',
          expected: '503 from Envoy',
          async act() {
            await demo.stopAuthorizer();
            return call({ token: tokens.owner });
          },
        },
        refused('a request without a token', '503 from Envoy', () => ({})),
        {
          name: 'account-authz started again',
          expected: '200',
          async act() {
            await demo.startAuthorizer();
            return eventually('200', () => call({ token: tokens.owner }));
          },
        },
      ],
    },
  ];

  interface Call {
    readonly token?: string;
    readonly method?: string;
    readonly target?: string;
    readonly headers?: Readonly<Record<string, string | string[]>>;
    readonly body?: string;
    /** The headers to show of the request that the upstream got. */
    readonly shows?: RegExp;
  }

  /** Sends one request through Envoy, and compares the answer with what the upstream got. */
  async function call({
    token,
    method = 'GET',
    target = subscriptions,
    headers = {},
    body,
    shows,
  }: Call): Promise<Outcome> {
    const before = await demo.upstreamState();
    const response = await send({
      origin: demo.gateway,
      method,
      target,
      headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    lastAnswer = response;
    const { count, last = lastSeen } = await demo.upstreamState();
    const passed = count > before.count;
    lastSeen = last;
    const notes = passed && shows ? lastSeen.headers.filter(([name]) => shows.test(name)) : [];
    return {
      actual: answerShown(response, passed),
      notes: notes.map(([name, value]) => `upstream saw ${name}: ${value}`),
    };
  }

  function refused(name: string, expected: string, request: () => Call | Promise<Call>): Step {
    return { name, expected, act: async () => call(await request()) };
  }

  async function newCode(): Promise<{ readonly code: string; readonly verifier: string }> {
    const { verifier, challenge } = newProofKey();
    const { headers } = await authorize(issuer, webApp, tokens.session, challenge);
    return { code: new URL(headers.location ?? '').searchParams.get('code') ?? '', verifier };
  }

  async function derived(account: string): Promise<string> {
    return String(jsonOf(await deriveAccountToken(issuer, tokens.session, account)).access_token);
  }

  /** The claims of a valid token of alice, with changes. */
  function claims(changes: Readonly<Record<string, unknown>>): JWTPayload {
    const identity = { uid: alice.uid, app: webApp.clientId, acc: 'acme', role: 'owner', scope: everyScope };
    return { ...identity, iss: issuer, aud: audience, iat: now(), exp: now() + 3600, ...changes };
  }

  /** Signed with the current key of the authentication service. */
  function minted(changes: Readonly<Record<string, unknown>>): Promise<string> {
    return authentication.signToken(claims(changes));
  }

  /** Signed by the partner, with the accounts and the roles in each as members of an object. */
  function carols(changes: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const organization = { initech: { roles: ['owner'] }, umbrella: { roles: ['member'] } };
    const identity = { uid: 'user-carol', app: 'partner-portal', scope: everyScope, organization };
    const times = { iat: now(), exp: now() + 3600 };
    return partner.signToken({ ...identity, iss: partner.issuer, aud: audience, ...times, ...changes });
  }

  /** Signed with another key under the `kid` of the current one. */
  async function forged(): Promise<string> {
    const { privateKey } = await generateKeyPair('ES256');
    const header = { alg: 'ES256', typ: 'at+jwt', kid: authentication.signingKid };
    return new SignJWT(claims({})).setProtectedHeader(header).sign(privateKey);
  }

  function unsigned(): string {
    return `${base64url({ alg: 'none', typ: 'at+jwt', kid: authentication.signingKid })}.${base64url(claims({}))}.`;
  }

  /** Algorithm confusion (RFC 8725 section 2.1): an HMAC with the published public key as the secret. */
  async function confused(): Promise<string> {
    const { body } = await send({ origin: issuer, target: new URL(authentication.jwksUrl).pathname });
    const text = `${base64url({ alg: 'HS256', typ: 'at+jwt', kid: authentication.signingKid })}.${base64url(claims({}))}`;
    return `${text}.${createHmac('sha256', body).update(text).digest('base64url')}`;
  }
}

/** A valid token with a payload that was changed to owner of acme. */
function changed(token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const claims: JWTPayload = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return [header, base64url({ ...claims, acc: 'acme', role: 'owner' }), signature].join('.');
}

function ownerIdentity(issuer: string): readonly (readonly [string, string])[] {
  const identity = { acc: 'acme', app: webApp.clientId, iss: issuer, role: 'owner', uid: alice.uid };
  return Object.entries(identity).map(([name, value]) => [`x-auth-${name}`, value]);
}

/** Repeats until the outcome is as expected: a key refresh takes up to the cooldown. */
async function eventually(expected: string, act: () => Promise<Outcome>): Promise<Outcome> {
  const deadline = performance.now() + recoverySeconds * 1000;
  for (;;) {
    const outcome = await act();
    if (outcome.actual === expected || performance.now() > deadline) return outcome;
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}

function answerShown({ status, headers, body }: HttpResponse, passed: boolean): string {
  if (status === 200) return passed ? '200' : '200, yet not from the upstream';
  const reached = passed ? ', yet the upstream was reached' : '';
  const isOurs = headers['content-type'] === 'application/problem+json';
  return `${status} ${isOurs ? String(JSON.parse(body).reason) : 'from Envoy'}${reached}`;
}

function oauthOutcome(response: HttpResponse): Outcome {
  return { actual: `${response.status} ${String(jsonOf(response).error)}` };
}

function memberships(accounts: unknown): string {
  const list = accounts as readonly { readonly account_id: string; readonly role: string }[];
  return list.map(({ account_id, role }) => `${account_id} (${role})`).join(', ');
}

/** The identity claims of the access token in a response, without the token. */
function claimsShown(response: HttpResponse): string {
  const [, payload = ''] = String(jsonOf(response).access_token).split('.');
  const { uid, app, acc, role } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as JWTPayload;
  return `uid ${uid}, app ${app}, acc ${acc}, role ${role}`;
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
