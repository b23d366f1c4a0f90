// Gives the stable word for an error of HTTP, TLS, DNS, sockets or zlib: by its code, never by its message.
import { errorCode } from '../text/problem.ts';

const problemsByCode: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection closed'],
  ['EPIPE', 'connection closed'],
  ['ENOTFOUND', 'name not found'],
  ['EAI_AGAIN', 'name lookup failed'],
  ['EADDRNOTAVAIL', 'network unreachable'],
  ['EHOSTUNREACH', 'network unreachable'],
  ['ENETUNREACH', 'network unreachable'],
  ['ETIMEDOUT', 'timed out'],
  ['HPE_HEADER_OVERFLOW', 'headers too large'],
  ['CERT_HAS_EXPIRED', 'tls: certificate expired'],
  ['CERT_NOT_YET_VALID', 'tls: certificate not yet valid'],
  ['CERT_REVOKED', 'tls: certificate revoked'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls: self-signed certificate'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls: unknown certificate authority'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls: unknown certificate authority'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'tls: unknown certificate authority'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls: unknown certificate authority'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls: certificate for another name'],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'tls: protocol version'],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tls: protocol version'],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tls: client certificate required'],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'tls: client certificate refused'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls: not TLS'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'tls: not TLS'],
]);

const problemsByPrefix: readonly (readonly [string, string])[] = [
  ['ERR_SSL_', 'tls: handshake failed'],
  ['ERR_TLS_', 'tls: handshake failed'],
  ['EPROTO', 'tls: handshake failed'],
  ['CERT_', 'tls: certificate refused'],
  ['INVALID_', 'tls: certificate refused'],
  ['UNABLE_TO_', 'tls: certificate refused'],
  ['PATH_LENGTH_', 'tls: certificate refused'],
  ['HPE_', 'not HTTP'],
  ['Z_', 'content encoding'],
  ['ERR_BROTLI_', 'content encoding'],
  ['ERR__ERROR_FORMAT_', 'content encoding'],
  ['ERR_PADDING_', 'content encoding'],
];

/** Its message is the problem. */
export class FetchProblem extends Error {}

export function networkProblem(error: unknown): string {
  if (error instanceof FetchProblem) return error.message;
  const code = errorCode(error);
  if (code === undefined || !/^[A-Z0-9_/]{1,64}$/.test(code)) return 'network error';
  const refused = isAboutOurCertificate(code) ? 'tls: client certificate refused' : undefined;
  const problem =
    problemsByCode.get(code) ?? refused ?? problemsByPrefix.find(([prefix]) => code.startsWith(prefix))?.[1];
  return problem ?? `network error ${code}`;
}

// An alert of the server (RFC 8446 section 6.2): bad_certificate, certificate_expired and others. OpenSSL spells them in two ways:
// SSLV3_ALERT_… up to 3.1, SSL/TLS_ALERT_… from 3.2 on.
function isAboutOurCertificate(code: string): boolean {
  return code.includes('_ALERT_') && code.includes('CERTIFICATE');
}
