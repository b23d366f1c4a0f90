// The address and the credentials of `health`, from its options or from the configuration of the service.
import type { X509Certificate } from 'node:crypto';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { checkServerIdentity, createSecureContext, type PeerCertificate } from 'node:tls';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { loadListenSettings } from '../config/listen-settings.ts';
import { formatProblems } from '../config/problems.ts';
import { parseCertificates } from '../files/certificates.ts';
import { loadFilePart, parsePrivateKey } from '../files/tls-files.ts';
import { type ListenAddress, parseListenAddress, type TcpAddress } from '../text/listen-address.ts';

export interface HealthOptions {
  readonly address?: string | undefined;
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly 'server-name'?: string | undefined;
  readonly config?: string | undefined;
}

export interface GrpcTarget {
  readonly kind: 'grpc';
  readonly address: ListenAddress;
  readonly channel: ChannelCredentials;
  /** The server name in the TLS handshake. */
  readonly serverName: string;
}

/** /readyz reports the same state over HTTP. */
export interface ReadinessTarget {
  readonly kind: 'readyz';
  readonly admin: TcpAddress;
}

export interface HealthTargetProblem {
  readonly kind: 'problem';
  /** One or more lines. */
  readonly problem: string;
}

type Problem = HealthTargetProblem;

const defaultAddress = '127.0.0.1:9191';

export async function loadHealthTarget(options: HealthOptions): Promise<GrpcTarget | ReadinessTarget | Problem> {
  const { config, cert, key } = options;
  if ((cert === undefined) !== (key === undefined)) return problem('--cert and --key must be given together');
  if (options.address !== undefined) {
    const parsed = parseListenAddress(options.address);
    if (parsed.kind === 'problem') return problem(`--address ${parsed.problem}`);
  }
  if (config === undefined) return targetOf(options.address ?? defaultAddress, options, undefined);
  const settings = await loadListenSettings(config);
  if (settings.kind === 'misconfiguration') {
    return { kind: 'problem', problem: formatProblems(config, settings.problems) };
  }
  const { listen, admin, tls } = settings;
  // The service refuses a client without a certificate; /readyz reports the same state.
  const isMutual = tls?.clientCaFile !== undefined;
  if (isMutual && cert === undefined && options.address === undefined) {
    const address = parseListenAddress(admin);
    return address.kind === 'tcp'
      ? withReachableHost({ kind: 'readyz', admin: address })
      : problem('admin of the configuration must be host:port or [v6]:port');
  }
  return targetOf(options.address ?? listen, options, tls?.certFile);
}

async function targetOf(
  address: string,
  options: HealthOptions,
  ownCertificate: string | undefined,
): Promise<GrpcTarget | Problem> {
  const parsed = parseListenAddress(address);
  if (parsed.kind === 'problem') return problem(`the address ${parsed.problem}`);
  const { ca, cert, 'server-name': serverName } = options;
  const isTls = [ownCertificate, ca, cert, serverName].some(each => each !== undefined);
  if (!isTls) {
    return withReachableHost({
      kind: 'grpc',
      address: parsed,
      channel: credentials.createInsecure(),
      serverName: 'localhost',
    });
  }
  // gRPC uses the name localhost for every Unix socket.
  const name = serverName ?? (parsed.kind === 'unix' ? 'localhost' : parsed.host);
  const channel = await loadCredentials(options, name, ca === undefined ? ownCertificate : undefined);
  if ('kind' in channel) return channel;
  // RFC 6066 section 3 forbids an IP address as the server name, and Node would warn on standard error.
  return withReachableHost({
    kind: 'grpc',
    address: parsed,
    channel,
    serverName: isIP(name) === 0 ? name : 'localhost',
  });
}

/** With the certificate of the configuration, only this certificate is trusted. Its name is checked if --server-name is given. */
async function loadCredentials(
  options: HealthOptions,
  name: string,
  ownCertificate: string | undefined,
): Promise<ChannelCredentials | Problem> {
  const own = await loadPart('tls.certFile', ownCertificate, parseCertificates);
  const ca = await loadPart('--ca', options.ca, parseCertificates);
  const cert = await loadPart('--cert', options.cert, parseCertificates);
  const key = await loadPart('--key', options.key, parsePrivateKey);
  if (own?.kind === 'problem') return own;
  if (ca?.kind === 'problem') return ca;
  if (cert?.kind === 'problem') return cert;
  if (key?.kind === 'problem') return key;
  const trusted = own === undefined ? ca?.certificates : [own.certificates[0]];
  try {
    const context = createSecureContext({
      minVersion: 'TLSv1.2',
      ...(trusted === undefined ? {} : { ca: trusted.map(each => each.toString()) }),
      // The service's certificate itself is the trust anchor, whoever issued it.
      ...(own === undefined ? {} : { allowPartialTrustChain: true }),
      ...(cert === undefined ? {} : { cert: cert.certificates.map(each => each.toString()).join('') }),
      ...(key === undefined ? {} : { key: key.privateKey.export({ type: 'pkcs8', format: 'pem' }) }),
    });
    const pinned = own?.certificates[0];
    const hasName = pinned === undefined || options['server-name'] !== undefined;
    return credentials.createFromSecureContext(context, {
      // Not the server name of the handshake, which cannot be an IP address.
      checkServerIdentity: (_, peer) =>
        (pinned && identityProblem(pinned, peer)) ?? (hasName ? checkServerIdentity(name, peer) : undefined),
    });
  } catch {
    return problem('--key must belong to --cert, and OpenSSL must accept both');
  }
}

function identityProblem(pinned: X509Certificate, peer: PeerCertificate): Error | undefined {
  return pinned.raw.equals(peer.raw) ? undefined : new Error('the service shows another certificate than tls.certFile');
}

async function loadPart<Part extends { readonly kind: string }>(
  what: string,
  file: string | undefined,
  parse: (bytes: Uint8Array) => Part | Problem,
): Promise<Part | Problem | undefined> {
  const part = await loadFilePart(file, parse);
  return part !== undefined && isProblem(part) ? problem(`${what}: ${part.problem}`) : part;
}

function isProblem(part: { readonly kind: string }): part is Problem {
  return part.kind === 'problem';
}

/** Replaces a wildcard address by loopback. Refuses port 0: the chosen port is not known here. */
function withReachableHost<Target extends GrpcTarget | ReadinessTarget>(target: Target): Target | Problem {
  const address = target.kind === 'grpc' ? target.address : target.admin;
  if (address.kind === 'unix') return target;
  if (address.port === 0) return problem('the port must not be 0 (any free port): give the real one with --address');
  const reachable = { ...address, host: loopbackFor(address.host) };
  return target.kind === 'grpc' ? { ...target, address: reachable } : { ...target, admin: reachable };
}

function loopbackFor(host: string): string {
  if (isIPv4(host)) return host === '0.0.0.0' ? '127.0.0.1' : host;
  return isIPv6(host) && new URL(`http://[${host}]`).hostname === '[::]' ? '::1' : host;
}

function problem(text: string): Problem {
  return { kind: 'problem', problem: text };
}
