// The rate limit for each account of docs/upstream.md, in a real Envoy: it counts by the account that account-authz verified.
import { expect } from 'chai';
import { type Document, parse, stringify } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { readSnippet } from '../../lab/document.ts';
import { envoyVersions } from '../../lab/envoy.ts';
import { connectionManagerPath, renderedEnvoyOf } from '../../lab/envoy-bootstrap.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, useLab } from './lab.ts';

const perMinute = 2;

for (const version of [envoyVersions[0], envoyVersions[3]]) {
  describe(`the rate limit for each account behind Envoy ${version}`, () => {
    const suite = useLab();
    const envoy = useRunning(() => suite.startRendered([], { version, edit: addLimit }));

    const statuses = async (authorizations: readonly string[]): Promise<number[]> => {
      const found: number[] = [];
      for (const authorization of authorizations) {
        const bytes = requestBytes('GET', '/api/subscriptions', [`authorization: ${authorization}`]);
        found.push((await exchange(envoy.port, bytes)).status);
      }
      return found;
    };

    it('answers 429 to one account and goes on serving another, and counts no refused request', async () => {
      const [one, two] = [await bearer({ acc: 'acct1' }), await bearer({ acc: 'acct2' })];
      expect(await statuses([one, one, one])).to.deep.equal([200, 200, 429]);
      expect(await statuses([two, 'Bearer x', two])).to.deep.equal([200, 401, 200]);
      expect(suite.lab.upstream.requests).to.have.length(2 * perMinute);
    });

    it('is no finding of check-config', async () => {
      const bootstrap = parse(await renderedEnvoyOf(suite.file, []));
      const [{ filter_chains: chains }] = bootstrap.static_resources.listeners;
      chains[0].filters[0].typed_config.http_filters.splice(-1, 0, limit());
      const file = writeFixture(`rate-envoy-${version}.yaml`, stringify(bootstrap));
      const checked = await runCommand('check-config', ['--config', suite.file, '--envoy', file]);
      expect(checked).to.include({ code: 0, stderr: '' });
    });
  });
}

/** The filter of the page. */
function limit(): unknown {
  return parse(readSnippet('docs/upstream.md', 'yaml', 'local_ratelimit'))[0];
}

/** The same with a lower limit, before the router. */
function addLimit(bootstrap: Document): void {
  const filter = JSON.parse(JSON.stringify(limit()).replaceAll(':100,"tokens', `:${perMinute},"tokens`));
  const { items } = bootstrap.getIn([...connectionManagerPath(bootstrap), 'http_filters']) as { items: unknown[] };
  items.splice(-1, 0, bootstrap.createNode(filter));
}
