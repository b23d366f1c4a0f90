// An issuer of OpenAuth with one provider, whose clients need no user.
import { createServer } from 'node:http';
import { issuer } from '@openauthjs/openauth';
import { MemoryStorage } from '@openauthjs/openauth/storage/memory';

const app = issuer({
  subjects: { user: { '~standard': { version: 1, vendor: 'trial', validate: value => ({ value }) } } },
  storage: MemoryStorage(),
  providers: { service: { type: 'custom', init() {}, client: async ({ clientID }) => ({ clientID }) } },
  success: (answer, { clientID }) => answer.subject('user', { userID: clientID, accounts: { acme: 'owner' } }),
});
createServer(async (request, response) => {
  const { method, headers, url } = request;
  const body = Buffer.concat(await request.toArray());
  const sent = new Request(process.env.URL + url, { method, headers, ...(body.length > 0 && { body }) });
  const answer = await app.fetch(sent);
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
}).listen(process.env.PORT, '127.0.0.1');
