// The root certificates that this process trusts: Node's own, and what its options and environment add.
import * as tls from 'node:tls';

/** What this file needs of `node:tls`. The functions are newer than Node 20. */
interface TlsRoots {
  readonly rootCertificates: readonly string[];
  /** Since Node 22.15. */
  getCACertificates?(type: 'default'): readonly string[];
  /** Since Node 22.19 and 24.5. */
  setDefaultCACertificates?(roots: readonly string[]): void;
}

/** With those of NODE_EXTRA_CA_CERTS and --use-system-ca, where Node lists them; only Node's own otherwise. */
export function rootsInForce(node: TlsRoots = tls): readonly string[] {
  return node.getCACertificates?.('default') ?? node.rootCertificates;
}

/**
 * Gives a thread the roots of its process, whose environment and options it does not have. No effect before Node 22.19
 * and 24.5, which use both in the handshake anyway.
 */
export function setRootsInForce(roots: readonly string[], node: TlsRoots = tls): void {
  node.setDefaultCACertificates?.(roots);
}
