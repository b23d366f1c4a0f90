// Parses the addresses in the configuration and on the command line: a TCP port or a Unix socket.
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { type Problem, problem } from './problem.ts';

export interface TcpAddress {
  readonly kind: 'tcp';
  /** An IP address without brackets, or a name in lower case. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

interface UnixAddress {
  readonly kind: 'unix';
  readonly path: string;
}

export type ListenAddress = TcpAddress | UnixAddress;

// sun_path of Linux (108 bytes) without its final NUL, see unix(7). bind truncates or refuses a longer one.
const maxSocketPathBytes = 107;
const maxNameLength = 253;
const nameGrammar = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}))*$/;
const portGrammar = /^(?:0|[1-9][0-9]{0,4})$/;
const maxPort = 65_535;

/**
 * `host:port`, `[v6]:port` or `unix:/absolute/path` (also `unix:///absolute/path`). Does not resolve names. The problem is the
 * rest of a sentence about the address: "must be …".
 */
export function parseListenAddress(text: string): ListenAddress | Problem {
  return text.startsWith('unix:') ? parseUnixAddress(text) : parseTcpAddress(text);
}

/** Where somebody else listens: `host:port` or `[v6]:port`, never a socket or port 0. */
export function parsePeerAddress(text: string): TcpAddress | Problem {
  if (text.startsWith('unix:')) return problem('must be HOST:PORT or [v6]:PORT, not a socket');
  const address = parseTcpAddress(text, 'host:port or [v6]:port');
  if (address.kind === 'problem') return address;
  return address.port === 0 ? problem('must have a port from 1 to 65535') : address;
}

/** Throws on an invalid address, which the validation of a configuration reports. */
export function toListenAddress(text: string): ListenAddress {
  const address = parseListenAddress(text);
  if (address.kind === 'problem') throw new Error(`the configuration has an invalid address: it ${address.problem}`);
  return address;
}

/** Throws also on a Unix socket. */
export function toTcpAddress(text: string): TcpAddress {
  const address = toListenAddress(text);
  if (address.kind === 'unix') throw new Error('the configuration has a Unix socket where a port must be');
  return address;
}

/** `host:port`, with an IPv6 address in brackets. */
export function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Why a server cannot listen. The code is read from the text: grpc-js joins the errors of all addresses, here one, into a text. */
export function listenError(address: string, cause: Error): Error {
  const [code] = /\bE[A-Z0-9]+\b/.exec(cause.message) ?? [];
  const reason = code === 'EADDRINUSE' ? ', which is in use' : code === undefined ? '' : `: ${code}`;
  return new Error(`cannot listen on ${address}${reason}`, { cause });
}

/** Whether only this machine can reach the host: 127.0.0.0/8, ::1 in any spelling, or `localhost`. */
export function isLoopback(host: string): boolean {
  if (isIPv4(host)) return loopback4.check(host, 'ipv4');
  if (isIPv6(host)) return loopback6.check(host, 'ipv6');
  return host.toLowerCase() === 'localhost';
}

/** Whether a server on this host listens on every address. */
export function isUnspecified(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Whether only one of the two can be bound: the same port on overlapping hosts. */
export function isSameListener(one: ListenAddress, other: ListenAddress): boolean {
  if (one.kind === 'unix' || other.kind === 'unix') {
    return one.kind === 'unix' && other.kind === 'unix' && one.path === other.path;
  }
  if (one.port === 0 || one.port !== other.port) return false;
  const [a, b] = [canonicalHost(one.host), canonicalHost(other.host)];
  return a === b || isCovered(a, b) || isCovered(b, a);
}

const loopback4 = new BlockList();
loopback4.addSubnet('127.0.0.0', 8, 'ipv4');
// A separate list: in one list, BlockList would match ::ffff:127.0.0.1 as loopback too.
const loopback6 = new BlockList();
loopback6.addAddress('::1', 'ipv6');

function parseTcpAddress(text: string, forms = 'host:port, [v6]:port or unix:/absolute/path'): TcpAddress | Problem {
  const colon = text.lastIndexOf(':');
  const written = text.slice(0, Math.max(colon, 0));
  const portText = text.slice(colon + 1);
  if (written === '') return problem(`must be ${forms}`);
  if (!portGrammar.test(portText) || Number(portText) > maxPort)
    return problem(`must end in a port from 0 to ${maxPort}`);
  const host = parseHost(written);
  if (host === undefined)
    return problem('must have an IPv4 address, an IPv6 address in brackets or a host name before the port');
  return { kind: 'tcp', host, port: Number(portText) };
}

function parseHost(text: string): string | undefined {
  if (text.startsWith('[') && text.endsWith(']')) {
    const address = text.slice(1, -1);
    return isIPv6(address) && !address.includes('%') ? address.toLowerCase() : undefined;
  }
  if (isIPv4(text)) return text;
  if (text.length > maxNameLength || !nameGrammar.test(text)) return undefined;
  // inet_aton reads 127.1, 0x7f.1 and 0 as addresses: only the dotted form is accepted.
  const lastLabel = text.slice(text.lastIndexOf('.') + 1);
  return /^(?:[0-9]+|0x[0-9a-f]*)$/i.test(lastLabel) ? undefined : text.toLowerCase();
}

function parseUnixAddress(text: string): UnixAddress | Problem {
  const path = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
  if (!path.startsWith('/') || path.startsWith('//'))
    return problem('must have an absolute path after unix:, such as unix:/run/account-authz/authz.sock');
  if (path.endsWith('/')) return problem('must name a socket after unix:, not a folder: remove the "/" at the end');
  if (path.includes('\0')) return problem('must not contain a NUL character in the socket path');
  if (Buffer.byteLength(path) > maxSocketPathBytes) {
    return problem(
      `must have a socket path of at most ${maxSocketPathBytes} bytes (this one has ${Buffer.byteLength(path)})`,
    );
  }
  return { kind: 'unix', path };
}

function canonicalHost(host: string): string {
  if (isIPv6(host)) return new URL(`http://[${host}]`).hostname.slice(1, -1);
  return host === 'localhost' ? '127.0.0.1' : host;
}

// :: covers the port on every address, 0.0.0.0 on IPv4 addresses and on ::.
function isCovered(host: string, wildcard: string): boolean {
  return wildcard === '::' || (wildcard === '0.0.0.0' && (host === '::' || !isIPv6(host)));
}
