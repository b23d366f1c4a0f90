// TLS credentials of the gRPC server: reloads the certificate when its files change.
import { constants } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { fileSignature } from '../files/file-signature.ts';
import type { TlsMaterial } from '../files/tls-files.ts';

export interface TlsSource {
  /** A change of one of them causes a reload. */
  readonly files: readonly string[];
  readonly load: () => Promise<TlsMaterial | { readonly kind: 'problem'; readonly problem: string }>;
  readonly onReload: (material: TlsMaterial) => void;
  /** Called once per version of the files; the previous certificate stays in use. */
  readonly onRefused: (problem: string) => void;
}

export interface TlsCredentials {
  readonly credentials: ServerCredentials;
  stop(): void;
}

// Polling sees every kind of change: Kubernetes swaps a symbolic link above the files, others rename or write them. Debounced by one
// interval, because a certificate is written before its key.
const pollIntervalMs = 1000;

/** A client that does not finish its handshake holds a socket; Node's own limit is two minutes. */
const handshakeTimeoutMs = 10_000;

/** Rejects if the files are unusable. New connections get the certificate that was loaded last, existing ones live on. */
export async function startTlsCredentials(source: TlsSource): Promise<TlsCredentials> {
  let seen = await signatureOf(source.files);
  const first = await source.load();
  if (first.kind === 'problem') throw new Error(first.problem);
  const credentials = new ReplaceableCredentials(first);
  let isCurrent = true;
  let refused: string | undefined;
  let isStopped = false;

  async function poll(): Promise<void> {
    const signature = await signatureOf(source.files);
    if (signature !== seen) {
      seen = signature;
      isCurrent = false;
      refused = undefined;
    } else if (!isCurrent) {
      const loaded = await source.load();
      if (isStopped) return;
      if (loaded.kind === 'problem') {
        // The next poll loads again: the problem may be temporary, such as too many open files.
        if (loaded.problem !== refused) source.onRefused(loaded.problem);
        refused = loaded.problem;
        return;
      }
      isCurrent = true;
      credentials.replace(loaded);
      source.onReload(loaded);
    }
  }
  function schedulePoll(): NodeJS.Timeout {
    return setTimeout(async () => {
      await poll();
      if (!isStopped) timer = schedulePoll();
    }, pollIntervalMs).unref();
  }
  let timer = schedulePoll();

  return {
    credentials,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
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
    // A resumed session skips the client certificate, which may have expired since.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

async function signatureOf(files: readonly string[]): Promise<string> {
  return (await Promise.all(files.map(fileSignature))).join('\n');
}
