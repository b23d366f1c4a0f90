// The wire client reports each answer of Node's own HTTP/2 server as it is.
import { once } from 'node:events';
import { createServer, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { ownBlock, sharedBlocks } from '../../../bench/load/hpack.ts';
import { connectWire, type WireAnswer, type WireClient, type WireRequest } from '../../../bench/load/wire-client.ts';

interface Taken {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const shared = sharedBlocks([
  { name: ':method', value: 'POST' },
  { name: ':scheme', value: 'http' },
  { name: ':authority', value: 'lab.test' },
  { name: 'te', value: 'trailers' },
]);

function request(path: string, body: Buffer | undefined = Buffer.from('hello')): WireRequest {
  return {
    before: ownBlock([{ name: ':path', value: path }]),
    after: ownBlock([{ name: 'authorization', value: `Bearer ${path}` }]),
    body,
  };
}

describe('the wire client', () => {
  let server: Http2Server;
  let taken: Taken[];
  let respond: (stream: ServerHttp2Stream) => void;
  let client: WireClient | undefined;

  beforeEach(async () => {
    taken = [];
    respond = stream => {
      stream.respond({ ':status': 200 });
      stream.end('good');
    };
    server = createServer();
    server.on('stream', (stream, headers) => {
      let body = '';
      stream.setEncoding('utf8').on('data', text => {
        body += text;
      });
      stream.on('error', () => undefined);
      stream.on('end', () => {
        taken.push({ headers, body });
        respond(stream);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  afterEach(async () => {
    await client?.close();
    server.close();
  });

  const port = (): number => (server.address() as AddressInfo).port;

  /** Sends all at once; the answers by tag. */
  async function send(requests: readonly WireRequest[], connections = 1): Promise<readonly WireAnswer[]> {
    const answers: WireAnswer[] = [];
    let count = 0;
    await new Promise<void>((resolve, reject) => {
      connectWire({
        target: { port: port() },
        connections,
        shared,
        onAnswer(tag, answer) {
          answers[tag] = { ...answer, message: answer.message && Buffer.from(answer.message) };
          if (++count === requests.length) resolve();
        },
        onFault: reject,
      }).then(connected => {
        client = connected;
        for (const [tag, each] of requests.entries()) connected.send(tag % connections, each, tag);
      }, reject);
    });
    return answers;
  }

  it('reports the status byte and the message of an answer', async () => {
    const answers = await send([request('/a')]);
    expect(answers[0]).to.deep.equal({ statusByte: 0x88, message: Buffer.from('good'), isComplete: true });
  });

  it('distinguishes another status from 200', async () => {
    respond = stream => {
      stream.respond({ ':status': 403 });
      stream.end('no');
    };
    const [answer] = await send([request('/a')]);
    expect(answer?.statusByte).to.not.equal(0x88);
    expect(answer?.isComplete).to.equal(true);
  });

  it('reports the message of an answer with trailers, as gRPC sends them', async () => {
    respond = stream => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end('message');
    };
    const [answer] = await send([request('/a')]);
    expect(answer).to.deep.equal({ statusByte: 0x88, message: Buffer.from('message'), isComplete: true });
  });

  it('reports an answer as incomplete if its stream is reset', async () => {
    respond = stream => stream.close(2);
    const [answer] = await send([request('/a')]);
    expect(answer?.isComplete).to.equal(false);
  });

  it('reports a closed connection and its unanswered calls', async () => {
    respond = stream => stream.session?.destroy();
    const answers: WireAnswer[] = [];
    const fault = await new Promise<Error>((resolve, reject) => {
      connectWire({
        target: { port: port() },
        connections: 1,
        shared,
        onAnswer: (_, answer) => answers.push(answer),
        onFault: resolve,
      }).then(connected => {
        client = connected;
        connected.send(0, request('/a'), 0);
      }, reject);
    });
    expect(fault.message).to.match(/GOAWAY|closed|ECONNRESET/);
    expect(answers.map(({ isComplete }) => isComplete)).to.deep.equal([false]);
  });
});
