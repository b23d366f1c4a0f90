// Generated targets through Envoy's normalization, the product and Express 5: the handler runs for the account of the token only.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { defaultEnvoyVersion, startEnvoy } from '../../lab/envoy.ts';
import { createRawConnection, type HttpAnswer, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { startServiceLab } from '../../lab/service.ts';
import { createRandom } from '../assurance/generator/random.ts';
import { accounts, generateTarget, layouts, type Target } from '../assurance/paths/targets.ts';
import { accountParameter, accountsOf, createApplication } from '../assurance/paths/upstreams.ts';

const seed = Number(process.env.PATHS_SEED ?? 1);
const targets = 1000;
/** Over HTTP/2, each on a new connection. */
const http2Targets = 150;

interface Served {
  readonly url: string;
  readonly accounts: readonly string[];
  /** x-auth-acc. */
  readonly acc: string;
}

describe(`generated targets of seed ${seed} through Envoy ${defaultEnvoyVersion}`, () => {
  // The shipped envoy.yaml routes only /api/subscriptions to the upstream.
  for (const layout of layouts.slice(0, 2)) {
    it(`reach no handler for another account than the token’s: ${layout.name}`, async () => {
      const counts = { served: 0, servedThoughChanged: 0, normalized: 0, refusedByProduct: 0, refusedByEnvoy: 0 };
      const differences: unknown[] = [];
      const judge = ({ text, account, isChanged }: Target, { status, body }: HttpAnswer): void => {
        if (status !== 200) {
          counts[body.startsWith('{') ? 'refusedByProduct' : 'refusedByEnvoy'] += 1;
          return;
        }
        const served: Served = JSON.parse(body);
        counts.served += 1;
        if (isChanged) counts.servedThoughChanged += 1;
        if (served.url !== text) counts.normalized += 1;
        if ([served.acc, ...served.accounts].some(each => each !== account))
          differences.push({ text, account, served });
      };
      const lab = await startServiceLab({
        config: {
          routes: layout.templates.map(path => ({ path })),
          account: { query: [accountParameter] },
          log: { level: 'silent' },
        },
      });
      const upstream = createServer(
        createApplication(layout.templates, () => (request, response) => {
          const acc = request.header('x-auth-acc') ?? '';
          response.json({ url: request.originalUrl, accounts: accountsOf(request), acc } satisfies Served);
        }),
      ).listen(0, '127.0.0.1');
      await once(upstream, 'listening');
      const { port } = upstream.address() as AddressInfo;
      const envoy = await startEnvoy({ upstream: port, authz: `127.0.0.1:${lab.service.ports.listen}` });
      try {
        const bearers = new Map<string, string>();
        for (const acc of accounts) bearers.set(acc, `Bearer ${await lab.token({ claims: { acc } })}`);
        const work = Array.from({ length: targets }, (_, i) => i);
        await Promise.all(
          Array.from({ length: 8 }, async () => {
            const connection = createRawConnection(envoy.port);
            for (let number = work.shift(); number !== undefined; number = work.shift()) {
              const target = generateTarget(createRandom(seed, number), layout);
              const authorization = bearers.get(target.account) ?? '';
              const line = Buffer.from(target.text).toString('latin1');
              const bytes = requestBytes('GET', line, [`Authorization: ${authorization}`]);
              judge(target, await connection.exchange(bytes));
              if (number >= http2Targets) continue;
              const headers = { ':path': target.text, authorization };
              judge(target, await http2Exchange(envoy.port, { headers }));
            }
            connection.close();
          }),
        );
      } finally {
        await envoy.stop();
        upstream.closeAllConnections();
        upstream.close();
        await lab.stop();
      }
      expect(differences.slice(0, 10)).to.deep.equal([]);
      const { served, refusedByProduct, refusedByEnvoy } = counts;
      expect(served + refusedByProduct + refusedByEnvoy).to.equal(targets + http2Targets);
      const told = JSON.stringify(counts);
      expect(Math.min(served, refusedByProduct, refusedByEnvoy, counts.servedThoughChanged), told).to.be.above(80);
      expect(counts.normalized, told).to.be.above(20);
    });
  }
});
