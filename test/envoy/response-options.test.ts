import { EventEmitter, once } from 'node:events';
import http2, { type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { respondWithAllOptions } from '../../src/envoy/response-options.ts';

describe('response options', () => {
  // In the place of Node's stream, which copies them before anyone could see them.
  class Stream {
    readonly responses: unknown[] = [];
    respond(...given: unknown[]): void {
      this.responses.push([this, ...given]);
    }
  }

  function responsesOf(...given: Parameters<http2.ServerHttp2Stream['respond']>[]): unknown[] {
    const session = new EventEmitter();
    const stream = new Stream();
    session.on('stream', () => {
      for (const each of given) Reflect.apply(stream.respond, stream, each);
    });
    respondWithAllOptions(session as unknown as ServerHttp2Session);
    session.emit('stream', stream);
    return stream.responses.map(each => (each as unknown[])[0] === stream && (each as unknown[]).slice(1));
  }

  it('are all there for Node, whichever were given', () => {
    const headers = { 'content-type': 'application/grpc' };
    expect(
      responsesOf([], [headers], [headers, {}], [headers, { waitForTrailers: true }], [headers, { endStream: true }]),
    ).to.deep.equal([
      [undefined, { endStream: false, sendDate: false, waitForTrailers: false }],
      [headers, { endStream: false, sendDate: false, waitForTrailers: false }],
      [headers, { endStream: false, sendDate: false, waitForTrailers: false }],
      [headers, { endStream: false, sendDate: false, waitForTrailers: true }],
      [headers, { endStream: true, sendDate: false, waitForTrailers: false }],
    ]);
  });

  describe('of a connection', () => {
    const server = http2.createServer();
    server.on('session', respondWithAllOptions);
    server.on('stream', (stream, headers) => {
      const hasTrailers = headers[':path'] === '/trailers';
      stream.respond({ 'content-type': 'text/plain' }, { waitForTrailers: hasTrailers, endStream: !hasTrailers });
      stream.on('wantTrailers', () => stream.sendTrailers({ last: 'one' }));
      if (hasTrailers) stream.end('text');
    });
    before(done => {
      server.listen(0, '127.0.0.1', done);
    });
    after(done => {
      server.close(done);
    });

    async function answerTo(path: string): Promise<unknown> {
      const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      const call = client.request({ ':path': path }).setEncoding('utf8');
      const answer: unknown[] = [];
      call.on('response', headers => answer.push(JSON.parse(JSON.stringify(headers))));
      call.on('trailers', headers => answer.push(JSON.parse(JSON.stringify(headers))));
      call.on('data', text => answer.push(text));
      await once(call, 'close');
      client.close();
      return answer;
    }

    it('give the answer that was meant, without a date', async () => {
      expect(await answerTo('/trailers')).to.deep.equal([
        { ':status': 200, 'content-type': 'text/plain' },
        'text',
        { last: 'one' },
      ]);
      expect(await answerTo('/')).to.deep.equal([{ ':status': 200, 'content-type': 'text/plain' }]);
    });
  });
});
