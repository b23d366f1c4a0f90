// The rate limit for each account of docs/upstream.md, in a real Envoy: it counts by the account that account-authz verified.
import { expect } from 'chai';
import { type Document, parse, stringify } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { readSnippet } from '../../lab/document.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath } from '../../lab/envoy-bootstrap.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { bearer, configuration, installEnvoys, type Lab, startLab } from './lab.ts';

const perMinute = 2;

for (const version of [envoyVersions[0], envoyVersions[3]]) {
  describe(`the rate limit for each account behind Envoy ${version}`, function () {
    this.timeout(300_000);
    let lab: Lab;
    let envoy: RunningEnvoy;
    let config: string;

    before(async () => {
      await installEnvoys();
      lab = await startLab();
      config = writeFixture(`rate-${version}.yaml`, { ...configuration(lab.jwksUrl), listen: lab.service.address });
      const { stdout } = await runCommand('render', ['envoy', '--config', config]);
      envoy = await startEnvoy({ version, bootstrap: stdout, upstream: lab.upstream.port, edit: addLimit });
    });
    after(async () => {
      await envoy?.stop();
      await lab?.stop();
    });

    it('answers 429 to one account and goes on serving another', async () => {
      expect(await statuses('acct1', perMinute + 1)).to.deep.equal([200, 200, 429]);
      expect(await statuses('acct2', perMinute)).to.deep.equal([200, 200]);
      expect(lab.upstream.requests).to.have.length(2 * perMinute);
    });

    it('counts no refused request', async () => {
      const refused = await exchange(envoy.port, requestBytes('GET', '/api/subscriptions', []));
      expect(refused.status).to.equal(401);
      expect(await statuses('acct3', perMinute)).to.deep.equal([200, 200]);
    });

    it('is no finding of check-config', async () => {
      const { stdout } = await runCommand('render', ['envoy', '--config', config]);
      const bootstrap = parse(stdout);
      const [{ filter_chains: chains }] = bootstrap.static_resources.listeners;
      chains[0].filters[0].typed_config.http_filters.splice(-1, 0, limit());
      const file = writeFixture(`rate-envoy-${version}.yaml`, stringify(bootstrap));
      const checked = await runCommand('check-config', ['--config', config, '--envoy', file]);
      expect(checked).to.include({ code: 0, stderr: '' });
    });

    async function statuses(acc: string, count: number): Promise<number[]> {
      const found: number[] = [];
      for (let i = 0; i < count; i += 1) {
        const authorization = `authorization: ${await bearer({ acc })}`;
        found.push((await exchange(envoy.port, requestBytes('GET', '/api/subscriptions', [authorization]))).status);
      }
      return found;
    }
  });
}

/** The filter of the page. */
function limit(): unknown {
  return parse(readSnippet('docs/upstream.md', 'yaml', 'local_ratelimit'))[0];
}

/** The same with a lower limit, before the router. */
function addLimit(bootstrap: Document): void {
  const filter = JSON.parse(JSON.stringify(limit()).replaceAll(':100,"tokens', `:${perMinute},"tokens`));
  const path = [...connectionManagerPath(bootstrap), 'http_filters'];
  const filters: unknown[] = bootstrap
    .toJS()
    .static_resources.listeners.find((each: { name: string }) => each.name === 'public').filter_chains[0].filters[0]
    .typed_config.http_filters;
  bootstrap.setIn(path, filters.toSpliced(-1, 0, filter));
}
