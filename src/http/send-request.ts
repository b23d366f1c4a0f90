// Sends one request on a connection of its own, never through a proxy and never redirected.
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import { isIP } from 'node:net';
import { checkServerIdentity, type SecureContext } from 'node:tls';
import { hostOf, portOf } from '../text/url.ts';
import { Agent, finalAnswer, request as httpRequest } from './node-http.ts';

/** The signal bounds the whole exchange, the body included. */
type SentOptions = Pick<RequestOptions, 'method' | 'path' | 'headers'> & {
  readonly signal: AbortSignal;
  /** With the authorities to trust in place of the system's. */
  readonly secureContext?: SecureContext | undefined;
  /** Where to connect; the server has to prove the host of the URL all the same. Defaults to host and port of the URL. */
  readonly connectTo?: { readonly host: string; readonly port: number } | undefined;
};

/** Rejects with the error of Node if there is no answer. By default the path is that of the URL. */
export async function sendRequest(
  url: URL,
  { secureContext, connectTo, ...options }: SentOptions,
): Promise<IncomingMessage> {
  const host = hostOf(url);
  const { host: peer, port } = connectTo ?? { host, port: portOf(url) };
  const all = { host: peer, port, path: `${url.pathname}${url.search}`, ...options };
  const tls = {
    // Node would take a Host header for the server name; RFC 6066 section 3: that is no IP address.
    servername: isIP(host) === 0 ? host : '',
    checkServerIdentity: (_: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
      checkServerIdentity(host, certificate),
    // NODE_TLS_REJECT_UNAUTHORIZED turns nothing off.
    rejectUnauthorized: true,
    ...(secureContext && { secureContext }),
  };
  // A new agent: the global one may use a proxy (NODE_USE_ENV_PROXY).
  return finalAnswer(
    url.protocol === 'http:'
      ? httpRequest({ ...all, agent: new Agent() })
      : httpsRequest({ ...all, ...tls, agent: new TlsAgent() }),
  );
}

/** The bytes up to this many; the stream is closed if it has as many. Rejects if it breaks off, or with the signal of its request. */
export async function readStart(
  stream: AsyncIterable<Uint8Array | string>,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    if (length >= maxBytes) break;
  }
  // A body without a length ends with its connection, also where we ended that.
  signal?.throwIfAborted();
  return Buffer.concat(chunks).subarray(0, maxBytes);
}
