// The admin interface of an Envoy: one bounded request, never through a proxy and never redirected.
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import { Agent, request as httpRequest } from '../node-http.ts';
import { errorCode, type Problem, problem } from '../text/problem.ts';
import { isLoopbackUrl } from '../text/url.ts';

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

/** Any status but 200 is a problem. Never rejects. A new agent, because the global one may use a proxy (NODE_USE_ENV_PROXY). */
export function askEnvoyAdmin(options: EnvoyAdminRequest): Promise<EnvoyAdminAnswer> {
  const { admin, method, path, timeoutMs, maxBytes = 1_048_576 } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  return new Promise(resolve => {
    const fail = (text: string): void => resolve(problem(text));
    const onError = (error: unknown): void =>
      fail(signal.aborted ? `no answer in ${timeoutMs} ms` : (errorCode(error) ?? 'no HTTP answer'));
    const isPlain = admin.protocol === 'http:';
    const [request, agent] = isPlain ? [httpRequest, new Agent()] : [httpsRequest, new TlsAgent()];
    const sent = request(new URL(path, admin), { method, signal, agent }, answer => {
      const { statusCode } = answer;
      if (statusCode !== 200) {
        answer.destroy();
        return fail(`it answers ${statusCode}`);
      }
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on('error', onError);
      answer.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes <= maxBytes) return;
        answer.destroy();
        fail(`its answer is longer than ${maxBytes} bytes`);
      });
      answer.on('end', () => resolve({ kind: 'answer', text: Buffer.concat(chunks).toString('utf8') }));
    });
    sent.on('error', onError);
    sent.end();
  });
}
