// Decides which fetches go through a proxy: HTTPS_PROXY and NO_PROXY as Go's net/http reads them (golang.org/x/net/http/httpproxy).
import { BlockList, isIP } from 'node:net';
import { hostOf, isLoopbackUrl, portOf } from '../text/url.ts';
import { FetchProblem } from './network-problem.ts';

/** The values of the environment variables, which the caller reads. There is no HTTP_PROXY: plain http stays inside a mesh. */
export interface ProxySettings {
  /** A URL, or `host:port` of a proxy that speaks http. */
  readonly httpsProxy?: string | undefined;
  /** Separated by commas or spaces: `*`, an IP address, a CIDR range, `host` (its subdomains too), `.domain` or `*.domain` (those alone). */
  readonly noProxy?: string | undefined;
}

/** The proxy for this URL. Throws if httpsProxy names none. */
export function proxyFor(url: URL, { httpsProxy = '', noProxy = '' }: ProxySettings): URL | undefined {
  if (httpsProxy === '' || url.protocol !== 'https:' || isLoopbackUrl(url.href)) return undefined;
  if (noProxy.split(/[\s,]+/).some(entry => isMatch(entry.toLowerCase(), hostOf(url), portOf(url)))) return undefined;
  const text = httpsProxy.includes('://') ? httpsProxy : `http://${httpsProxy}`;
  if (/^https?:/i.test(text) && URL.canParse(text)) return new URL(text);
  throw new FetchProblem('proxy URL');
}

function isMatch(entry: string, host: string, port: number): boolean {
  if (entry === '' || entry === '*') return entry === '*';
  const [, range = '', bits] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? [];
  if (bits !== undefined) return isInRange(range, Number(bits), host);
  // An IPv6 address has colons of its own, and brackets where a port follows.
  const [, named = '', namedPort] =
    isIP(entry) === 0 ? (/^(.*?)(?::(\d+))?$/.exec(entry) ?? []) : ['', entry, undefined];
  const name = named.replace(/^\[(.*)\]$/, '$1').replace(/^\*(?=\.)/, '');
  if (namedPort !== undefined && Number(namedPort) !== port) return false;
  if (isIP(name) !== 0) return isInRange(name, isIP(name) === 4 ? 32 : 128, host);
  return name.startsWith('.') ? host.endsWith(name) : name !== '' && (host === name || host.endsWith(`.${name}`));
}

function isInRange(address: string, bits: number, host: string): boolean {
  const [family, hostFamily] = [isIP(address), isIP(host)];
  if (family === 0 || hostFamily === 0 || bits > (family === 4 ? 32 : 128)) return false;
  const range = new BlockList();
  range.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6');
  return range.check(host, hostFamily === 4 ? 'ipv4' : 'ipv6');
}
