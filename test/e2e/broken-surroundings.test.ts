// Rows of docs/failure-modes.md without a test elsewhere.
import { credentials } from '@grpc/grpc-js';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { runProduct } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { connect, startServiceLab } from '../../lab/service.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { bearer, startLab } from './lab.ts';

describe('failure modes', () => {
  it('an invalid configuration at start exits with 1 and all problems, and nothing listens', async () => {
    const file = writeFixture('broken.yaml', 'listen: nowhere\nissuers: []\n');
    const { code, stdout, stderr } = await runProduct(['serve', '--config', file]);
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
    for (const place of ['listen', 'issuers', 'routes', 'roles']) expect(stderr).to.contain(`${place}: `);
  });

  it('a caller that verifies certificates refuses an expired one of the service', async () => {
    const authority = testCertificate({ name: 'ca', isAuthority: true });
    const expired = testCertificate({ authority, dnsNames: ['localhost'], validFromHours: -48 });
    const [certFile, keyFile] = [writeFixture('tls.crt', expired.cert), writeFixture('tls.key', expired.key)];
    const lab = await startServiceLab({ config: { tls: { certFile, keyFile } } });
    const caller = connect(`localhost:${lab.service.ports.listen}`, credentials.createSsl(Buffer.from(authority.cert)));
    try {
      const outcome = await caller.check(checkRequest({ headers: {} })).catch((error: { code: number }) => error.code);
      expect(outcome).to.equal(14);
      expect(lab.log.filter(({ msg }) => msg === 'check')).to.deep.equal([]);
    } finally {
      caller.close();
      await lab.stop();
    }
  });

  it('an upstream that is down is 503 of Envoy, with an allow in the access log', async () => {
    const lab = await startLab();
    const [unusedPort = 0] = await freePorts(1);
    const envoy = await startEnvoy({ authz: lab.service.address, upstream: unusedPort });
    try {
      const target = '/api/subscriptions/accounts/acct1';
      const answer = await exchange(envoy.port, requestBytes('GET', target, [`Authorization: ${await bearer()}`]));
      const line = await envoy.accessLogLine(headerValues(answer, 'x-request-id')[0] ?? '');
      expect(answer.status).to.equal(503);
      expect(line).to.include({ decision: 'allow', reason: 'allowed' });
      expect(line.details).to.match(/^upstream_reset_before_response_started/);
    } finally {
      await envoy.stop();
      await lab.stop();
    }
  });
});
