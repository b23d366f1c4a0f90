// Loads and validates the files of a certificate together, and of the authorities of clients: for check-config, the start and each reload.
import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { errorCode, type Problem, problem } from '../text/problem.ts';
import { loadRegularFile } from './bounded-file.ts';
import { type Certificates, parseCertificates } from './certificates.ts';

export const tlsFileKeys = ['certFile', 'keyFile', 'clientCaFile'] as const;

export type TlsFileNames = { readonly [Key in (typeof tlsFileKeys)[number]]?: string | undefined };

/** PEM texts that belong together and that OpenSSL accepts. */
export interface TlsMaterial {
  readonly kind: 'tls material';
  readonly cert: string;
  readonly key: string;
  /** If it is set, a caller must present a certificate of one of these authorities in the handshake. */
  readonly clientCa: string | undefined;
  /** The expiry of the service's certificate. The callers compare it with the time. */
  readonly notAfter: Date;
}

interface TlsFileProblems {
  readonly kind: 'problems';
  /** Empty only if certFile or keyFile is not named. */
  readonly problems: readonly { readonly key: (typeof tlsFileKeys)[number]; readonly message: string }[];
}

export async function loadTlsFiles(names: TlsFileNames): Promise<TlsMaterial | TlsFileProblems> {
  const [cert, key, clientCa] = await Promise.all([
    loadFilePart(names.certFile, parseCertificates),
    loadFilePart(names.keyFile, parsePrivateKey),
    loadFilePart(names.clientCaFile, parseCertificates),
  ]);
  const problems = [
    ...(cert?.kind === 'problem' ? [{ key: 'certFile', message: cert.problem } as const] : []),
    ...(key?.kind === 'problem' ? [{ key: 'keyFile', message: key.problem } as const] : []),
    ...(clientCa?.kind === 'problem' ? [{ key: 'clientCaFile', message: clientCa.problem } as const] : []),
  ];
  if (cert?.kind !== 'certificates' || key?.kind !== 'private key') return { kind: 'problems', problems };
  const pairProblem = problemOfPair(cert, key.privateKey);
  if (pairProblem !== undefined) problems.push(pairProblem);
  if (problems.length > 0 || clientCa?.kind === 'problem') return { kind: 'problems', problems };
  return {
    kind: 'tls material',
    cert: toPem(cert.certificates),
    key: toKeyPem(key.privateKey),
    clientCa: clientCa === undefined ? undefined : toPem(clientCa.certificates),
    notAfter: new Date(cert.certificates[0].validTo),
  };
}

/** Undefined if no file is named. */
async function loadFilePart<Part>(
  name: string | undefined,
  parse: (bytes: Uint8Array) => Part | Problem,
): Promise<Part | Problem | undefined> {
  if (name === undefined) return undefined;
  const loaded = await loadRegularFile(name);
  return loaded.kind === 'problem' ? loaded : parse(loaded.bytes);
}

interface PrivateKey {
  readonly kind: 'private key';
  readonly privateKey: KeyObject;
}

function parsePrivateKey(bytes: Uint8Array): PrivateKey | Problem {
  const pem = Buffer.from(bytes).toString('latin1');
  try {
    return { kind: 'private key', privateKey: createPrivateKey({ key: pem, format: 'pem' }) };
  } catch {
    // Detected by the labels of RFC 7468 section 11 and RFC 1421: the error code differs between releases of Node.
    const isEncrypted = /^(?:-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED)/m.test(pem);
    return problem(
      isEncrypted
        ? 'the private key must not be encrypted: there is no setting for a passphrase'
        : 'the file must contain a PEM private key',
    );
  }
}

function problemOfPair(
  { certificates }: Certificates,
  key: KeyObject,
): TlsFileProblems['problems'][number] | undefined {
  if (!certificates[0].checkPrivateKey(key))
    return { key: 'keyFile', message: 'the private key must belong to the first certificate of the certificate file' };
  try {
    // OpenSSL has more rules: it refuses short keys and weak signatures.
    createSecureContext({ cert: toPem(certificates), key: toKeyPem(key) });
    return undefined;
  } catch (error) {
    return {
      key: 'certFile',
      message: `OpenSSL refuses the certificate (${errorCode(error) ?? 'no code'}): its key may be too short or its signature too weak`,
    };
  }
}

function toPem(certificates: readonly X509Certificate[]): string {
  return certificates.map(certificate => certificate.toString()).join('');
}

function toKeyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
