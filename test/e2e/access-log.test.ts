// Envoy's access log shows the decision and the reason beside Envoy's own response flags, and no secret.
import { expect } from 'chai';
import { type AccessLogLine, envoyVersions } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { issuer, uid } from '../../lab/token.ts';
import { useRunning } from '../support/use-running.ts';
import { useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
const none = { decision: null, reason: null, uid: null, acc: null };
const denied = { decision: 'deny', details: 'ext_authz_denied', flags: 'UAEX', upstreamHost: null };

describe('the access log of Envoy', () => {
  const suite = useLab();

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(() => suite.start({ version }));
      const alone = useRunning(async () => suite.start({ version, authz: `127.0.0.1:${(await freePorts(1))[0]}` }));

      const lineOf = async (target: string, authorization: string, through = envoy): Promise<AccessLogLine> => {
        const lines = ['Cookie: session=swordfish', 'x-auth-acc: swordfish', `X-Authorization: ${authorization}`];
        const sent = authorization === '' ? lines : [...lines, `Authorization: ${authorization}`];
        const answer = await exchange(through.port, requestBytes('GET', `${target}?q=swordfish`, sent));
        return through.accessLogLine(headerValues(answer, 'x-request-id')[0] ?? '');
      };

      it('has the decision, the identity and the time of the check for an allow', async () => {
        const line = await lineOf(path, suite.owner);
        const identity = { uid, app: 'web', acc: 'acct1', role: 'owner', iss: issuer };
        const request = { method: 'GET', path, status: 200, route: '/api/subscriptions', protocol: 'HTTP/1.1' };
        expect(line).to.include({ ...identity, ...request, decision: 'allow', reason: 'allowed' });
        expect(line).to.include({ details: 'via_upstream', flags: '-' });
        expect(Number(line.authzMicroseconds)).to.be.greaterThan(0);
      });

      it('has the reason of a denial with the verified identity, a failed check, and the answers of Envoy itself', async () => {
        const failed = { ...none, status: 503, details: 'ext_authz_error', flags: 'UAEX' };
        const unknown = { ...none, status: 404, path: '/nothing', route: 'nothing-else', details: 'direct_response' };
        const mismatch = { ...denied, status: 403, reason: 'account_mismatch', uid, acc: 'acct1' };
        const invalid = { ...none, ...denied, status: 401, reason: 'token_invalid' };
        expect(await lineOf(path, `${suite.owner}x`)).to.include(invalid);
        expect(await lineOf('/api/subscriptions/accounts/acct2', suite.owner)).to.include(mismatch);
        expect(await lineOf(path, suite.owner, alone)).to.include(failed);
        expect(await lineOf('/nothing', '')).to.include(unknown);
      });

      it('contains no token, no query and no header, and neither does the log of the product', () => {
        const { service } = suite.lab;
        const written = JSON.stringify([envoy.accessLog(), service.log()]) + envoy.errorLog() + service.errorLog();
        expect(envoy.accessLog()).to.have.length.above(2);
        const parts = suite.owner.slice('Bearer '.length).split('.');
        for (const secret of ['swordfish', ...parts]) expect(written).not.to.include(secret);
      });
    });
  }
});
