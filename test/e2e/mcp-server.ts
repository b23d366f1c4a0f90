// An MCP server as an API team writes one: no line about tokens. It knows the caller from the identity headers that account-authz sets.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

export interface RunningMcpServer {
  readonly port: number;
  /** The number of messages (POST) so far. The SDK's client also asks for a stream (GET), at a moment of its own. */
  readonly count: number;
  stop(): Promise<void>;
}

const subscriptions: Readonly<Record<string, readonly string[]>> = { acme: ['basic', 'reports'], globex: ['basic'] };

/** On a free port of 127.0.0.1. Stateless: each request has its own server and transport, so that any replica answers it. */
export async function startMcpServer(): Promise<RunningMcpServer> {
  let count = 0;
  const server = createServer((request, response) => {
    if (request.method === 'POST') count += 1;
    void answer(request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get count() {
      return count;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise<void>(resolve => server.close(() => resolve()));
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  // Without sessions there is no stream to open (GET) and none to end (DELETE).
  if (request.method !== 'POST') {
    response.writeHead(405, { allow: 'POST' }).end();
    return;
  }
  const server = new McpServer({ name: 'subscriptions', version: '1.0.0' });
  server.registerTool('list_subscriptions', { description: "The subscriptions of the caller's account" }, extra => {
    const { 'x-auth-acc': account, 'x-auth-uid': uid } = extra.requestInfo?.headers ?? {};
    const list = subscriptions[String(account)] ?? [];
    return { content: [{ type: 'text', text: `${uid} of ${account}: ${list.join(', ')}` }] };
  });
  const transport = new StreamableHTTPServerTransport();
  response.once('close', () => void server.close());
  try {
    await server.connect(transport);
    await transport.handleRequest(request, response);
  } catch {
    if (response.headersSent) response.destroy();
    else response.writeHead(500).end();
  }
}
