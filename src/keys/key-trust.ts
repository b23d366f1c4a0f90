// Trust anchors of a key set: the certificate authorities that verified its fetch, and whether they are still trusted. Removing an
// authority from caFile withdraws the keys fetched under it; adding or renewing one keeps them.
import { createHash, X509Certificate } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as tls from 'node:tls';
import { loadRegularFile } from '../files/bounded-file.ts';
import { noCertificate, parseCertificates } from '../files/certificates.ts';
import type { FetchProblem } from './network-problem.ts';

/**
 * For each connection of a fetch: the anchors that verified it, as digests of their public keys, which a renewed certificate keeps.
 * A set is trusted while each list has a trusted anchor. Empty: trusted without caFile.
 */
export type Anchors = readonly (readonly string[])[];

export interface CaFile {
  readonly kind: 'caFile';
  /** PEM */
  readonly content: Buffer;
  readonly certificates: readonly X509Certificate[];
}

export interface KeyTrust {
  /** Undefined if the file is broken or not readable: half a file withdraws nothing. */
  covers(anchors: Anchors): Promise<boolean | undefined>;
}

const rootsInATurn = 8;

export function createKeyTrust(caFile: string | undefined): KeyTrust {
  return {
    async covers(anchors) {
      if (anchors.length === 0) return true;
      const file = caFile === undefined ? undefined : await loadCaFile(caFile);
      if (file?.kind === 'problem') return undefined;
      const trusted = new Set(file === undefined ? [] : [contentAnchor(file), ...file.certificates.map(keyDigest)]);
      const missing = anchors.filter(vouching => !vouching.some(anchor => trusted.has(anchor)));
      if (missing.length === 0) return true;
      for await (const root of parsedRoots()) trusted.add(keyDigest(root));
      return missing.every(vouching => vouching.some(anchor => trusted.has(anchor)));
    },
  };
}

export async function loadCaFile(path: string): Promise<CaFile | FetchProblem> {
  const loaded = await loadRegularFile(path);
  const file = loaded.kind === 'problem' ? loaded : parseCertificates(loaded.bytes);
  if (loaded.kind === 'bytes' && file.kind === 'certificates')
    return { kind: 'caFile', content: Buffer.from(loaded.bytes), certificates: file.certificates };
  const isEmpty = file.kind === 'problem' && file.problem === noCertificate;
  return { kind: 'problem', problem: isEmpty ? 'CA file without certificate' : 'CA file not readable' };
}

/** The anchors of a fetch under this file, from the certificates of the servers, which TLS has verified. */
export async function anchorsOf(
  file: CaFile | undefined,
  shown: readonly tls.DetailedPeerCertificate[],
): Promise<Anchors> {
  if (file === undefined) return [];
  // Plain http on loopback has no certificate: the keys are trusted while one authority of the file is.
  if (shown.length === 0) return [file.certificates.map(keyDigest)];
  return Promise.all(shown.map(certificate => anchorsOfChain(file, signedChain(certificate))));
}

async function anchorsOfChain(file: CaFile, chain: readonly X509Certificate[]): Promise<readonly string[]> {
  const vouches = (anchor: X509Certificate): boolean =>
    isSelfSigned(anchor) && chain.some(each => isAnchorOf(anchor, each));
  const inFile = file.certificates.filter(vouches);
  if (inFile.length > 0) return inFile.map(keyDigest);
  for await (const root of parsedRoots()) if (vouches(root)) return [keyDigest(root)];
  return [contentAnchor(file)];
}

// Node links a chain by names, which anybody can choose. Signatures prove the links.
function signedChain(leaf: tls.DetailedPeerCertificate): readonly X509Certificate[] {
  const chain = [new X509Certificate(leaf.raw)];
  for (let current = leaf; current.issuerCertificate !== undefined && current.issuerCertificate !== current; ) {
    current = current.issuerCertificate;
    const next = new X509Certificate(current.raw);
    const last = chain.at(-1);
    if (last === undefined || !isIssuedBy(last, next)) break;
    chain.push(next);
  }
  return chain;
}

function isAnchorOf(anchor: X509Certificate, certificate: X509Certificate): boolean {
  return isIssuedBy(certificate, anchor) || keyDigest(anchor) === keyDigest(certificate);
}

function isSelfSigned(certificate: X509Certificate): boolean {
  return isIssuedBy(certificate, certificate);
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function keyDigest({ publicKey }: X509Certificate): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
}

/** The anchor of a chain without a known one: exactly this content of the file. */
function contentAnchor({ content }: CaFile): string {
  return `content ${createHash('sha256').update(content).digest('base64url')}`;
}

// A few in each turn of the event loop, for there are about 150.
async function* parsedRoots(): AsyncGenerator<X509Certificate> {
  for (const [i, pem] of rootsInForce().entries()) {
    if (i % rootsInATurn === 0) await nextTurn();
    yield new X509Certificate(pem);
  }
}

/**
 * Gives a thread the roots of its process, whose environment and options it does not have. No effect before Node 22.19 and 24.5, which
 * use both in the handshake, but do not list them.
 */
export function setRootsInForce(roots: readonly string[]): void {
  if ('setDefaultCACertificates' in tls && typeof tls.setDefaultCACertificates === 'function')
    tls.setDefaultCACertificates(roots);
}

/** From Node 22.15 with those of NODE_EXTRA_CA_CERTS and --use-system-ca; before, only Node's own. */
export function rootsInForce(): readonly string[] {
  if (!('getCACertificates' in tls) || typeof tls.getCACertificates !== 'function') return tls.rootCertificates;
  const roots: unknown = tls.getCACertificates('default');
  return Array.isArray(roots) ? roots.filter(root => typeof root === 'string') : tls.rootCertificates;
}
