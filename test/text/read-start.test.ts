// How much is read of an answer and of any other stream, and when reading it fails.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { readStart, sendRequest } from '../../src/http/send-request.ts';
import { listen } from '../support/listen.ts';

describe('readStart', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  async function answerOf(listener: RequestListener, signal = AbortSignal.timeout(15_000)): Promise<IncomingMessage> {
    server = createServer(listener);
    const url = `http://127.0.0.1:${await listen(server)}`;
    return sendRequest(new URL(url), { signal });
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

  it('rejects with the signal of the request that ended a body without a length', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const answer = await answerOf((_, response) => {
      response.useChunkedEncodingByDefault = false;
      response.write('o');
    }, signal);
    const begun = readStart(answer, 10, signal).catch(error => error);
    controller.abort();
    expect(await begun).to.have.property('name', 'AbortError');
  });

  it('rejects once the stream is destroyed', async () => {
    const stream = new PassThrough();
    stream.write('o');
    const begun = readStart(stream, 10);
    stream.destroy(new Error('stopped'));
    expect(await begun.catch(error => error)).to.have.property('message', 'stopped');
  });
});
