// TLS for the gRPC server: the certificate in use, and its replacement while the server runs when the files have changed.
import { constants } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { fileSignature } from '../files/file-signature.ts';
import type { TlsMaterial } from '../files/tls-files.ts';

export interface TlsSource {
  /** A change of one of them is a reason to load again. */
  readonly files: readonly string[];
  readonly load: () => Promise<TlsMaterial | { readonly kind: 'problem'; readonly problem: string }>;
  readonly onReload: (material: TlsMaterial) => void;
  /** Once for each version of the files; what was in use stays in use. */
  readonly onRefused: (problem: string) => void;
}

export interface TlsCredentials {
  readonly credentials: ServerCredentials;
  stop(): void;
}

// Kubernetes swaps a symbolic link somewhere above the files, others rename or write them: looking at what the names lead to
// sees all of it. What is new is loaded when it has stood for one interval: a certificate is written before its key.
const lookEveryMs = 1000;

/** A caller that does not finish its handshake holds a socket; Node's own limit is two minutes. */
const handshakeTimeoutMs = 10_000;

/** Rejects where the files are not usable. New connections get what was loaded last, existing ones live on. */
export async function startTlsCredentials(source: TlsSource): Promise<TlsCredentials> {
  let seen = await signatureOf(source.files);
  const first = await source.load();
  if (first.kind === 'problem') throw new Error(first.problem);
  const credentials = new ReplaceableCredentials(first);
  let isCurrent = true;
  let refused: string | undefined;
  let isStopped = false;

  async function look(): Promise<void> {
    const signature = await signatureOf(source.files);
    if (signature !== seen) {
      seen = signature;
      isCurrent = false;
      refused = undefined;
    } else if (!isCurrent) {
      const loaded = await source.load();
      if (isStopped) return;
      if (loaded.kind === 'problem') {
        // Loaded again at the next look: the problem may be one of the moment, such as too many open files.
        if (loaded.problem !== refused) source.onRefused(loaded.problem);
        refused = loaded.problem;
        return;
      }
      isCurrent = true;
      credentials.replace(loaded);
      source.onReload(loaded);
    }
  }
  function lookLater(): NodeJS.Timeout {
    return setTimeout(async () => {
      await look();
      if (!isStopped) timer = lookLater();
    }, lookEveryMs).unref();
  }
  let timer = lookLater();

  return {
    credentials,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

// The library's own createSsl cannot be replaced or told a version, and its provider that watches files cuts every new
// connection while a file is missing or broken.
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

// Whole each time: a replacement leaves nothing of the context before it, not the oldest version either.
function toContext({ cert, key, clientCa }: TlsMaterial): SecureContextOptions {
  return {
    cert,
    key,
    ...(clientCa === undefined ? {} : { ca: clientCa }),
    minVersion: 'TLSv1.2',
    // A resumed session does not show its certificate again, which may have expired since.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

async function signatureOf(files: readonly string[]): Promise<string> {
  return (await Promise.all(files.map(fileSignature))).join('\n');
}
