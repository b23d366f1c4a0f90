// Sends HTTP/1.1 requests with the target byte for byte, without following redirects, each on a new connection.
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';

export interface HttpRequest {
  /** Scheme, host and port; a path here is ignored. */
  readonly origin: string;
  readonly method?: string;
  /** Path and query, sent byte for byte. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | undefined;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Rejects without a complete response in ten seconds. */
export function send(request: HttpRequest): Promise<HttpResponse> {
  const { origin, method = 'GET', target, headers = {}, body } = request;
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(10_000);
    const call = httpRequest({ agent: false, hostname, port, method, path: target, headers: { ...headers }, signal });
    call.once('error', reject);
    call.once('response', response => {
      const chunks: Buffer[] = [];
      response.on('data', chunk => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        });
      });
    });
    call.end(body);
  });
}

/** The body as a JSON object; throws if it is anything else. */
export function jsonOf(response: HttpResponse): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(response.body);
  if (typeof value !== 'object' || value === null) throw new Error(`not a JSON object: ${response.body.slice(0, 100)}`);
  return value as Readonly<Record<string, unknown>>;
}
