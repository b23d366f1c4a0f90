// Routes by the verified account, as docs/routing.md has them: Envoy chooses again after the check, by what account-authz has set.
import { expect } from 'chai';
import { isSeq, parse } from 'yaml';
import { readSnippet } from '../../lab/document.ts';
import { envoyVersions, startEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath, httpFilterPath, renderedEnvoyOf } from '../../lab/envoy-bootstrap.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, expectRefusal, useLab } from './lab.ts';

const target = '/api/subscriptions';

describe('routes by the verified account', () => {
  const suite = useLab();
  const europe = useRunning(startRecordingUpstream);
  beforeEach(() => europe.clear());

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(async () =>
        startEnvoy({
          version,
          bootstrap: await renderedEnvoyOf(suite.file, []),
          upstream: suite.lab.upstream.port,
          edit(bootstrap) {
            const { clusters } = bootstrap.toJS().static_resources;
            const { name, ...cluster } = clusters.find((each: { name: string }) => each.name === 'upstream');
            const [own, other] = [suite.lab.upstream, europe].map(({ port }) => `"port_value":${port}`);
            const copy = JSON.parse(JSON.stringify(cluster).replace(own ?? '', other ?? ''));
            bootstrap.addIn(['static_resources', 'clusters'], { name: `${name}-eu`, ...copy });
            const host = [...connectionManagerPath(bootstrap), 'route_config', 'virtual_hosts', 0, 'routes'];
            const routes = bootstrap.getIn(host);
            const [route] = parse(readSnippet('docs/routing.md', 'yaml', 'accounts in europe'));
            if (isSeq(routes)) routes.items.unshift(bootstrap.createNode(route));
            bootstrap.setIn([...httpFilterPath(bootstrap, 'envoy.filters.http.ext_authz'), 'clear_route_cache'], true);
          },
        }),
      );
      const ask = (...lines: readonly string[]) => exchange(envoy.port, requestBytes('GET', target, lines));
      const reached = () => [europe, suite.lab.upstream].map(({ requests }) => requests.length);
      const forged = 'x-auth-acc: eu-acme';

      it('leads an account to its own service, and another one to the service without a condition', async () => {
        expect((await ask(`authorization: ${await bearer({ acc: 'eu-acme' })}`)).status).to.equal(200);
        expect(reached()).to.deep.equal([1, 0]);
        expect(europe.requests[0]?.headers).to.deep.include(['x-auth-acc', 'eu-acme']);
        expect((await ask(`authorization: ${suite.owner}`)).status).to.equal(200);
        expect(reached()).to.deep.equal([1, 1]);
      });

      it('leads by the account of the token, whatever a client claims', async () => {
        expect((await ask(`authorization: ${suite.owner}`, forged)).status).to.equal(200);
        expect(reached()).to.deep.equal([0, 1]);
      });

      it('leads a request without a token nowhere', async () => {
        expectRefusal(await ask(forged), 401, 'token_missing');
        expect(reached()).to.deep.equal([0, 0]);
      });
    });
  }
});
