// MCP through a real Envoy (docs/mcp.md): the TypeScript SDK's client finds the authorization server, gets a token and calls a tool.
// Sources: MCP specification 2026-07-28, Authorization and Streamable HTTP; RFC 9728; RFC 6750 section 3.
import { expect } from 'chai';
import { decodeJwt } from 'jose';
import { alice } from '../../demo/directory.ts';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { useRunning } from '../support/use-running.ts';
import { createMcpClient, type McpClient } from './mcp-client.ts';
import { addPrintedFilters, type McpParts, scope, startMcpParts } from './mcp-parts.ts';

describe('an MCP server behind account-authz and a rendered Envoy', function () {
  this.timeout(300_000);
  let parts: McpParts;
  let metadataUrl: string;

  before(async () => {
    parts = await startMcpParts();
    metadataUrl = `${parts.resource.origin}/.well-known/oauth-protected-resource/mcp`;
  });
  after(() => parts?.stop());

  for (const [era, mode] of [
    ['MCP 2026-07-28', 'auto'],
    ['MCP 2025-11-25', 'legacy'],
  ] as const) {
    describe(`the client of the SDK, of ${era}, knowing the URL alone`, () => {
      let client: McpClient;
      let messages: number;
      before(() => {
        messages = parts.mcpServer.count;
        client = createMcpClient(parts.resource, parts.fetch, { mode });
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
        expect(parts.mcpServer.count).to.equal(messages);
      });

      it('asks for the scopes and the resource of the metadata document', () => {
        expect(client.authorizationUrl?.searchParams.get('scope')).to.equal(`${scope} offline_access`);
        expect(client.authorizationUrl?.searchParams.get('resource')).to.equal(parts.resource.href);
      });

      it('connects after the sign-in and calls a tool, which knows the caller from the identity headers', async () => {
        await client.signInAndConnect(alice.name, alice.password);
        const before = client.exchanges.length;
        expect(await client.callTool('list_subscriptions')).to.equal('user-alice of acme: basic, reports');
        const calls = client.exchanges.slice(before).filter(({ method }) => method === 'POST');
        expect(calls.map(({ named }) => named)).to.deep.equal([mode === 'auto' ? 'tools/call list_subscriptions' : '']);
      });
    });
  }

  describe('what is refused', () => {
    const token = (claims?: Readonly<Record<string, unknown>>): Promise<string> => tokenFor(parts, claims);
    let messages: number;
    before(() => {
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
      ['another audience', { aud: 'https://other.example.com/mcp' }, 401, 'token_invalid', 'error="invalid_token", '],
      ['another scope', { scope: 'openid' }, 403, 'scope_forbidden', 'error="insufficient_scope", '],
      ['a role that may only read', { role: 'auditor' }, 403, 'role_forbidden', undefined],
    ] as const;
    for (const [name, claims, status, reason, error] of cases) {
      it(`answers ${status} ${reason} to ${name}, with ${error === undefined ? 'no challenge' : 'scope and metadata URL'}`, async () => {
        const response = await post(claims && `Bearer ${await token(claims)}`);
        expect([response.status, JSON.parse(await response.text()).reason]).to.deep.equal([status, reason]);
        expect(response.headers.get('www-authenticate')).to.equal(
          error === undefined
            ? null
            : `Bearer realm="account-authz", ${error}scope="${scope}", resource_metadata="${metadataUrl}"`,
        );
      });
    }

    it('makes the SDK ask for the missing scope', async () => {
      const client = createMcpClient(parts.resource, parts.fetch, { accessToken: await token({ scope: 'openid' }) });
      expect(await client.connect()).to.equal('sign-in');
      expect(client.exchanges[0]).to.include({ status: 403 });
      expect(client.authorizationUrl?.searchParams.get('scope')).to.equal(`${scope} offline_access`);
    });

    it('leaves a token with audience, scope and role as the only one that passes', async () => {
      expect(decodeJwt(await token())).to.include({ aud: parts.resource.href, scope, role: 'owner' });
      expect((await post(`Bearer ${await token()}`)).status).to.equal(200);
      messages += 1;
    });
  });
});

describe('the tools of an MCP server, told apart by the filters of docs/mcp.md', function () {
  this.timeout(300_000);
  const parts = useRunning(() =>
    startMcpParts(bootstrap => {
      addPrintedFilters(bootstrap);
      written = String(bootstrap);
    }),
  );
  let written: string;

  it('lets a client of each revision that knows the URL alone sign in', async () => {
    for (const mode of ['auto', 'legacy'] as const) {
      const client = createMcpClient(parts.resource, parts.fetch, { mode });
      expect(await client.connect()).to.equal('sign-in');
      await client.signInAndConnect(alice.name, alice.password);
      expect(await client.callTool('list_subscriptions')).to.equal('user-alice of acme: basic, reports');
      await client.close();
    }
  });

  it('serves the metadata document whatever a client accepts, and the lint finds nothing', async () => {
    const url = `${parts.resource.origin}/.well-known/oauth-protected-resource/mcp`;
    for (const headers of [{ accept: 'application/json' }, { accept: '*/*' }, {}] as const)
      expect((await parts.fetch(url, { headers })).status).to.equal(200);
    const files = [parts.config, written].map((content, i) => writeFixture(`mcp-${i}.yaml`, content));
    const [config = '', envoy = ''] = files;
    const { code, stderr } = await runCommand('check-config', ['--config', config, '--envoy', envoy]);
    expect([code, stderr]).to.match(/^0,/);
    expect(stderr).to.not.match(/mcp-1\.yaml:/);
  });

  for (const mode of ['auto', 'legacy'] as const)
    it(`lets a member list and an owner cancel, with a client of ${mode === 'auto' ? '2026' : '2025'}`, async () => {
      for (const [role, cancelled] of [
        ['owner', 'cancelled'],
        ['member', '403'],
      ] as const) {
        const client = createMcpClient(parts.resource, parts.fetch, {
          mode,
          accessToken: await tokenFor(parts, { role }),
        });
        expect(await client.connect()).to.equal('connected');
        expect(await client.callTool('list_subscriptions')).to.equal('user-alice of acme: basic, reports');
        const outcome = await client.callTool('cancel_subscription').catch(() => client.exchanges.at(-1)?.status);
        expect(String(outcome)).to.equal(cancelled);
        await client.close();
      }
    });

  it('answers 400 to a header that names another tool than the body', async () => {
    const { count } = parts.mcpServer;
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const params = { name: 'cancel_subscription', arguments: {}, _meta: meta };
    const response = await parts.fetch(parts.resource, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await tokenFor(parts, { role: 'member' })}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'list_subscriptions',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    expect([response.status, await response.text()]).to.match(/400,.*do not match request body/);
    expect(parts.mcpServer.count).to.equal(count);
  });
});

/** A token of an owner with the scope, or with other claims. */
function tokenFor({ authentication }: McpParts, claims: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const { issuer: iss, audience: aud } = authentication;
  const iat = Math.floor(Date.now() / 1000);
  const identity = { uid: 'user-alice', app: 'agent', acc: 'acme', role: 'owner', scope };
  return authentication.signToken({ iss, aud, iat, exp: iat + 60, ...identity, ...claims });
}
