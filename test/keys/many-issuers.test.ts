// Many issuers, on one URL and on a URL each: the number of fetches, and those in flight.
import { createServer } from 'node:http';
import { expect } from 'chai';
import { startServiceLab } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { audience } from '../../lab/token.ts';
import { until } from '../../lab/until.ts';
import type { KeyRings } from '../../src/keys/key-rings.ts';
import { startKeyRings } from '../support/key-rings.ts';
import { listen } from '../support/listen.ts';
import { useEnds } from '../support/use-ends.ts';

/** With one fetch for all. */
const count = 200;
/** With a fetch each. */
const separate = 60;
const maxInFlight = 32;

describe('many issuers', () => {
  const ends = useEnds();
  const served = { fetches: 0, inFlight: 0, maxInFlight: 0 };
  let origin: string;
  /** The latency of the server. */
  let delayMs: (path: string) => number;

  beforeEach(async () => {
    Object.assign(served, { fetches: 0, inFlight: 0, maxInFlight: 0 });
    delayMs = () => 0;
    const { publicJwk } = await signingKey('k1');
    const body = JSON.stringify({ keys: [publicJwk] });
    const server = createServer((request, response) => {
      served.fetches += 1;
      served.inFlight += 1;
      served.maxInFlight = Math.max(served.maxInFlight, served.inFlight);
      response.on('close', () => {
        served.inFlight -= 1;
      });
      const answer = (): unknown => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      setTimeout(answer, delayMs(request.url ?? '')).unref();
    });
    const port = await listen(server);
    ends.push(async () => {
      server.close();
      server.closeAllConnections();
    });
    origin = `http://127.0.0.1:${port}`;
  });

  const issuers = (length: number, urlOf: (i: number) => string) =>
    Array.from({ length }, (_, i) => ({
      issuer: `https://issuer-${i}.test`,
      audiences: [audience],
      algorithms: ['ES256'],
      jwksUrl: urlOf(i),
    }));

  const usable = (rings: KeyRings): number => rings.active().filter(ring => ring.status().state === 'usable').length;

  const rows: readonly (readonly [name: string, issuers: number, urlOf: (i: number) => string, fetches: number])[] = [
    ['on one URL become usable with a single fetch', count, () => `${origin}/jwks`, 1],
    ['on a URL each become usable with one fetch each', separate, i => `${origin}/${i}`, separate],
  ];
  for (const [name, length, urlOf, fetches] of rows) {
    it(`${length} ${name}, at most ${maxInFlight} in flight`, async () => {
      // Long enough for all that may to be in flight at once.
      delayMs = () => 300;
      const rings = startKeyRings(ends);
      const times = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 600 };
      (await rings.prepare(issuers(length, urlOf), times)).activate();
      await until(() => usable(rings) === length);
      expect(served.fetches).to.equal(fetches);
      expect(served.maxInFlight).to.equal(Math.min(fetches, maxInFlight));
    });
  }

  it('become usable once as many others that hang have reached their time limit', async () => {
    delayMs = path => (path.startsWith('/slow') ? 600_000 : 0);
    const rings = startKeyRings(ends);
    const times = { refreshSeconds: 1000, maxAgeSeconds: 3600, cooldownSeconds: 600, timeoutSeconds: 1 };
    const slow = origin.replace('127.0.0.1', 'localhost');
    const urlOf = (i: number): string => (i < separate ? `${slow}/slow/${i}` : `${origin}/${i}`);
    (await rings.prepare(issuers(2 * separate, urlOf), times)).activate();
    await until(() => usable(rings) === separate);
  });

  it('are listed by /readyz and /metrics, and the admin page stays bounded', async () => {
    const lab = await startServiceLab({ config: { issuers: issuers(count, () => `${origin}/jwks`) } });
    ends.push(() => lab.stop());
    const readiness = (await (await lab.admin('/readyz')).json()) as { issuers: readonly { state: string }[] };
    expect(readiness.issuers).to.have.length(count);
    expect(readiness.issuers.every(({ state }) => state === 'usable')).to.equal(true);
    const metrics = await (await lab.admin('/metrics')).text();
    for (const metric of ['key_set_keys{issuer=', 'key_set_age_seconds{issuer=', 'key_refreshes_total{issuer='])
      expect(metrics.split(`\naccount_authz_${metric}`)).to.have.length.of.at.least(count + 1);
    const page = await (await lab.admin('/')).text();
    expect(page).to.contain('150 more').and.have.length.of.at.most(200_000);
    const usableLines = lab.log.filter(({ msg }) => msg === 'keys usable');
    expect(usableLines).to.deep.include({ ...usableLines[0], issuer: 'https://issuer-0.test', issuers: count });
    expect(usableLines).to.have.length(1);
  });
});
