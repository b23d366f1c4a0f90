// Runs all parts of the MCP demo on 127.0.0.1: the demo's authentication service, an MCP server, the built account-authz, a real Envoy with
// what `render envoy` prints, and in front of it a TLS terminator, as a load balancer is one.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { envoyBinary, startRenderedEnvoy } from '../lab/envoy.ts';
import { freePorts } from '../lab/free-ports.ts';
import { startServiceProcess } from '../lab/service-process.ts';
import { type TestCertificate, testCertificate } from '../lab/test-certificate.ts';
import { type AuthenticationService, startAuthenticationService } from './authentication-service.ts';
import { fetchTrusting } from './mcp-client.ts';
import { type RunningMcpServer, startMcpServer } from './mcp-server.ts';
import type { Terminal } from './terminal.ts';

export interface McpDemo {
  /** The URL of the MCP server as clients know it; also the `aud` of its tokens. */
  readonly resource: URL;
  readonly fetch: FetchLike;
  readonly authentication: AuthenticationService;
  readonly mcpServer: RunningMcpServer;
  stop(): Promise<void>;
}

export const scope = 'mcp:tools';

/** Rejects if a part cannot start, after it has stopped the others. */
export async function startMcpDemo(progress: Pick<Terminal, 'starting' | 'started'>): Promise<McpDemo> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const [tlsPort = 0] = await freePorts(1);
    const resource = new URL(`https://127.0.0.1:${tlsPort}/mcp`);

    progress.starting('authentication service');
    const authentication = await startAuthenticationService({ audience: resource.href, scope, registration: true });
    stops.push(() => authentication.stop());
    progress.started('authentication service', authentication.issuer);

    progress.starting('MCP server');
    const mcpServer = await startMcpServer();
    stops.push(() => mcpServer.stop());
    progress.started('MCP server', `http://127.0.0.1:${mcpServer.port}`);

    progress.starting('account-authz');
    const { issuer, audience, discoveryUrl } = authentication;
    const config = {
      listen: '127.0.0.1:0',
      admin: '127.0.0.1:0',
      issuers: [{ issuer, audiences: [audience], discoveryUrl }],
      routes: [{ path: '/mcp' }],
      roles: { owner: ['*'], auditor: ['GET'] },
      scopes: { [scope]: ['GET', 'POST', 'DELETE'] },
      protectedResource: { resource: resource.href },
      shutdown: { graceSeconds: 0 },
    };
    const authorizer = await startServiceProcess(config);
    stops.push(() => authorizer.stop());
    progress.started('account-authz', `grpc://${authorizer.address}`);

    progress.starting('Envoy, installed the first time');
    await envoyBinary();
    const envoy = await startRenderedEnvoy(
      { ...config, listen: authorizer.address },
      { upstream: mcpServer.port, readsAccessLog: false },
    );
    stops.push(() => envoy.stop());
    const certificate = testCertificate({ name: '127.0.0.1' });
    stops.push(await terminateTls(tlsPort, envoy.port, certificate));
    progress.started('Envoy behind TLS', resource.origin);

    return { resource, fetch: fetchTrusting(certificate.cert), authentication, mcpServer, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Resolves with its stop. */
async function terminateTls(
  port: number,
  envoyPort: number,
  certificate: TestCertificate,
): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server = createServer({ cert: certificate.cert, key: certificate.key }, socket => {
    const envoy = connect(envoyPort, '127.0.0.1');
    for (const [from, to] of [[socket, envoy] as const, [envoy, socket] as const]) {
      sockets.add(from);
      from.once('error', () => to.destroy()).once('close', () => sockets.delete(from));
      from.pipe(to);
    }
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>(resolve => server.close(() => resolve()));
  };
}
