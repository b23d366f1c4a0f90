// Envoy's access log shows the decision and the reason beside Envoy's own response flags, and no secret.
import { expect } from 'chai';
import { type AccessLogLine, envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { issuer, uid } from '../../lab/token.ts';
import { bearer, installEnvoys, type Lab, startLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';

describe('the access log of Envoy', () => {
  let lab: Lab;
  let token: string;

  before(async () => {
    await installEnvoys();
    lab = await startLab();
    token = (await bearer()).slice('Bearer '.length);
  });
  after(() => lab.stop());

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      let envoy: RunningEnvoy;
      let alone: RunningEnvoy;

      before(async () => {
        const [unusedPort] = await freePorts(1);
        [envoy, alone] = await Promise.all([
          startEnvoy({ version, upstream: lab.upstream.port, authz: lab.service.address }),
          startEnvoy({ version, upstream: lab.upstream.port, authz: `127.0.0.1:${unusedPort}` }),
        ]);
      });
      after(() => Promise.all([envoy.stop(), alone.stop()]));

      const lineOf = async (target: string, lines: readonly string[], through = envoy): Promise<AccessLogLine> => {
        const answer = await exchange(through.port, requestBytes('GET', target, lines));
        return through.accessLogLine(headerValues(answer, 'x-request-id')[0] ?? '');
      };

      it('has the decision, the identity and the time of the check for an allow', async () => {
        const line = await lineOf(`${path}?plan=gold&access_token=${token}`, [`Authorization: Bearer ${token}`]);
        const identity = { uid, app: 'web', acc: 'acct1', role: 'owner', iss: issuer };
        expect(line).to.include({
          method: 'GET',
          path,
          status: 200,
          decision: 'allow',
          reason: 'allowed',
          ...identity,
        });
        expect(line).to.include({
          route: '/api/subscriptions',
          details: 'via_upstream',
          flags: '-',
          protocol: 'HTTP/1.1',
        });
        expect(Number(line.authzMicroseconds)).to.be.greaterThan(0);
      });

      it('has the decision and the reason for a denial, and no identity that was not verified', async () => {
        const line = await lineOf(path, [`Authorization: Bearer ${token}x`]);
        expect(line).to.include({
          status: 401,
          decision: 'deny',
          reason: 'token_invalid',
          details: 'ext_authz_denied',
          flags: 'UAEX',
        });
        expect(line).to.include({ uid: null, acc: null, upstreamHost: null });
      });

      it('has the verified identity for a denial of another account', async () => {
        const line = await lineOf('/api/subscriptions/accounts/acct2', [`Authorization: Bearer ${token}`]);
        expect(line).to.include({
          status: 403,
          decision: 'deny',
          reason: 'account_mismatch',
          uid,
          acc: 'acct1',
        });
      });

      it('distinguishes a failed check from a denial', async () => {
        const line = await lineOf(path, [`Authorization: Bearer ${token}`], alone);
        expect(line).to.include({
          status: 503,
          decision: null,
          reason: null,
          details: 'ext_authz_error',
          flags: 'UAEX',
        });
      });

      it('has the answers of Envoy itself', async () => {
        const line = await lineOf('/nothing?access_token=secret', []);
        expect(line).to.include({
          status: 404,
          path: '/nothing',
          route: 'nothing-else',
          details: 'direct_response',
          decision: null,
        });
      });

      it('contains no token, no query and no header, and neither does the log of the product', async () => {
        const secrets = [`Authorization: Bearer ${token}`, 'Cookie: session=swordfish', 'x-auth-acc: swordfish'];
        await lineOf(`${path}?access_token=${token}&q=swordfish`, secrets);
        await lineOf(`${path}?access_token=${token}&q=swordfish`, secrets.slice(1));
        const written =
          JSON.stringify([envoy.accessLog(), lab.service.log()]) + envoy.errorLog() + lab.service.errorLog();
        for (const secret of ['swordfish', 'access_token', ...token.split('.')]) expect(written).not.to.include(secret);
      });
    });
  }
});
