// Opens the connection of one fetch: plain TCP to loopback, TLS to everything else, through a proxy where one is set.
import * as https from 'node:https';
import { connect, isIP, type Socket } from 'node:net';
import * as tls from 'node:tls';
import { request as httpRequest } from '../http/node-http.ts';
import { hostOf, isLoopbackUrl, portOf } from '../text/url.ts';
import type { KeyConnection } from './key-connection.ts';
import { ProxyRefused } from './network-problem.ts';

/** From the usual environment variables, which the caller reads. Plain http goes to loopback only, so there is no HTTP_PROXY. */
export interface ProxySettings {
  readonly httpsProxy?: string | undefined;
  /** Separated by commas or spaces: a host, `.suffix` or `*.suffix`, each with an optional port, or `*`. */
  readonly noProxy?: string | undefined;
}

/** Rejects with the error of the network, of TLS or of the proxy. The signal ends what is under way, not an open socket. */
export async function openKeySocket(
  url: URL,
  { secureContext, proxyContext }: KeyConnection,
  proxy: ProxySettings,
  signal: AbortSignal,
): Promise<Socket> {
  const proxyUrl = proxyFor(url, proxy);
  const socket =
    proxyUrl === undefined
      ? connect({ host: hostOf(url), port: portOf(url), signal })
      : await openTunnel(new URL(proxyUrl), url, tlsOptions(proxyContext()), signal);
  if (url.protocol === 'http:') return settled(socket, 'connect', signal);
  return settled(tls.connect({ ...tlsOptions(secureContext), ...namesOf(url), socket }), 'secureConnect', signal);
}

/** The URL of the proxy for this URL. Loopback is never behind one. */
function proxyFor(url: URL, { httpsProxy = '', noProxy = '' }: ProxySettings): string | undefined {
  if (httpsProxy === '' || isLoopbackUrl(url.href)) return undefined;
  const isExcluded = noProxy.split(/[\s,]+/).some(entry => {
    if (entry === '*') return true;
    const [name = '', port] = entry.toLowerCase().split(/:(?=\d+$)/);
    if (name === '' || (port !== undefined && Number(port) !== portOf(url))) return false;
    return /^[.*]/.test(name) ? url.hostname.endsWith(name.replace(/^\*/, '')) : url.hostname === name;
  });
  return isExcluded ? undefined : httpsProxy;
}

/** RFC 9110 section 9.3.6. */
async function openTunnel(proxy: URL, url: URL, options: tls.ConnectionOptions, signal: AbortSignal): Promise<Socket> {
  const target = `${url.hostname}:${portOf(url)}`;
  const { username, password } = proxy;
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const isSecure = proxy.protocol === 'https:';
  const request = (isSecure ? https.request : httpRequest)({
    ...{ ...(isSecure ? { ...options, ...namesOf(proxy) } : {}), agent: false, signal },
    ...{ method: 'CONNECT', host: hostOf(proxy), port: portOf(proxy), path: target },
    headers: { host: target, ...(username === '' ? {} : { 'proxy-authorization': `Basic ${credentials}` }) },
  });
  return new Promise((resolve, reject) => {
    request.once('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(new ProxyRefused());
    });
    request.once('response', () => reject(new ProxyRefused()));
    request.once('error', () => reject(new ProxyRefused()));
    request.end();
  });
}

function tlsOptions(secureContext: tls.SecureContext | undefined): tls.ConnectionOptions {
  return {
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(secureContext === undefined ? {} : { secureContext }),
  };
}

// The host is what the certificate must name. RFC 6066 section 3: a server name is no IP address.
function namesOf(url: URL): tls.ConnectionOptions {
  const host = hostOf(url);
  return { host, servername: isIP(host) === 0 ? host : '' };
}

function settled<Opened extends Socket>(socket: Opened, event: string, signal: AbortSignal): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      socket.destroy(new Error('aborted'));
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.once(event, () => resolve(socket));
    // Stays, because a later error without a listener would be a fault; the reader of the socket learns it too.
    socket.on('error', reject);
    socket.once('close', () => {
      signal.removeEventListener('abort', abort);
      reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' }));
    });
  });
}
