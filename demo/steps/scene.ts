// What the sections of the demo share: the running demo, the tokens so far, steps, and requests through Envoy.
import { setTimeout as delay } from 'node:timers/promises';
import { alice, webApp } from '../directory.ts';
import { type HttpResponse, send } from '../http-client.ts';
import type { Demo } from '../local-demo.ts';
import type { Outcome, Step } from '../run-sections.ts';
import type { SeenRequest } from '../upstream.ts';

/** The tokens that the steps got, for later steps and for the requests that the demo prints. */
export class Tokens {
  session = '';
  refresh = '';
  owner = '';
  member = '';
  backend = '';
}

export interface Call {
  /** Asked when the request is sent. */
  readonly token?: () => string | Promise<string>;
  /** Default: GET. */
  readonly method?: string;
  /** Default: `/api/subscriptions`. */
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  /** Whether to show the identity headers of the request that the upstream got. */
  readonly showsIdentity?: boolean;
}

export interface Answer extends Outcome {
  readonly response: HttpResponse;
  /** The headers of the request that the upstream got; none if it got no request. */
  readonly seen: SeenRequest['headers'];
}

export type Scene = ReturnType<typeof createScene>;

type Claims = Readonly<Record<string, unknown>>;

export const subscriptions = '/api/subscriptions';
export const acme = `${subscriptions}/accounts/acme`;
export const globex = `${subscriptions}/accounts/globex`;
export const identityHeaders = /^x[-_]auth[-_]/;
export const everyScope = 'subscriptions';
const recoverySeconds = 15;

export function createScene(demo: Demo, tokens: Tokens) {
  const { authentication, gateway } = demo;

  /** Sends one request through Envoy, and compares the answer with what the upstream got. */
  async function call(request: Call): Promise<Answer> {
    const { token, method = 'GET', target = subscriptions, body, showsIdentity = false } = request;
    const headers = { ...(token && { authorization: `Bearer ${await token()}` }), ...request.headers };
    const before = await demo.upstreamState();
    const response = await send({ origin: gateway, method, target, headers, body });
    const { count, last } = await demo.upstreamState();
    const passed = count > before.count;
    const seen = passed ? (last?.headers ?? []) : [];
    const shown = showsIdentity ? seen.filter(([name]) => identityHeaders.test(name)) : [];
    return {
      actual: answerShown(response, passed),
      notes: shown.map(([name, value]) => `upstream saw ${name}: ${value}`),
      response,
      seen,
    };
  }

  /** A step that sends one request. */
  const request = (name: string, expected: string, parts: Call): Step => step(name, expected, () => call(parts));

  /** A step that changes something, then sends a request until the answer is as expected: a key refresh takes up to the cooldown. */
  const requestAfter = (name: string, expected: string, parts: Call, change: () => Promise<unknown>): Step =>
    step(name, expected, async () => {
      await change();
      const deadline = performance.now() + recoverySeconds * 1000;
      for (;;) {
        const answer = await call(parts);
        if (answer.actual === expected || performance.now() > deadline) return answer;
        await delay(200);
      }
    });

  /** The claims of a valid token of alice, with changes. */
  const claims = (changes: Claims = {}) => {
    const identity = { uid: alice.uid, app: webApp.clientId, acc: 'acme', role: 'owner', scope: everyScope };
    const { issuer: iss, audience: aud } = authentication;
    return { ...identity, iss, aud, iat: now(), exp: now() + 3600, ...changes };
  };

  return {
    demo,
    tokens,
    call,
    request,
    requestAfter,
    claims,
    owner: () => tokens.owner,
    member: () => tokens.member,
    /** Signs such claims with the current key of the authentication service. */
    minted: (changes?: Claims) => () => authentication.signToken(claims(changes)),
  };
}

export function step(name: string, expected: string, act: () => Promise<Outcome>): Step {
  return { name, expected, act };
}

export function now(): number {
  return Math.floor(Date.now() / 1000);
}

function answerShown({ status, headers, body }: HttpResponse, passed: boolean): string {
  if (status === 200) return passed ? '200' : '200, yet not from the upstream';
  const reached = passed ? ', yet the upstream was reached' : '';
  const isOurs = headers['content-type'] === 'application/problem+json';
  return `${status} ${isOurs ? String(JSON.parse(body).reason) : 'from Envoy'}${reached}`;
}
