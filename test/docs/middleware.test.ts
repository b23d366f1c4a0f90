// The middleware of docs/upstream.md for Express, as a reader copies it: it gives the handler the identity, and refuses a request without one
// and one whose account in the router is another.
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import express from 'express';
import { send } from '../../demo/http-client.ts';
import { readSnippet } from '../../lab/document.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { listen } from '../support/listen.ts';

describe('the middleware of docs/upstream.md', () => {
  const folder = freshFolder();

  it('works in Express', async () => {
    const file = join(folder, 'identity.mjs');
    await writeFile(file, `${readSnippet('docs/upstream.md', 'js', 'request.get')}\nexport { identity, ownAccount };`);
    const { identity, ownAccount } = await import(file);
    const router = express.Router();
    router.param('account_id', ownAccount);
    router.get(['/plans', '/accounts/:account_id'], (request, response) => {
      response.json((request as unknown as { identity: object }).identity);
    });
    const app = express().use(identity, router);
    const server = createServer(app);
    const port = await listen(server);
    try {
      const origin = `http://127.0.0.1:${port}`;
      const headers = { 'x-auth-uid': 'u1', 'x-auth-app': 'web', 'x-auth-acc': 'acme', 'x-auth-role': 'owner' };
      const served = (target: string, sent = {}) => send({ origin, target, headers: sent });
      expect((await served('/plans')).status).to.equal(401);
      expect((await served('/accounts/acme')).status).to.equal(401);
      expect((await served('/accounts/globex', headers)).status).to.equal(403);
      for (const target of ['/plans', '/accounts/acme']) {
        const { body } = await served(target, headers);
        expect(JSON.parse(String(body))).to.deep.equal({ uid: 'u1', app: 'web', acc: 'acme', role: 'owner' });
      }
    } finally {
      server.close();
    }
  });
});
