// The readiness listener of Envoy, as a kubelet uses it, is all that is reachable from outside.
import { expect } from 'chai';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { installEnvoys } from './lab.ts';

describe('the readiness of Envoy', () => {
  before(installEnvoys);

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      let envoy: RunningEnvoy;

      before(async () => {
        const [unusedPort] = await freePorts(1);
        envoy = await startEnvoy({ version, authz: `127.0.0.1:${unusedPort}` });
      });
      after(() => envoy.stop());

      const statusOf = async (port: number, method: string, target: string): Promise<number> =>
        (await exchange(port, requestBytes(method, target))).status;

      it('is 200 at GET /ready, whether or not account-authz and the upstream run', async () => {
        expect(await statusOf(envoy.readyPort, 'GET', '/ready')).to.equal(200);
      });

      for (const [method, target] of [
        ['HEAD', '/ready'],
        ['POST', '/ready'],
        ['GET', '/ready?x'],
        ['GET', '/ready/'],
        ['GET', '/stats'],
        ['GET', '/'],
        ['POST', '/quitquitquit'],
      ] as const) {
        it(`has no other path: ${method} ${target} is 404`, async () => {
          expect(await statusOf(envoy.readyPort, method, target)).to.equal(404);
        });
      }

      it('is not on the public port, and neither is the admin interface', async () => {
        const targets = ['/ready', '/stats', '/config_dump', '/server_info'];
        const statuses = await Promise.all(targets.map(target => statusOf(envoy.port, 'GET', target)));
        expect(statuses).to.deep.equal(targets.map(() => 404));
      });

      it('ends with POST /healthcheck/fail at the admin interface, and returns with /healthcheck/ok', async () => {
        const post = (path: string) => fetch(`http://127.0.0.1:${envoy.adminPort}${path}`, { method: 'POST' });
        await post('/healthcheck/fail');
        expect(await statusOf(envoy.readyPort, 'GET', '/ready')).to.equal(503);
        await post('/healthcheck/ok');
        expect(await statusOf(envoy.readyPort, 'GET', '/ready')).to.equal(200);
      });
    });
  }
});
