// How much is read of an answer and of any other stream, and when reading it fails.
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { readStart } from '../../src/http/send-request.ts';

describe('readStart', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  async function answerOf(listener: RequestListener): Promise<IncomingMessage> {
    server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const [answer] = await once(get(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), 'response');
    return answer;
  }

  it('returns a body of exactly the limit', async () => {
    const answer = await answerOf((_, response) => response.end('ok'));
    expect((await readStart(answer, 2)).toString()).to.equal('ok');
  });

  it('cuts a longer body, and closes its connection', async () => {
    let closed: Promise<unknown> | undefined;
    const answer = await answerOf(({ socket }, response) => {
      closed = once(socket, 'close');
      response.write('too long');
    });
    expect((await readStart(answer, 3)).toString()).to.equal('too');
    await closed;
  });

  it('rejects if the body breaks off', async () => {
    const answer = await answerOf(({ socket }, response) => response.write('o', () => socket.destroy()));
    expect(await readStart(answer, 10).catch(error => error)).to.have.property('code', 'ECONNRESET');
  });

  it('rejects once the stream is destroyed', async () => {
    const stream = new PassThrough();
    stream.write('o');
    const begun = readStart(stream, 10);
    stream.destroy(new Error('stopped'));
    expect(await begun.catch(error => error)).to.have.property('message', 'stopped');
  });
});
