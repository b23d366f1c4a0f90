// An MCP server behind account-authz on 127.0.0.1: the demo's authentication service, the server, the built product, a real Envoy with what
// `render envoy` prints, and in front of it a TLS terminator, as a load balancer is one.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import { type Document, isSeq, parse } from 'yaml';
import { startAuthenticationService } from '../../demo/authentication-service.ts';
import { readSnippet } from '../../lab/document.ts';
import { type EnvoyOptions, startRenderedEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { type TestCertificate, testCertificate } from '../../lab/test-certificate.ts';
import { fetchTrusting } from './mcp-client.ts';
import { startMcpServer } from './mcp-server.ts';

export type McpParts = Awaited<ReturnType<typeof startMcpParts>>;

export const scope = 'mcp:tools';

/** `edit`: of Envoy's bootstrap. */
export async function startMcpParts(edit?: EnvoyOptions['edit']) {
  const [tlsPort = 0] = await freePorts(1);
  const resource = new URL(`https://127.0.0.1:${tlsPort}/mcp`);
  const authentication = await startAuthenticationService({ audience: resource.href, scope, registration: true });
  const mcpServer = await startMcpServer();
  const { issuer, audience, discoveryUrl } = authentication;
  const config = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    issuers: [{ issuer, audiences: [audience], discoveryUrl }],
    routes: [{ path: '/mcp' }],
    roles: { owner: ['*'], member: ['POST'], auditor: ['GET'] },
    scopes: { [scope]: ['GET', 'POST', 'DELETE'] },
    protectedResource: { resource: resource.href },
    shutdown: { graceSeconds: 0 },
  };
  const authorizer = await startServiceProcess(config);
  const envoy = await startRenderedEnvoy(
    { ...config, listen: authorizer.address },
    { upstream: mcpServer.port, readsAccessLog: false, ...(edit && { edit }) },
  );
  const certificate = testCertificate({ name: '127.0.0.1' });
  const stopTls = await terminateTls(tlsPort, envoy.port, certificate);
  return {
    resource,
    fetch: fetchTrusting(certificate.cert),
    ca: certificate.cert,
    authentication,
    mcpServer,
    config: { ...config, listen: authorizer.address },
    async stop() {
      await stopTls();
      await envoy.stop();
      await authorizer.stop();
      await Promise.all([mcpServer.stop(), authentication.stop()]);
    },
  };
}

/** Those that docs/mcp.md prints, and what it switches off on the route of the metadata document, which is the first. */
export function addPrintedFilters(bootstrap: Document): void {
  const manager = connectionManagerPath(bootstrap);
  const filters = bootstrap.getIn([...manager, 'http_filters']);
  const [mcp, tools] = parse(readSnippet('docs/mcp.md', 'yaml', 'REJECT_NO_MCP'));
  if (isSeq(filters)) filters.items.splice(-1, 0, bootstrap.createNode(mcp), bootstrap.createNode(tools));
  const off = parse(readSnippet('docs/mcp.md', 'yaml', 'disabled: true'));
  const route = [...manager, 'route_config', 'virtual_hosts', 0, 'routes', 0, 'typed_per_filter_config'];
  for (const [name, each] of Object.entries(off.typed_per_filter_config)) bootstrap.setIn([...route, name], each);
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
