// Clients that send requests without a pause while pods come and go: HTTP/1.1 and HTTP/2 over keep-alive connections, and one with a new
// connection for each request. A Service balances connections over the pods that it knows as ready; no client retries.
import { Agent, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface Endpoint {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** Round robin, for each new connection, like kube-proxy. */
export interface Service {
  add(endpoint: Endpoint): void;
  remove(endpoint: Endpoint): void;
  pick(): Endpoint;
}

export function createService(): Service {
  const endpoints: Endpoint[] = [];
  let turn = 0;
  return {
    add: endpoint => void endpoints.push(endpoint),
    remove(endpoint) {
      const index = endpoints.findIndex(({ name }) => name === endpoint.name);
      if (index !== -1) endpoints.splice(index, 1);
    },
    pick() {
      turn += 1;
      const endpoint = endpoints[turn % endpoints.length];
      if (endpoint === undefined) throw new Error('no pod is ready');
      return endpoint;
    },
  };
}

/** A request and its expected answer. */
export interface Order {
  readonly path: string;
  readonly token?: string;
  readonly status: number;
}

export interface Answered {
  readonly client: ClientKind;
  /** The pod of the connection; empty if there was no connection. */
  readonly pod: string;
  /** performance.now() */
  readonly atMs: number;
  readonly latencyMs: number;
  /** The mismatch; absent if the answer is as expected. */
  readonly failure?: string;
}

export const clientKinds = ['HTTP/1.1', 'HTTP/2', 'one request a connection'] as const;
export type ClientKind = (typeof clientKinds)[number];

export interface LoadOptions {
  readonly service: Service;
  readonly orders: readonly Order[];
  /** The number of clients of each kind. */
  readonly clients: Readonly<Record<ClientKind, number>>;
  /** The pause between two requests of one client. */
  readonly pauseMs: number;
}

export interface Load {
  readonly answers: readonly Answered[];
  /** Resolves once the requests in flight have been answered. */
  stop(): Promise<void>;
}

interface Client {
  /** The status of the answer; rejects if there is none. */
  ask(order: Order): Promise<number>;
  /** The pod of the last request. */
  pod(): string;
  close(): void;
}

const answerMs = 10_000;

export function startLoad({ service, orders, clients, pauseMs }: LoadOptions): Load {
  const answers: Answered[] = [];
  let stopped = false;
  const run = async (kind: ClientKind, number: number): Promise<void> => {
    const client = createClient(kind, service);
    for (let turn = number; !stopped; turn += 1) {
      const order = orders[turn % orders.length];
      if (order === undefined) return;
      const atMs = performance.now();
      const failure = await client.ask(order).then(
        status => (status === order.status ? undefined : `${status} in the place of ${order.status}`),
        (error: Error) => error.message,
      );
      const answered = { client: kind, pod: client.pod(), atMs, latencyMs: performance.now() - atMs };
      answers.push(failure === undefined ? answered : { ...answered, failure });
      await delay(pauseMs);
    }
    client.close();
  };
  const all = clientKinds.flatMap(kind => Array.from({ length: clients[kind] }, (_, number) => run(kind, number)));
  return {
    answers,
    async stop() {
      stopped = true;
      await Promise.all(all);
    },
  };
}

function createClient(kind: ClientKind, service: Service): Client {
  switch (kind) {
    case 'HTTP/1.1':
      return createHttp1Client(service, true);
    case 'HTTP/2':
      return createHttp2Client(service);
    case 'one request a connection':
      return createHttp1Client(service, false);
  }
}

function headersOf({ token }: Order): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

function createHttp1Client(service: Service, keepAlive: boolean): Client {
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  let pod = '';
  agent.createConnection = () => {
    const endpoint = service.pick();
    pod = endpoint.name;
    return connect({ host: endpoint.address, port: endpoint.port, noDelay: true });
  };
  return {
    ask: order =>
      new Promise((resolve, reject) => {
        const signal = AbortSignal.timeout(answerMs);
        const call = httpRequest({ agent, host: 'api.test', path: order.path, headers: headersOf(order), signal });
        call.once('error', reject);
        call.once('response', response => {
          response.resume();
          response.once('error', reject);
          response.once('end', () => resolve(response.statusCode ?? 0));
        });
        call.end();
      }),
    pod: () => pod,
    close: () => agent.destroy(),
  };
}

function createHttp2Client(service: Service): Client {
  let session: ClientHttp2Session | undefined;
  let pod = '';
  // A session after GOAWAY takes no new requests; requests in flight end on it.
  const sessionOf = (): ClientHttp2Session => {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    const endpoint = service.pick();
    pod = endpoint.name;
    const opened = connectHttp2(`http://${endpoint.address}:${endpoint.port}`);
    opened.on('error', () => undefined);
    opened.on('goaway', () => {
      if (session === opened) session = undefined;
      opened.close();
    });
    session = opened;
    return opened;
  };
  return {
    ask: order =>
      new Promise((resolve, reject) => {
        const stream = sessionOf().request({ ':path': order.path, ':authority': 'api.test', ...headersOf(order) });
        let status = 0;
        stream.setTimeout(answerMs, () => stream.destroy(new Error('no answer in time')));
        stream.once('response', headers => {
          status = Number(headers[':status']);
        });
        stream.once('error', reject);
        stream.once('end', () => resolve(status));
        stream.resume();
        stream.end();
      }),
    pod: () => pod,
    close: () => session?.close(),
  };
}
