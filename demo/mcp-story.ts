// The story of the MCP demo: an SDK client that knows only the URL of the MCP server, and what is refused.
import { randomUUID } from 'node:crypto';
import { alice, bob } from './directory.ts';
import { createMcpClient, type Exchange } from './mcp-client.ts';
import { type McpDemo, scope } from './mcp-parts.ts';
import type { Chapter, Outcome } from './run-story.ts';

const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });

export function mcpStory(demo: McpDemo): readonly Chapter[] {
  const { resource, authentication, mcpServer } = demo;
  const agent = createMcpClient(resource, demo.fetch);
  let shown = 0;
  let messagesBefore = mcpServer.count;
  const newExchanges = (): string[] => {
    const exchanges = agent.exchanges.slice(shown);
    shown += exchanges.length;
    return exchanges.map(exchangeShown);
  };
  const post = async (token?: string): Promise<Outcome> => {
    const response = await demo.fetch(resource, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: ping,
    });
    const problem = response.status < 400 ? {} : JSON.parse(await response.text());
    const challenge = response.headers.get('www-authenticate');
    return {
      actual: `${response.status} ${problem.reason ?? ''}`.trimEnd(),
      notes: challenge === null ? [] : [`www-authenticate: ${challenge}`],
    };
  };
  const tokenOf = (claims: Readonly<Record<string, unknown>>): Promise<string> => {
    const now = Math.floor(Date.now() / 1000);
    const identity = { uid: alice.uid, app: 'agent', acc: alice.homeAccount, role: 'owner', scope };
    const { issuer: iss, audience: aud } = authentication;
    return authentication.signToken({ iss, aud, iat: now, exp: now + 60, jti: randomUUID(), ...identity, ...claims });
  };

  return [
    {
      title: 'An agent knows one URL and finds the rest',
      steps: [
        {
          name: 'the SDK connects without a token',
          expected: 'sign-in, 0 messages at the MCP server',
          async act() {
            const outcome = await agent.connect();
            return {
              actual: `${outcome}, ${mcpServer.count - messagesBefore} messages at the MCP server`,
              notes: newExchanges(),
            };
          },
        },
        {
          name: 'the metadata document that Envoy serves',
          expected: `200 ${authentication.issuer}`,
          async act() {
            const response = await demo.fetch(new URL('/.well-known/oauth-protected-resource/mcp', resource));
            const text = await response.text();
            return { actual: `${response.status} ${JSON.parse(text).authorization_servers}`, notes: [text] };
          },
        },
        {
          name: 'where the SDK sends the user',
          expected: `${authentication.issuer}/oauth2/authorize, ${scope}`,
          async act() {
            const url = agent.authorizationUrl;
            return {
              actual: `${url?.origin}${url?.pathname}, ${url?.searchParams.get('scope')}`,
              notes: [`resource: ${url?.searchParams.get('resource')}`],
            };
          },
        },
        {
          name: 'alice signs in, the SDK connects',
          expected: 'connected',
          async act() {
            await agent.signInAndConnect(alice.name, alice.password);
            return { actual: 'connected', notes: newExchanges() };
          },
        },
        {
          name: 'the agent calls list_subscriptions',
          expected: 'user-alice of acme: basic, reports',
          act: async () => ({ actual: await agent.callTool('list_subscriptions'), notes: newExchanges() }),
        },
        {
          name: 'the agent of bob calls the same tool',
          expected: 'user-bob of globex: basic',
          async act() {
            const other = createMcpClient(resource, demo.fetch);
            await other.connect();
            await other.signInAndConnect(bob.name, bob.password);
            const actual = await other.callTool('list_subscriptions');
            await other.close();
            return { actual };
          },
        },
      ],
    },
    {
      title: 'What is refused, before the MCP server sees it',
      steps: [
        {
          name: 'no token',
          expected: '401 token_missing',
          async act() {
            await agent.close();
            messagesBefore = mcpServer.count;
            return post();
          },
        },
        {
          name: 'a token for another server',
          expected: '401 token_invalid',
          act: async () => post(await tokenOf({ aud: 'https://other.example.com/mcp' })),
        },
        {
          name: 'a token without the scope',
          expected: '403 scope_forbidden',
          act: async () => post(await tokenOf({ scope: 'openid' })),
        },
        {
          name: 'the SDK with that token asks for the scope',
          expected: `sign-in for ${scope}`,
          async act() {
            const client = createMcpClient(resource, demo.fetch, await tokenOf({ scope: 'openid' }));
            const outcome = await client.connect();
            return { actual: `${outcome} for ${client.authorizationUrl?.searchParams.get('scope')}` };
          },
        },
        {
          name: 'a role that may only read',
          expected: '403 role_forbidden',
          act: async () => post(await tokenOf({ role: 'auditor' })),
        },
        {
          name: 'messages of these at the MCP server',
          expected: '0',
          act: async () => ({ actual: `${mcpServer.count - messagesBefore}` }),
        },
      ],
    },
  ];
}

function exchangeShown({ method, url, status, challenge }: Exchange): string {
  const { origin, pathname } = new URL(url);
  return `${method} ${origin}${pathname} → ${status}${challenge === undefined ? '' : `, www-authenticate: ${challenge}`}`;
}
