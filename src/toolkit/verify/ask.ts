// Asks a gateway one question at a time, at no other address than that of its URL, or the one to connect to.
import type { SecureContext } from 'node:tls';
import { type Reason, refusalAnswers } from '../../authz/refusal.ts';
import type { Config } from '../../config/schema.ts';
import { networkProblem } from '../../http/network-problem.ts';
import { readStart, sendRequest } from '../../http/send-request.ts';
import { memberOf, parseStrictJson } from '../../json/strict-json.ts';
import { errorCode, type Problem, problem } from '../../text/problem.ts';
import { isLoopbackUrl } from '../../text/url.ts';
import { tokenLines } from '../offline/check-request.ts';
import type { PlannedRequest } from './plan.ts';

export interface GatewayAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** Without parameters; empty if there is none. */
  readonly mediaType: string;
  /** Only of a refusal of account-authz. */
  readonly reason?: Reason | undefined;
  /** Envoy's admin interface wrote it. Only read where the plan asks for that. */
  readonly isAdmin?: boolean;
}

export interface Gateway {
  readonly url: URL;
  /** Where to connect in place of the URL's host and port. */
  readonly connectTo?: { readonly host: string; readonly port: number } | undefined;
  readonly token: Pick<Config['token'], 'from' | 'origins'>;
  readonly userAgent: string;
  /** With the authorities to trust, made once: to parse those of the system takes 25 ms. */
  readonly secureContext?: SecureContext | undefined;
  /** Time limit of an answer, in milliseconds; default 5000. */
  readonly timeoutMs?: number;
}

const maxAnswerBytes = 64 * 1024;

export const gatewayRule =
  'URL must be https://HOST or https://HOST:PORT and nothing else (http for loopback addresses, or with --allow-http)';

/** The URL of a gateway, or undefined. It has no path, because the configuration has them. */
export function parseGatewayUrl(text: string, { allowHttp }: { readonly allowHttp: boolean }): URL | undefined {
  if (!/^https?:\/\/[\w.~:[\]-]+\/?$/.test(text) || !URL.canParse(text)) return undefined;
  return text.startsWith('https:') || allowHttp || isLoopbackUrl(text) ? new URL(text) : undefined;
}

/** Never rejects. The problem is why there is no answer, in a few words without foreign text. */
export async function ask(gateway: Gateway, planned: PlannedRequest): Promise<GatewayAnswer | Problem> {
  const { url, connectTo, token, userAgent, secureContext, timeoutMs = 5000 } = gateway;
  const { kind, target: path, host, headers, authorization } = planned;
  const signal = AbortSignal.timeout(timeoutMs);
  const carrier = authorization === undefined ? [] : tokenLines(token, authorization, headers);
  try {
    const answer = await sendRequest(url, {
      method: 'GET',
      path,
      signal,
      connectTo,
      headers: { ...Object.fromEntries([...headers, ...carrier]), host, 'user-agent': userAgent, accept: '*/*' },
      secureContext,
    });
    const { statusCode: status = 0 } = answer;
    const [mediaType = ''] = (answer.headers['content-type'] ?? '').toLowerCase().split(/[; \t]/, 1);
    const known = { kind: 'answer', status, mediaType } as const;
    // Nothing else has to be read: the answer of an API may be endless.
    if (mediaType === 'application/problem+json')
      return { ...known, reason: reasonIn(await readStart(answer, maxAnswerBytes, signal)) };
    if (kind === 'admin of Envoy' && mediaType === 'text/plain')
      return { ...known, isAdmin: adminStates.test((await readStart(answer, 32, signal)).toString('latin1')) };
    answer.destroy();
    return known;
  } catch (error) {
    // What a handshake asks for.
    if (carrier.length > 1 && errorCode(error) === 'status 101') return { kind: 'answer', status: 101, mediaType: '' };
    const late = `no answer within ${timeoutMs / 1000} s`;
    return problem(signal.aborted ? late : `${networkProblem(error)} (${errorCode(error) ?? 'no HTTP answer'})`);
  }
}

// What GET /ready says: https://www.envoyproxy.io/docs/envoy/latest/operations/admin#get--ready
const adminStates = /^(?:LIVE|DRAINING|(?:PRE_)?INITIALIZING)\s*$/;

function reasonIn(body: Buffer): Reason | undefined {
  const parsed = parseStrictJson(body);
  if (parsed.kind === 'problem') return undefined;
  const reason = memberOf(parsed.value, 'reason');
  if (!isReason(reason) || memberOf(parsed.value, 'type') !== `urn:account-authz:${reason}`) return undefined;
  return reason;
}

function isReason(value: unknown): value is Reason {
  return typeof value === 'string' && Object.hasOwn(refusalAnswers, value);
}
