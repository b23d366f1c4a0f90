// Parses the certificates of a PEM file: all of them, or the problem of the file.
import { X509Certificate } from 'node:crypto';
import { type Problem, problem } from '../text/problem.ts';

export interface Certificates {
  readonly kind: 'certificates';
  /** In the order of the file. */
  readonly certificates: readonly [X509Certificate, ...X509Certificate[]];
}

export const noCertificate = 'the file must contain a PEM certificate';

// Text around the blocks is a comment (RFC 7468 section 5.2).
export function parseCertificates(bytes: Uint8Array): Certificates | Problem {
  const text = Buffer.from(bytes).toString('latin1');
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  const isComplete = blocks.length === text.split('-----BEGIN CERTIFICATE-----').length - 1;
  const [first, ...others] = blocks.map(toCertificate).filter(certificate => certificate !== undefined);
  if (blocks.length === 0) return problem(noCertificate);
  if (first === undefined || !isComplete || others.length < blocks.length - 1)
    return problem('the file must not contain a broken certificate');
  return { kind: 'certificates', certificates: [first, ...others] };
}

function toCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
