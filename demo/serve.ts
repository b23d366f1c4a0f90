// Runs one part of the demo as a process, for compose and Kubernetes: `node demo/serve.ts PART --listen HOST:PORT …`.
//   upstream                 echoes every request
//   authentication-service   signs users in, issues tokens, publishes keys; --issuer, --audience;
//                          --partner HOST:PORT: the issuer of a partner beside it, with keys of its own
// --health HOST:PORT answers GET /healthz. --control HOST:PORT lets a test client rotate keys, mint tokens and read the requests of the
// upstream: bind it to an address that only the test client can reach.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { type AuthenticationService, startAuthenticationService } from './authentication-service.ts';
import type { UpstreamState } from './local-demo.ts';
import { startUpstream } from './upstream.ts';

export type AuthenticationState = Pick<AuthenticationService, 'issuer' | 'audience' | 'jwksUrl' | 'signingKid'>;

/** The body of `POST /tokens`. */
export interface TokenRequest {
  readonly claims: Parameters<AuthenticationService['signToken']>[0];
  readonly header?: Parameters<AuthenticationService['signToken']>[1];
}

/** `METHOD /path` → the answer, as JSON. */
type Routes = Readonly<Record<string, (body: string) => unknown>>;

interface Part {
  readonly routes: Routes;
  stop(): Promise<void>;
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    listen: { type: 'string' },
    health: { type: 'string' },
    control: { type: 'string' },
    issuer: { type: 'string' },
    partner: { type: 'string' },
    audience: { type: 'string', default: 'https://api.example.com/subscriptions' },
  },
});

const part = await startPart(positionals[0]);
const servers = [
  ...(options.health === undefined ? [] : [await serve(options.health, {})]),
  ...(options.control === undefined ? [] : [await serve(options.control, part.routes)]),
];
process.stdout.write(`${JSON.stringify({ msg: 'serving', part: positionals[0], listen: options.listen })}\n`);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());

async function startPart(name: string | undefined): Promise<Part> {
  switch (name) {
    case 'upstream': {
      const upstream = await startUpstream(parseAddress(options.listen ?? '127.0.0.1:8000'));
      const state = (): UpstreamState => ({ count: upstream.count, last: upstream.requests.at(-1) });
      return { routes: { 'GET /requests': state }, stop: () => upstream.stop() };
    }
    case 'authentication-service': {
      const service = await startAuthenticationService({
        ...parseAddress(options.listen ?? '127.0.0.1:8090'),
        ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
        audience: options.audience,
        accessTokenSeconds: 3600,
      });
      if (options.partner === undefined) return { routes: controlOf(service), stop: () => service.stop() };
      const { audience } = options;
      const partner = await startAuthenticationService({ ...parseAddress(options.partner), audience });
      const partnerRoutes: Routes = {
        'GET /partner': () => ({ issuer: partner.issuer }),
        'POST /partner/tokens': body => mint(partner, body),
      };
      return {
        routes: { ...controlOf(service), ...partnerRoutes },
        stop: async () => void (await Promise.all([service.stop(), partner.stop()])),
      };
    }
    default:
      throw new Error('the part is upstream or authentication-service');
  }
}

function controlOf(service: AuthenticationService): Routes {
  const state = (): AuthenticationState => {
    const { issuer, audience, jwksUrl, signingKid } = service;
    return { issuer, audience, jwksUrl, signingKid };
  };
  return {
    'GET /state': state,
    'POST /rotation': () => service.rotateKeys().then(state),
    'POST /rotation/hard': () => service.rotateKeys({ hard: true }).then(state),
    'POST /tokens': body => mint(service, body),
    'POST /stop': () => service.stop().then(state),
    'POST /start': () => service.startAgain().then(state),
  };
}

async function mint(service: AuthenticationService, body: string): Promise<{ readonly token: string }> {
  const { claims, header }: TokenRequest = JSON.parse(body);
  return { token: await service.signToken(claims, header) };
}

async function serve(address: string, routes: Routes): Promise<Server> {
  const all: Routes = { 'GET /healthz': () => ({ status: 'ok' }), ...routes };
  const server = createServer((request, response) => void answer(all, request, response));
  const { host, port } = parseAddress(address);
  await once(server.listen(port, host), 'listening');
  return server;
}

async function answer(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = `${request.method} ${request.url}`;
  const handler = Object.hasOwn(routes, name) ? routes[name] : undefined;
  response.setHeader('content-type', 'application/json');
  try {
    if (handler === undefined) response.writeHead(404).end('{}');
    else response.end(JSON.stringify((await handler(await text(request))) ?? {}));
  } catch (error) {
    response.writeHead(500).end(JSON.stringify({ error: String(error) }));
  }
}

/** Closes all servers; then nothing keeps the process alive. */
async function stop(): Promise<void> {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  await part.stop();
}

function parseAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
