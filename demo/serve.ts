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

interface Address {
  readonly host: string;
  readonly port: number;
}

const keptRequests = 10;

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
  ...(options.health === undefined ? [] : [await serve(parseAddress(options.health), {})]),
  ...(options.control === undefined ? [] : [await serve(parseAddress(options.control), part.routes)]),
];
process.stdout.write(`${JSON.stringify({ msg: 'serving', part: positionals[0], listen: options.listen })}\n`);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());

async function startPart(name: string | undefined): Promise<Part> {
  switch (name) {
    case 'upstream': {
      const upstream = await startUpstream({ ...parseAddress(options.listen ?? '127.0.0.1:8000'), keptRequests });
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
      const { partner: address, audience } = options;
      const partner =
        address === undefined ? undefined : await startAuthenticationService({ ...parseAddress(address), audience });
      return {
        routes: { ...controlOf(service), ...(partner === undefined ? {} : partnerControlOf(partner)) },
        stop: async () => void (await Promise.all([service.stop(), partner?.stop()])),
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
  const stateAfter = async (change: Promise<void>): Promise<AuthenticationState> => {
    await change;
    return state();
  };
  return {
    'GET /state': state,
    'POST /rotation': () => stateAfter(service.rotateKeys()),
    'POST /rotation/hard': () => stateAfter(service.rotateKeys({ hard: true })),
    'POST /tokens': body => mint(service, body),
    'POST /stop': () => stateAfter(service.stop()),
    'POST /start': () => stateAfter(service.startAgain()),
  };
}

function partnerControlOf(partner: AuthenticationService): Routes {
  return {
    'GET /partner': () => ({ issuer: partner.issuer }),
    'POST /partner/tokens': body => mint(partner, body),
  };
}

async function mint(service: AuthenticationService, body: string): Promise<{ readonly token: string }> {
  const { claims, header }: TokenRequest = JSON.parse(body);
  return { token: await service.signToken(claims, header) };
}

async function serve(address: Address, routes: Routes): Promise<Server> {
  const all: Routes = { 'GET /healthz': () => ({ status: 'ok' }), ...routes };
  const server = createServer((request, response) => void answer(all, request, response));
  await once(server.listen(address.port, address.host), 'listening');
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

function parseAddress(address: string): Address {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
