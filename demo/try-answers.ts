// The requests of `npm run try`, and who gave the answer: account-authz, Envoy in the place of a service that is away, or the service.
import { setTimeout } from 'node:timers/promises';
import { type HttpResponse, send } from './http-client.ts';

export async function ask(origin: string, target: string, token: string, attempts = 12): Promise<HttpResponse> {
  const answer = await send({ origin, target, headers: { authorization: `Bearer ${token}` } });
  // On a busy machine a check may take longer than Envoy waits for it.
  if (answer.status !== 503 || attempts === 1) return answer;
  await setTimeout(250);
  return ask(origin, target, token, attempts - 1);
}

/** Of a refusal of account-authz; undefined for any other answer. */
export function reasonOf({ headers, body }: HttpResponse): string | undefined {
  if (headers['content-type'] !== 'application/problem+json') return undefined;
  return /"type":"urn:account-authz:([a-z_]+)"/.exec(body)?.[1];
}

/** True for the answer that Envoy gives in the place of a service that is away. */
export function isEnvoyUnanswered({ status, body }: HttpResponse): boolean {
  return status === 503 && /^(?:upstream connect error|no healthy upstream)/.test(body);
}

/** What a newcomer may take for a refusal. */
export function ownErrorNote(status: number): string {
  const own = `${status} is the answer of your service: account-authz allowed the request.`;
  return status === 404 ? `${own} Your service has nothing there: name one of its paths with --path` : own;
}
