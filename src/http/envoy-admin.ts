// The admin interface of an Envoy: its URL, and one bounded request to it.

import { errorCode, type Problem, problem } from '../text/problem.ts';
import { isLoopbackUrl } from '../text/url.ts';
import { readStart, sendRequest } from './send-request.ts';

export const defaultEnvoyAdmin = 'http://127.0.0.1:9901';
export const envoyAdminRule = `--envoy-admin must be an http URL such as ${defaultEnvoyAdmin}`;

type EnvoyAdminAnswer =
  | { readonly kind: 'answer'; readonly text: string }
  /** Why there is no answer, in a few words without foreign text. */
  | Problem;

interface EnvoyAdminRequest {
  readonly admin: URL;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Time limit of the whole exchange, in milliseconds. */
  readonly timeoutMs: number;
  /** Largest body, 1 MiB if not given. */
  readonly maxBytes?: number;
}

/** The value of --envoy-admin, or undefined if it is no plain http URL. */
export function parseEnvoyAdmin(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.protocol === 'http:' && url.username === '' && url.password === '' ? url : undefined;
}

/** For what has secrets, such as a dump: the URL if it is https, or http to loopback. */
export function parseConfidentialAdmin(text: string): URL | undefined {
  const url = parseEnvoyAdmin(text.replace(/^https:/, 'http:'));
  if (url === undefined || (!text.startsWith('https:') && !isLoopbackUrl(text))) return undefined;
  return new URL(text);
}

/** Any status but 200 is a problem. Never rejects. */
export async function askEnvoyAdmin(options: EnvoyAdminRequest): Promise<EnvoyAdminAnswer> {
  const { admin, method, path, timeoutMs, maxBytes = 1_048_576 } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await sendRequest(new URL(path, admin), { method, signal });
    if (answer.statusCode !== 200) {
      answer.destroy();
      return problem(`it answers ${answer.statusCode}`);
    }
    const body = await readStart(answer, maxBytes + 1, signal);
    if (body.length > maxBytes) return problem(`its answer is longer than ${maxBytes} bytes`);
    return { kind: 'answer', text: body.toString('utf8') };
  } catch (error) {
    return problem(signal.aborted ? `no answer in ${timeoutMs} ms` : (errorCode(error) ?? 'no HTTP answer'));
  }
}
