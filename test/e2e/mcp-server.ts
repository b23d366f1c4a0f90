// An MCP server as an API team writes one: no line about tokens. It knows the caller from the identity headers that account-authz sets.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { listen } from '../support/listen.ts';

const subscriptions: Readonly<Record<string, readonly string[]>> = { acme: ['basic', 'reports'], globex: ['basic'] };

/** On a free port of 127.0.0.1. Stateless: each request has its own server, of MCP 2026-07-28 or of an older one. */
export async function startMcpServer() {
  let count = 0;
  const answer = toNodeHandler(createMcpHandler(createToolServer));
  const server = createServer((request, response) => {
    const { method = '', url = '' } = request;
    if (method === 'POST') count += 1;
    void answer(Object.assign(request, { method, url }), response);
  });
  const port = await listen(server);
  return {
    port,
    /** The number of messages (POST) so far. The SDK's client also asks for a stream (GET), at a moment of its own. */
    get count() {
      return count;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise<void>(resolve => server.close(() => resolve()));
    },
  };
}

function createToolServer(): McpServer {
  const server = new McpServer({ name: 'subscriptions', version: '1.0.0' });
  server.registerTool('list_subscriptions', { description: "The subscriptions of the caller's account" }, context => {
    const { headers } = context.http?.req ?? {};
    const account = String(headers?.get('x-auth-acc'));
    const list = subscriptions[account] ?? [];
    return { content: [{ type: 'text', text: `${headers?.get('x-auth-uid')} of ${account}: ${list.join(', ')}` }] };
  });
  server.registerTool('cancel_subscription', { description: 'Cancels one' }, () => ({
    content: [{ type: 'text', text: 'cancelled' }],
  }));
  return server;
}
