// The TLS files of a fetch: the authorities that its connections trust and the client certificate that they show.
import { hash } from 'node:crypto';
import * as tls from 'node:tls';
import { loadTlsFiles, type TlsMaterial } from '../files/tls-files.ts';
import { type Problem, problem } from '../text/problem.ts';
import { type CaFile, loadCaFile, recall } from './key-authorities.ts';
import { rootsInForce } from './trusted-roots.ts';

/** The TLS files of an issuer. All undefined: the default roots, and no certificate. */
export interface KeyConnectionFiles {
  readonly caFile?: string | undefined;
  /** Set with clientKeyFile, or neither. */
  readonly clientCertFile?: string | undefined;
  readonly clientKeyFile?: string | undefined;
}

export interface KeyConnection {
  readonly kind: 'connection';
  /** Undefined: the default of Node. */
  readonly secureContext: tls.SecureContext | undefined;
  /** For a proxy, which gets no client certificate. */
  proxyContext(): tls.SecureContext | undefined;
}

export function namedConnectionFiles({ caFile, clientCertFile, clientKeyFile }: KeyConnectionFiles): readonly string[] {
  return [caFile, clientCertFile, clientKeyFile].filter(file => file !== undefined);
}

/** Read for each fetch, so that replaced files take effect. */
export async function loadKeyConnection(files: KeyConnectionFiles): Promise<KeyConnection | Problem> {
  const caFile = files.caFile === undefined ? undefined : await loadCaFile(files.caFile);
  if (caFile?.kind === 'problem') return caFile;
  const client = await loadClientCertificate(files);
  if (client?.kind === 'problem') return client;
  return {
    kind: 'connection',
    secureContext: toSecureContext(caFile, client),
    proxyContext: () => toSecureContext(caFile, undefined),
  };
}

async function loadClientCertificate({
  clientCertFile,
  clientKeyFile,
}: KeyConnectionFiles): Promise<TlsMaterial | Problem | undefined> {
  if (clientCertFile === undefined && clientKeyFile === undefined) return undefined;
  const loaded = await loadTlsFiles({ certFile: clientCertFile, keyFile: clientKeyFile });
  if (loaded.kind === 'tls material') return loaded;
  const isCertificate = loaded.problems.some(({ key }) => key === 'certFile');
  return problem(isCertificate ? 'client certificate not usable' : 'client key not usable');
}

// To parse the default roots takes 20 ms, and a thousand issuers may have the same files.
const recentContexts = new Map<string, tls.SecureContext>();

/** Trusts the default roots plus those of the file. */
function toSecureContext(caFile: CaFile | undefined, client: TlsMaterial | undefined): tls.SecureContext | undefined {
  if (caFile === undefined && client === undefined) return undefined;
  const contents = [caFile?.content.toString('latin1'), client?.cert, client?.key];
  const id = hash('sha256', JSON.stringify(contents), 'base64url');
  return recall(recentContexts, id, () => createContext(caFile, client));
}

function createContext(caFile: CaFile | undefined, client: TlsMaterial | undefined): tls.SecureContext {
  return tls.createSecureContext({
    minVersion: 'TLSv1.2',
    ...(caFile === undefined ? {} : { ca: [...rootsInForce(), caFile.content] }),
    ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
  });
}
