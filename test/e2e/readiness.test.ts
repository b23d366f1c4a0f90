// The readiness listener of Envoy, as a kubelet uses it, is all that is reachable from outside.
import { expect } from 'chai';
import { envoyVersions, startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { useRunning } from '../support/use-running.ts';
import { installEnvoys } from './lab.ts';

describe('the readiness of Envoy', () => {
  before(installEnvoys);

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(async () => startEnvoy({ version, authz: `127.0.0.1:${(await freePorts(1))[0]}` }));

      const statusOf = async (port: number, method: string, target: string): Promise<number> =>
        (await exchange(port, requestBytes(method, target))).status;

      it('is 200 at GET /ready, whether or not account-authz and the upstream run, and has no other path', async () => {
        expect(await statusOf(envoy.readyPort, 'GET', '/ready')).to.equal(200);
        const ofReady = ['HEAD /ready', 'POST /ready', 'GET /ready?x', 'GET /ready/'];
        const others = [...ofReady, 'GET /stats', 'POST /quitquitquit'];
        for (const each of others) {
          const [method = '', target = ''] = each.split(' ');
          expect(await statusOf(envoy.readyPort, method, target), each).to.equal(404);
        }
      });

      it('is not on the public port, and neither is the admin interface', async () => {
        const targets = ['/ready', '/stats', '/config_dump', '/server_info'];
        const statuses = await Promise.all(targets.map(target => statusOf(envoy.port, 'GET', target)));
        expect(statuses).to.deep.equal(targets.map(() => 404));
      });
    });
  }
});
