// Clients that send requests without a pause while servers come and go: HTTP/1.1 and HTTP/2 over keep-alive connections, and one with a new
// connection for each request. No client retries.
import { Agent, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface Endpoint {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** A request and its expected answer. */
export interface Order {
  readonly path: string;
  readonly token?: string;
  readonly status: number;
}

export interface Answered {
  /** The endpoint of the connection; empty if there was no connection. */
  readonly endpoint: string;
  /** performance.now() */
  readonly atMs: number;
  readonly latencyMs: number;
  /** The mismatch; absent if the answer is as expected. */
  readonly failure?: string;
}

export interface LoadOptions {
  /** Round robin for each new connection, like a Service. May change while the load runs. */
  readonly endpoints: readonly Endpoint[];
  readonly orders: readonly Order[];
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
  /** Of the last request. */
  endpoint(): string;
  close(): void;
}

const answerMs = 10_000;

/** Six clients: three over HTTP/1.1, two over HTTP/2, one with a connection for each request. */
export function startLoad({ endpoints, orders, pauseMs }: LoadOptions): Load {
  const answers: Answered[] = [];
  let connections = 0;
  let stopped = false;
  const pick = (): Endpoint => {
    connections += 1;
    const endpoint = endpoints[connections % endpoints.length];
    if (endpoint === undefined) throw new Error('no endpoint is ready');
    return endpoint;
  };
  const run = async (client: Client, number: number): Promise<void> => {
    for (let turn = number; !stopped; turn += 1) {
      const order = orders[turn % orders.length];
      if (order === undefined) return;
      const atMs = performance.now();
      const failure = await client.ask(order).then(
        status => (status === order.status ? undefined : `${status} in the place of ${order.status}`),
        (error: Error) => error.message,
      );
      const answered = { endpoint: client.endpoint(), atMs, latencyMs: performance.now() - atMs };
      answers.push(failure === undefined ? answered : { ...answered, failure });
      await delay(pauseMs);
    }
    client.close();
  };
  const clients = [true, true, true, false].map(keepAlive => createHttp1Client(pick, keepAlive));
  const all = [...clients, createHttp2Client(pick), createHttp2Client(pick)].map(run);
  return {
    answers,
    async stop() {
      stopped = true;
      await Promise.all(all);
    },
  };
}

function headersOf({ token }: Order): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

function createHttp1Client(pick: () => Endpoint, keepAlive: boolean): Client {
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  let name = '';
  agent.createConnection = () => {
    const endpoint = pick();
    name = endpoint.name;
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
    endpoint: () => name,
    close: () => agent.destroy(),
  };
}

function createHttp2Client(pick: () => Endpoint): Client {
  let session: ClientHttp2Session | undefined;
  let name = '';
  // A session after GOAWAY takes no new requests; requests in flight end on it.
  const sessionOf = (): ClientHttp2Session => {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    const endpoint = pick();
    name = endpoint.name;
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
    endpoint: () => name,
    close: () => session?.close(),
  };
}
