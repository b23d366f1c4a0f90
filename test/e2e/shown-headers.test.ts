// Headers that envoy.yaml shows to account-authz because they decide how a next hop reads what was checked: connection and content-type.
import { expect } from 'chai';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath } from '../../lab/envoy-bootstrap.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { bearer, expectRefusal, installEnvoys, type Lab, onlyRequestOf, startLab } from './lab.ts';

for (const version of envoyVersions) {
  describe(`headers that Envoy ${version} shows to the check`, () => {
    let lab: Lab;
    let envoy: RunningEnvoy;
    let authorization: string;

    before(async function () {
      this.timeout(300_000);
      await installEnvoys();
      lab = await startLab();
      authorization = `Authorization: ${await bearer()}`;
      envoy = await startEnvoy({
        version,
        upstream: lab.upstream.port,
        authz: lab.service.address,
        edit: bootstrap =>
          bootstrap.setIn([...connectionManagerPath(bootstrap), 'upgrade_configs'], [{ upgrade_type: 'websocket' }]),
      });
    });
    after(async () => {
      await envoy?.stop();
      await lab?.stop();
    });
    beforeEach(() => lab.upstream.clear());

    const send = (target: string, ...lines: readonly string[]) =>
      exchange(envoy.port, requestBytes('GET', target, [authorization, ...lines]));

    for (const charset of ['utf-7', 'utf-16le', '"utf-8"', 'utf-8; charset=utf-7']) {
      it(`refuse a query in the charset ${charset}`, async () => {
        const answer = await send(
          '/api/subscriptions?+AGE-ccount_id=acct2',
          `Content-Type: text/plain; charset=${charset}`,
        );
        expectRefusal(answer, 400, 'request_invalid');
        expect(lab.upstream.requests).to.deep.equal([]);
      });
    }

    it('allow a query in UTF-8', async () => {
      const answer = await send('/api/subscriptions?account_id=acct1', 'Content-Type: application/json; charset=UTF-8');
      expect(answer.status).to.equal(200);
    });

    for (const name of ['x-auth-acc', 'X-Auth-Role', 'x-account-id']) {
      it(`refuse an upgrade that has the next hop remove ${name}`, async () => {
        const answer = await send('/api/subscriptions', `Connection: Upgrade, ${name}`, 'Upgrade: websocket');
        expectRefusal(answer, 400, 'request_invalid');
        expect(lab.upstream.requests).to.deep.equal([]);
      });
    }

    it('allow an ordinary upgrade', async () => {
      expect(await send('/api/subscriptions', 'Connection: Upgrade', 'Upgrade: websocket')).to.include({ status: 101 });
      const names = onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase());
      expect(names).to.include('x-auth-acc');
    });
  });
}
