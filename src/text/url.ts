// URLs: the parts that name a machine, origins, and the rules of those from which public keys are fetched.
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { isLoopback } from './listen-address.ts';

/** An IP address without brackets, or a name. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The port of an https or http URL, the default one if the URL names none. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/** Whether the URL is served by this machine itself. */
export function isLoopbackUrl(url: string): boolean {
  return isLoopback(hostOf(new URL(url)));
}

/** The origin of a page, as a browser sends it and as the URL standard serializes it. A host with a wildcard is valid there, and equals that of no page. */
export function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

/** For logs and pages: a query may have a secret. */
export function withoutQuery(url: string): string {
  return url.replace(/\?.*$/s, '');
}

const maxUrlLength = 2048;

/**
 * The rest of a sentence about an invalid URL, or undefined. Never repeats the URL: it may contain a password. Names are not
 * resolved: the operator chooses which names and private addresses to trust.
 */
export function keyUrlProblem(text: string, allowHttp = false): string | undefined {
  // The URL parser repairs its input: it drops tabs, turns \ into / and reads https:host as https://host.
  if (!/^https?:\/\/[!-[\]-~]+$/.test(text) || /^https?:\/\/\//.test(text)) {
    return 'must be an absolute https:// URL of visible ASCII characters';
  }
  if (text.length > maxUrlLength) return `must not be longer than ${maxUrlLength} characters`;
  if (/^https?:\/\/[^/?#]*@/.test(text)) return 'must not contain a user name or a password';
  if (text.includes('#')) return 'must not contain a fragment: remove "#" and what follows it';
  if (!URL.canParse(text)) return 'must be a valid URL such as https://auth.example.com/.well-known/jwks.json';
  const url = new URL(text);
  const host = hostOf(url);
  if (isLinkLocal(host)) return 'must not have a link-local address: cloud metadata services use them';
  if (url.protocol === 'http:' && !isLoopback(host) && !allowHttp) {
    return 'must be https (http is allowed only for loopback addresses, or to any host with allowHttp: true)';
  }
  return undefined;
}

// 169.254.0.0/16 (RFC 3927), where clouds serve credentials, fe80::/10 (RFC 4291), and the first one embedded in IPv6: mapped
// (BlockList covers that itself), compatible (RFC 4291), NAT64 (RFC 6052), 6to4 (RFC 3056).
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
linkLocal.addSubnet('::a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('2002:a9fe::', 32, 'ipv6');

function isLinkLocal(host: string): boolean {
  if (isIPv4(host)) return linkLocal.check(host, 'ipv4');
  return isIPv6(host) && linkLocal.check(host, 'ipv6');
}

// The URL of the metadata document of a protected resource (RFC 9728).

const maxResourceLength = 1024;

/** The rest of a sentence about an invalid resource identifier, or undefined. Never repeats the URL: it may contain a password. */
export function resourceProblem(text: string): string | undefined {
  // RFC 3986 characters only: the URL stands in a quoted string of a header. The URL parser repairs its input, so `https:///` is refused.
  if (!/^https:\/\/[A-Za-z0-9[][\w\-.~:/?#[\]@!$&'()*+,;=%]*$/.test(text)) return 'must be an absolute https:// URL';
  if (text.length > maxResourceLength) return `must not be longer than ${maxResourceLength} characters`;
  if (/^https:\/\/[^/?]*@/.test(text)) return 'must not contain a user name or a password: clients read it';
  if (text.includes('#')) return 'must not contain a fragment: remove "#" and what follows it';
  return URL.canParse(text) ? undefined : 'must be a valid URL such as https://api.example.com/subscriptions';
}

/** RFC 9728 section 3.1: the well-known part stands between host and path; a path that is `/` alone goes. Of a valid resource. */
export function resourceMetadataUrl(resource: string): string {
  const { authority, path, query } = partsOf(resource);
  return `https://${authority}${wellKnown}${path === '/' ? '' : path}${query}`;
}

/** The path of a valid resource, empty without one. */
export function resourcePath(resource: string): string {
  return partsOf(resource).path;
}

/** The path of that URL, by which Envoy serves the document. */
export function resourceMetadataPath(resource: string): string {
  const { path } = partsOf(resource);
  return `${wellKnown}${path === '/' ? '' : path}`;
}

const wellKnown = '/.well-known/oauth-protected-resource';

// By the text: a URL object would normalize the path, and clients compare the resource byte for byte (RFC 9728 section 3.3).
function partsOf(resource: string) {
  const [, authority = '', path = '', query = ''] =
    /^https:\/\/([^/?]*)((?:\/[^?]*)?)((?:\?.*)?)$/s.exec(resource) ?? [];
  return { authority, path, query };
}
