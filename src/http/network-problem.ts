// Gives the stable word for an error of HTTP, TLS, DNS, sockets or zlib: by its code, never by its message.
import { errorCode } from '../text/problem.ts';

/** The first row that matches counts. */
const problems: readonly (readonly [problem: string, code: RegExp])[] = [
  ['connection refused', /^ECONNREFUSED$/],
  ['connection closed', /^(?:ECONNRESET|EPIPE)$/],
  ['name not found', /^ENOTFOUND$/],
  ['name lookup failed', /^EAI_AGAIN$/],
  ['network unreachable', /^(?:EADDRNOTAVAIL|EHOSTUNREACH|ENETUNREACH)$/],
  ['timed out', /^ETIMEDOUT$/],
  ['headers too large', /^HPE_HEADER_OVERFLOW$/],
  ['not HTTP', /^HPE_/],
  ['body too large', /^ERR_BUFFER_TOO_LARGE$/],
  ['tls: certificate expired', /^CERT_HAS_EXPIRED$/],
  ['tls: certificate not yet valid', /^CERT_NOT_YET_VALID$/],
  ['tls: self-signed certificate', /^DEPTH_ZERO_SELF_SIGNED_CERT$/],
  ['tls: unknown certificate authority', /^(?:SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_|UNABLE_TO_GET_ISSUER_)/],
  ['tls: certificate for another name', /^ERR_TLS_CERT_ALTNAME_INVALID$/],
  ['tls: certificate refused', /^(?:CERT_|INVALID_|UNABLE_TO_|PATH_LENGTH_)/],
  ['tls: protocol version', /^ERR_SSL_(?:UNSUPPORTED_PROTOCOL|TLSV1_ALERT_PROTOCOL_VERSION)$/],
  ['tls: client certificate required', /^ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED$/],
  // An alert of the server (RFC 8446 section 6.2): bad_certificate, certificate_expired and others. OpenSSL spells them in two ways:
  // SSLV3_ALERT_… up to 3.1, SSL/TLS_ALERT_… from 3.2 on.
  ['tls: client certificate refused', /^ERR_SSL_(?:TLSV1_ALERT_UNKNOWN_CA$|[A-Z0-9/]*_ALERT_[A-Z_]*CERTIFICATE)/],
  ['tls: not TLS', /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/],
  ['tls: handshake failed', /^(?:ERR_SSL_|ERR_TLS_|EPROTO)/],
  ['content encoding', /^(?:Z_|ERR_BROTLI_|ERR__ERROR_FORMAT_|ERR_PADDING_)/],
];

/** Its message is the problem. */
export class FetchProblem extends Error {}

export function networkProblem(error: unknown): string {
  if (error instanceof FetchProblem) return error.message;
  const code = errorCode(error);
  if (code === undefined || !/^[A-Z0-9_/]{1,64}$/.test(code)) return 'network error';
  const [found] = problems.find(([, codes]) => codes.test(code)) ?? [];
  return found ?? `network error ${code}`;
}
