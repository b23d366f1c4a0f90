// The middleware of docs/upstream.md for Express, as a reader copies it: it gives the handler the identity, and refuses a request without one.
// `npm run middleware` does the same for the other frameworks.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import express from 'express';
import { send } from '../../demo/http-client.ts';
import { readSnippet } from '../../lab/snippets.ts';

describe('the middleware of docs/upstream.md', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-middleware-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('works in Express', async () => {
    const file = join(folder, 'identity.mjs');
    await writeFile(file, `export ${readSnippet('docs/upstream.md', 'js', 'request.get')}`);
    const { identity } = await import(file);
    const app = express().use(identity, (request, response) => {
      response.json((request as unknown as { identity: object }).identity);
    });
    const server = createServer(app);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    try {
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const headers = { 'x-auth-uid': 'u1', 'x-auth-app': 'web', 'x-auth-acc': 'acme', 'x-auth-role': 'owner' };
      expect((await send({ origin, target: '/' })).status).to.equal(401);
      const served = await send({ origin, target: '/', headers });
      expect(JSON.parse(String(served.body))).to.deep.equal({ uid: 'u1', app: 'web', acc: 'acme', role: 'owner' });
    } finally {
      server.close();
    }
  });
});
