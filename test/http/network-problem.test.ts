// The words for a network error.
import { expect } from 'chai';
import { networkProblem } from '../../src/http/network-problem.ts';

describe('networkProblem', () => {
  const rows: readonly (readonly [unknown, string])[] = [
    ['ECONNREFUSED', 'connection refused'],
    ['ECONNRESET', 'connection closed'],
    ['ENOTFOUND', 'name not found'],
    ['EAI_AGAIN', 'name lookup failed'],
    ['EHOSTUNREACH', 'network unreachable'],
    ['HPE_HEADER_OVERFLOW', 'headers too large'],
    ['CERT_HAS_EXPIRED', 'tls: certificate expired'],
    ['CERT_SIGNATURE_FAILURE', 'tls: certificate refused'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tls: client certificate required'],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'tls: client certificate refused'],
    ['ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED', 'tls: client certificate refused'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'tls: handshake failed'],
    ['HPE_INVALID_CONSTANT', 'not HTTP'],
    ['Z_DATA_ERROR', 'content encoding'],
    ['EMFILE', 'network error EMFILE'],
    ['with a token in it', 'network error'],
    [42, 'network error'],
    [undefined, 'network error'],
  ];
  for (const [code, problem] of rows) {
    it(`maps the error code ${String(code)} to "${problem}"`, () => {
      expect(networkProblem(Object.assign(new Error('message'), { code }))).to.equal(problem);
    });
  }

  it('maps a value that is not an error to "network error"', () => {
    expect(networkProblem('thrown')).to.equal('network error');
  });
});
