// The parts of the demo as processes of their own, for compose and Kubernetes: `node demo/serve.ts PART --listen HOST:PORT …`.
//   upstream                 answers every request with what it was given
//   authentication-service   signs in, issues tokens, publishes keys; --issuer, --audience
// --health HOST:PORT answers GET /healthz. --control HOST:PORT lets a test client rotate keys, mint tokens and ask what has
// arrived: only for an address that nobody else can reach.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { type AuthenticationService, startAuthenticationService } from './authentication-service.ts';
import type { Reached } from './stage.ts';
import { startUpstream } from './upstream.ts';

/** What the control of an authentication service tells of it. */
export type AuthenticationState = Pick<AuthenticationService, 'issuer' | 'audience' | 'jwksUrl' | 'signingKid'>;

/** The body of `POST /tokens`. */
export interface TokenOrder {
  readonly claims: Parameters<AuthenticationService['signToken']>[0];
  readonly header?: Parameters<AuthenticationService['signToken']>[1];
}

/** `METHOD /path` → what is answered, as JSON. */
type Routes = Readonly<Record<string, (body: string) => unknown>>;

interface Part {
  readonly routes: Routes;
  stop(): Promise<void>;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

const remembered = 10;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    listen: { type: 'string' },
    health: { type: 'string' },
    control: { type: 'string' },
    issuer: { type: 'string' },
    audience: { type: 'string', default: 'https://api.example.com/subscriptions' },
  },
});

const part = await startPart(positionals[0]);
const servers = [
  ...(options.health === undefined ? [] : [await serve(placeOf(options.health), {})]),
  ...(options.control === undefined ? [] : [await serve(placeOf(options.control), part.routes)]),
];
process.stdout.write(`${JSON.stringify({ msg: 'serving', part: positionals[0], listen: options.listen })}\n`);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void end());

async function startPart(name: string | undefined): Promise<Part> {
  switch (name) {
    case 'upstream': {
      const upstream = await startUpstream({ ...placeOf(options.listen ?? '127.0.0.1:8000'), remembered });
      const reached = (): Reached => ({ count: upstream.count, last: upstream.requests.at(-1) });
      return { routes: { 'GET /requests': reached }, stop: () => upstream.stop() };
    }
    case 'authentication-service': {
      const service = await startAuthenticationService({
        ...placeOf(options.listen ?? '127.0.0.1:8090'),
        ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
        audience: options.audience,
        accessTokenSeconds: 3600,
      });
      return { routes: controlOf(service), stop: () => service.stop() };
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
  const afterwards = async (done: Promise<void>): Promise<AuthenticationState> => {
    await done;
    return state();
  };
  return {
    'GET /state': state,
    'POST /rotation': () => afterwards(service.rotateKeys()),
    'POST /rotation/hard': () => afterwards(service.rotateKeys({ hard: true })),
    async 'POST /tokens'(body) {
      const { claims, header }: TokenOrder = JSON.parse(body);
      return { token: await service.signToken(claims, header) };
    },
    'POST /stop': () => afterwards(service.stop()),
    'POST /start': () => afterwards(service.startAgain()),
  };
}

async function serve(place: Place, routes: Routes): Promise<Server> {
  const all: Routes = { 'GET /healthz': () => ({ status: 'ok' }), ...routes };
  const server = createServer((request, response) => void answer(all, request, response));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(place.port, place.host, resolve);
  });
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

/** Lets what is under way end, then the process, which nothing keeps alive any more. */
async function end(): Promise<void> {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  await part.stop();
}

function placeOf(address: string): Place {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
