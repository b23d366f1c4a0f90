// The wire client against Node's own HTTP/2 server, which decodes what it sends.
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

const none = Buffer.alloc(0);
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

  it('sends a message of more than a frame in several', async () => {
    const body = Buffer.alloc(2 * 16_384 + 1, 'b');
    await send([request('/', body)]);
    expect(taken.map(each => each.body)).to.deep.equal([body.toString()]);
  });

  it('sends the same shared headers with each request, and its own with each', async () => {
    await send(['/a', '/b', '/c'].map(path => request(path)));
    expect(taken.map(({ headers, body }) => [headers[':path'], headers.authorization, headers.te, body])).to.deep.equal(
      [
        ['/a', 'Bearer /a', 'trailers', 'hello'],
        ['/b', 'Bearer /b', 'trailers', 'hello'],
        ['/c', 'Bearer /c', 'trailers', 'hello'],
      ],
    );
    expect(taken.map(({ headers }) => headers[':method'])).to.deep.equal(['POST', 'POST', 'POST']);
  });

  it('gives each answer its status byte and its message', async () => {
    const answers = await send([request('/a')]);
    expect(answers[0]).to.deep.equal({ statusByte: 0x88, message: Buffer.from('good'), isComplete: true });
  });

  it('tells another status from 200', async () => {
    respond = stream => {
      stream.respond({ ':status': 403 });
      stream.end('no');
    };
    const [answer] = await send([request('/a')]);
    expect(answer?.statusByte).to.not.equal(0x88);
    expect(answer?.isComplete).to.equal(true);
  });

  it('takes a message with trailers, as gRPC has them', async () => {
    respond = stream => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end('message');
    };
    const [answer] = await send([request('/a')]);
    expect(answer).to.deep.equal({ statusByte: 0x88, message: Buffer.from('message'), isComplete: true });
  });

  it('puts a message of many frames together', async () => {
    respond = stream => {
      stream.respond({ ':status': 200 });
      stream.end(Buffer.alloc(50_000, 'x'));
    };
    const [answer] = await send([request('/a')]);
    expect(answer?.message).to.deep.equal(Buffer.alloc(50_000, 'x'));
  });

  it('sends a request without a body', async () => {
    const [answer] = await send([{ before: request('/a').before, after: none, body: undefined }]);
    expect(taken[0]?.body).to.equal('');
    expect(answer?.isComplete).to.equal(true);
  });

  it('waits for the window of the connection, and sends everything', async () => {
    const answers = await send(Array.from({ length: 40 }, (_, index) => request(`/${index}`, Buffer.alloc(8000, 'x'))));
    expect(answers).to.have.length(40);
    expect(taken.map(({ body }) => body.length)).to.deep.equal(Array.from({ length: 40 }, () => 8000));
  });

  it('deals the requests out to its connections', async () => {
    const sessions = new Set<unknown>();
    server.on('session', session => sessions.add(session));
    await send(
      Array.from({ length: 6 }, (_, index) => request(`/${index}`)),
      3,
    );
    expect(sessions.size).to.equal(3);
  });

  it('tells a stream that was reset', async () => {
    respond = stream => stream.close(2);
    const [answer] = await send([request('/a')]);
    expect(answer?.isComplete).to.equal(false);
  });

  it('tells a connection that has ended, and that its calls were not answered', async () => {
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
