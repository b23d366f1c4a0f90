// Builds CheckRequests as Envoy sends them, in both of its header forms; every part can be replaced.
import type { CheckRequestMessage, HeaderValue, HttpRequestMessage } from '../src/envoy/protocol.ts';

export interface CheckRequestParts {
  readonly method?: string;
  readonly path?: string;
  /** One value per header line, for the map, joined as Envoy does, or for the list. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** As with `encode_raw_headers`. */
  readonly raw?: boolean;
  readonly http?: Partial<HttpRequestMessage>;
}

export function checkRequest(parts: CheckRequestParts = {}): CheckRequestMessage {
  const { method = 'GET', path = '/api/subscriptions/acct1', raw = false } = parts;
  const lines = Object.entries({ ':method': method, ':path': path, ...parts.headers }).map(
    ([name, value]) => [name, typeof value === 'string' ? [value] : [...value]] as const,
  );
  const http: HttpRequestMessage = {
    method,
    path,
    host: 'lab.test',
    scheme: 'http',
    protocol: 'HTTP/1.1',
    query: '',
    fragment: '',
    headers: raw ? {} : Object.fromEntries(lines.map(([name, values]) => [name, values.join(',')])),
    header_map: raw
      ? { headers: lines.flatMap(([name, values]) => values.map(value => rawHeader(name, value))) }
      : null,
    ...parts.http,
  };
  return { attributes: { request: { http }, context_extensions: {} } };
}

export function rawHeader(key: string, value: string | Buffer): HeaderValue {
  return { key, value: '', raw_value: Buffer.from(value) };
}
