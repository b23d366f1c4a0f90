// MCP through a real Envoy (docs/mcp.md): the TypeScript SDK's client finds the authorization server, gets a token and calls a tool.
// Sources: MCP specification 2025-11-25, Authorization; RFC 9728; RFC 6750 section 3.
import { expect } from 'chai';
import { decodeJwt } from 'jose';
import { alice } from '../../demo/directory.ts';
import { createMcpClient, type McpClient } from './mcp-client.ts';
import { type McpParts, scope, startMcpParts } from './mcp-parts.ts';

describe('an MCP server behind account-authz and a rendered Envoy', function () {
  this.timeout(300_000);
  let parts: McpParts;
  let metadataUrl: string;

  before(async () => {
    parts = await startMcpParts();
    metadataUrl = `${parts.resource.origin}/.well-known/oauth-protected-resource/mcp`;
  });
  after(() => parts?.stop());

  describe('the client of the SDK, knowing the URL alone', () => {
    let client: McpClient;
    before(() => {
      client = createMcpClient(parts.resource, parts.fetch);
    });
    after(() => client.close());

    it('follows the challenge to the metadata, the authorization server and a registration', async () => {
      expect(await client.connect()).to.equal('sign-in');
      const { issuer } = parts.authentication;
      expect(client.exchanges.map(({ method, url, status }) => `${method} ${url} ${status}`)).to.deep.equal([
        `POST ${parts.resource} 401`,
        `GET ${metadataUrl} 200`,
        `GET ${issuer}/.well-known/oauth-authorization-server 200`,
        `POST ${issuer}/reg 201`,
      ]);
      expect(parts.mcpServer.count).to.equal(0);
    });

    it('asks for the scopes and the resource of the metadata document', () => {
      expect(client.authorizationUrl?.searchParams.get('scope')).to.equal(scope);
      expect(client.authorizationUrl?.searchParams.get('resource')).to.equal(parts.resource.href);
    });

    it('connects after the sign-in and calls a tool, which knows the caller from the identity headers', async () => {
      await client.signInAndConnect(alice.name, alice.password);
      expect(await client.callTool('list_subscriptions')).to.equal('user-alice of acme: basic, reports');
    });
  });

  describe('what is refused', () => {
    let token: (claims?: Readonly<Record<string, unknown>>) => Promise<string>;
    let messages: number;
    before(() => {
      const { issuer: iss, audience: aud } = parts.authentication;
      const identity = { uid: 'user-alice', app: 'agent', acc: 'acme', role: 'owner', scope };
      token = (claims = {}) => {
        const iat = Math.floor(Date.now() / 1000);
        return parts.authentication.signToken({ iss, aud, iat, exp: iat + 60, ...identity, ...claims });
      };
      messages = parts.mcpServer.count;
    });
    afterEach(() => expect(parts.mcpServer.count, 'the MCP server sees no refused message').to.equal(messages));

    const post = (authorization?: string): Promise<Response> =>
      parts.fetch(parts.resource, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(authorization === undefined ? {} : { authorization }),
        },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      });
    const cases = [
      ['no token', undefined, 401, 'token_missing', ''],
      [
        'the audience of another server',
        { aud: 'https://other.example.com/mcp' },
        401,
        'token_invalid',
        'invalid_token',
      ],
      ['an expired token', { iat: 1_700_000_000, exp: 1_700_000_060 }, 401, 'token_expired', 'invalid_token'],
      ['another scope', { scope: 'openid' }, 403, 'scope_forbidden', `insufficient_scope", scope="${scope}`],
      ['no scope', { scope: undefined }, 403, 'scope_forbidden', `insufficient_scope", scope="${scope}`],
      ['a role that may only read', { role: 'auditor' }, 403, 'role_forbidden', 'insufficient_scope'],
    ] as const;
    for (const [name, claims, status, reason, error] of cases) {
      it(`answers ${status} ${reason} to ${name}, with the metadata URL`, async () => {
        const response = await post(claims && `Bearer ${await token(claims)}`);
        expect([response.status, JSON.parse(await response.text()).reason]).to.deep.equal([status, reason]);
        expect(response.headers.get('www-authenticate')).to.equal(
          `Bearer realm="account-authz", ${error === '' ? '' : `error="${error}", `}resource_metadata="${metadataUrl}"`,
        );
      });
    }

    it('makes the SDK ask for the missing scope', async () => {
      const client = createMcpClient(parts.resource, parts.fetch, await token({ scope: 'openid' }));
      expect(await client.connect()).to.equal('sign-in');
      expect(client.exchanges[0]).to.include({ status: 403 });
      expect(client.authorizationUrl?.searchParams.get('scope')).to.equal(scope);
    });

    it('leaves a token with audience, scope and role as the only one that passes', async () => {
      expect(decodeJwt(await token())).to.include({ aud: parts.resource.href, scope, role: 'owner' });
      expect((await post(`Bearer ${await token()}`)).status).to.equal(200);
      messages += 1;
    });
  });
});
