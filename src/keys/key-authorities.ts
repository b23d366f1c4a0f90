// The certificate authorities of a caFile, and whether one of them is gone.
import { hash, type X509Certificate } from 'node:crypto';
import { loadRegularFile } from '../files/bounded-file.ts';
import { noCertificate, parseCertificates } from '../files/certificates.ts';
import { type Problem, problem } from '../text/problem.ts';

/** The authorities of a caFile, each as the digest of its public key, which a renewed certificate keeps. */
export type Authorities = readonly string[];

export interface CaFile {
  readonly kind: 'caFile';
  /** PEM */
  readonly content: Buffer;
  readonly authorities: Authorities;
}

// To parse a bundle of 150 certificates takes 100 ms, and a thousand issuers may have the same file.
const recentFiles = new Map<string, CaFile | Problem>();

export async function loadCaFile(path: string): Promise<CaFile | Problem> {
  const loaded = await loadRegularFile(path);
  if (loaded.kind === 'problem') return problem('CA file not readable');
  const { bytes } = loaded;
  return recall(recentFiles, hash('sha256', bytes, 'base64url'), () => parseCaFile(bytes));
}

function parseCaFile(bytes: Uint8Array): CaFile | Problem {
  const parsed = parseCertificates(bytes);
  if (parsed.kind === 'certificates')
    return { kind: 'caFile', content: Buffer.from(bytes), authorities: parsed.certificates.map(keyDigest) };
  const isEmpty = parsed.problem === noCertificate;
  return problem(isEmpty ? 'CA file without certificate' : 'CA file not readable');
}

const maxRecent = 8;

/** The value of this id, made unless it is one of the last few. */
export function recall<Value>(recent: Map<string, Value>, id: string, make: () => Value): Value {
  const value = recent.get(id) ?? make();
  recent.delete(id);
  recent.set(id, value);
  const [oldest] = recent.keys();
  if (oldest !== undefined && recent.size > maxRecent) recent.delete(oldest);
  return value;
}

/** The authorities of the file now. None without a file. */
export async function loadAuthorities(caFile: string | undefined): Promise<Authorities | Problem> {
  if (caFile === undefined) return [];
  const file = await loadCaFile(caFile);
  return file.kind === 'problem' ? file : file.authorities;
}

/** Whether the file still has all authorities of before. A broken file has lost none: it may be half-written. */
export function hasAll(now: Authorities | Problem, before: Authorities): boolean {
  return 'kind' in now || before.every(authority => now.includes(authority));
}

function keyDigest({ publicKey }: X509Certificate): string {
  return hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'base64url');
}
