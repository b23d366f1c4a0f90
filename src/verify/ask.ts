// Asks a gateway one question at a time: never through a proxy, never redirected, at no other address than that of its URL.
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import { isIP } from 'node:net';
import { type Reason, refusalAnswers } from '../authz/refusal.ts';
import { memberOf, parseStrictJson } from '../json/strict-json.ts';
import { rootsInForce } from '../keys/trusted-roots.ts';
import { Agent, request as httpRequest } from '../node-http.ts';
import { errorCode, type Problem, problem } from '../text/problem.ts';
import { hostOf, isLoopbackUrl, portOf } from '../text/url.ts';
import type { PlannedRequest } from './plan.ts';

export interface GatewayAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** Only of a refusal of account-authz. */
  readonly reason: Reason | undefined;
}

export interface Gateway {
  readonly url: URL;
  readonly userAgent: string;
  /** PEM of authorities to trust besides those of the system. */
  readonly ca?: string | undefined;
  /** Time limit of an answer, in milliseconds; default 5000. */
  readonly timeoutMs?: number;
}

const maxAnswerBytes = 64 * 1024;

export const gatewayRule =
  'URL must be https://HOST or https://HOST:PORT and nothing else (http only for loopback addresses)';

/** The URL of a gateway, or undefined. It has no path, because the configuration has them. */
export function parseGatewayUrl(text: string): URL | undefined {
  if (!/^https?:\/\/[!-~]+$/.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isOrigin = text.replace(/\/$/, '').toLowerCase() === `${url.protocol}//${text.split('/')[2]?.toLowerCase()}`;
  const hasMore = `${url.username}${url.password}${url.search}${url.hash}` !== '' || /[@?#\\]/.test(text);
  if (!isOrigin || hasMore) return undefined;
  return url.protocol === 'https:' || isLoopbackUrl(text) ? url : undefined;
}

/** Never rejects. The problem is why there is no answer, in a few words without foreign text. */
export function ask(gateway: Gateway, planned: PlannedRequest): Promise<GatewayAnswer | Problem> {
  const { url, userAgent, ca, timeoutMs = 5000 } = gateway;
  const signal = AbortSignal.timeout(timeoutMs);
  return new Promise(resolve => {
    const onError = (error: unknown): void => {
      const late = `no answer within ${timeoutMs / 1000} s`;
      resolve(problem(signal.aborted ? late : (errorCode(error) ?? 'no HTTP answer')));
    };
    const host = hostOf(url);
    const options = {
      ...{ method: 'GET', signal, host, port: portOf(url), path: planned.target },
      headers: {
        ...Object.fromEntries(planned.headers),
        host: planned.host,
        'user-agent': userAgent,
        accept: '*/*',
        ...(planned.authorization === undefined ? {} : { authorization: planned.authorization }),
      },
    };
    const onAnswer = (answer: IncomingMessage): void => {
      const { statusCode: status = 0 } = answer;
      // Only a refusal of account-authz has to be read. The answer of an API may be endless.
      if (!/^application\/problem\+json\b/.test(answer.headers['content-type'] ?? '')) {
        resolve({ kind: 'answer', status, reason: undefined });
        answer.on('error', () => undefined);
        answer.destroy();
        return;
      }
      readStart(answer).then(body => resolve({ kind: 'answer', status, reason: reasonIn(body) }), onError);
    };
    try {
      // A new agent, because the global one may use a proxy (NODE_USE_ENV_PROXY). Node would take the Host header for SNI.
      const sent =
        url.protocol === 'http:'
          ? httpRequest({ ...options, agent: new Agent() }, onAnswer)
          : httpsRequest(
              {
                ...options,
                agent: new TlsAgent(),
                rejectUnauthorized: true,
                servername: isIP(host) === 0 ? host : '',
                ...(ca === undefined ? {} : { ca: [...rootsInForce(), ca] }),
              },
              onAnswer,
            );
      sent.on('error', onError);
      sent.end();
    } catch (error) {
      onError(error);
    }
  });
}

/** The body, cut at the limit. */
async function readStart(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    const slice = Buffer.from(chunk).subarray(0, maxAnswerBytes - bytes);
    chunks.push(slice);
    bytes += slice.length;
    if (bytes >= maxAnswerBytes) break;
  }
  return Buffer.concat(chunks);
}

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
