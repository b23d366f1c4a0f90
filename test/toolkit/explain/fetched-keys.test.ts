// The keys that explain and test fetch: from all issuers at once, so that keys.timeoutSeconds bounds the time for all of them together.
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { signingKey } from '../../../lab/signing-key.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { fetchKeys } from '../../../src/toolkit/offline/fetched-keys.ts';

describe('current keys', () => {
  it('are fetched from twenty issuers of one host at once: none waits for another that is silent', async () => {
    const count = 20;
    const body = JSON.stringify({ keys: [(await signingKey('k1')).publicJwk] });
    const pending: ServerResponse[] = [];
    // Silent until all have asked.
    const server = createServer((_, response) => {
      if (pending.push(response) < count) return;
      for (const each of pending) each.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const config = configSchema.parse({
      issuers: Array.from({ length: count }, (_, i) => ({
        issuer: `https://issuer-${i}.test`,
        audiences: ['https://api.test'],
        algorithms: ['ES256'],
        jwksUrl: `http://127.0.0.1:${port}/${i}`,
      })),
      keys: { timeoutSeconds: 60 },
      routes: [{ path: '/api/subscriptions/*' }],
      roles: { owner: ['*'] },
    });
    const { rings, stop } = await fetchKeys({ config, proxy: {}, onWarning: () => undefined });
    const states = Array.from(rings.values(), ring => ring.status().state);
    await stop();
    server.close();
    expect(states).to.deep.equal(Array.from({ length: count }, () => 'usable'));
  });
});
