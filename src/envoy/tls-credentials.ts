// TLS credentials of the gRPC server: reloads the certificate when its files change.
import { constants } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { accepted, createFileWatch, fileVersions, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import type { TlsMaterial } from '../files/tls-files.ts';
import type { Problem } from '../text/problem.ts';

export interface TlsSource {
  /** A change of one of them causes a reload. */
  readonly files: readonly string[];
  readonly load: () => Promise<TlsMaterial | Problem>;
  readonly onReload: (material: TlsMaterial) => void;
  /** Called once per version of the files; the previous certificate stays in use. */
  readonly onRefused: (problem: string) => void;
}

export interface TlsCredentials {
  readonly credentials: ServerCredentials;
  stop(): void;
}

/** A client that does not finish its handshake holds a socket; Node's own limit is two minutes. */
const handshakeTimeoutMs = 10_000;

// TLS 1.3, and of TLS 1.2 what RFC 9113 appendix A leaves: an ephemeral key exchange with an AEAD cipher. OpenSSL's names.
const cipherSuites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  ...['ECDSA', 'RSA'].flatMap(signature =>
    ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map(cipher => `ECDHE-${signature}-${cipher}`),
  ),
].join(':');

/** Rejects if the files are unusable. New connections get the certificate that was loaded last, existing ones live on. */
export async function startTlsCredentials(
  source: TlsSource,
  watchFiles: WatchFiles = createFileWatch(),
): Promise<TlsCredentials> {
  const known = await fileVersions(source.files);
  const first = await source.load();
  if (first.kind === 'problem') throw new Error(first.problem);
  const credentials = new ReplaceableCredentials(first);

  function apply(loaded: TlsMaterial | Problem, isRetry: boolean): WatchOutcome {
    if (loaded.kind === 'problem') {
      if (!isRetry) source.onRefused(loaded.problem);
      return { kind: 'retry' };
    }
    credentials.replace(loaded);
    source.onReload(loaded);
    return accepted;
  }

  const { stop } = watchFiles({ files: source.files, known, load: source.load, apply });
  return { credentials, stop };
}

// A subclass, because neither createSsl nor experimental.createCertificateProviderServerCredentials (grpc-js 1.14) can set the handshake
// timeout, the oldest TLS version or the session tickets.
class ReplaceableCredentials extends ServerCredentials {
  constructor(material: TlsMaterial) {
    const requestCert = material.clientCa !== undefined;
    super({ requestCert, rejectUnauthorized: true, handshakeTimeout: handshakeTimeoutMs }, toContext(material));
  }

  replace(material: TlsMaterial): void {
    this.updateSecureContextOptions(toContext(material));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

// All options each time: Node keeps none of the previous context.
function toContext({ cert, key, clientCa }: TlsMaterial): SecureContextOptions {
  return {
    cert,
    key,
    ...(clientCa === undefined ? {} : { ca: clientCa }),
    minVersion: 'TLSv1.2',
    ciphers: cipherSuites,
    // A resumed session skips the client certificate, which may have expired since. HTTP/2 forbids renegotiation (RFC 9113 section 9.2.1), and
    // a renegotiated session leaks its socket on Node 26.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  };
}
