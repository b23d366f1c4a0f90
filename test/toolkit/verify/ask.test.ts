// How long `verify` waits for an answer, and how much of it is read.
import { createServer, type RequestListener, type Server } from 'node:http';
import { expect } from 'chai';
import { ask } from '../../../src/toolkit/verify/ask.ts';
import { listen } from '../../support/listen.ts';

const planned = { kind: 'no token', name: 'GET /x', target: '/x', host: 'x', headers: [] } as const;

describe('ask', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  async function gateway(listener: RequestListener, timeoutMs?: number) {
    server = createServer(listener);
    const url = new URL(`http://127.0.0.1:${await listen(server)}`);
    return {
      url,
      token: { from: ['authorization'] as const },
      userAgent: 'test',
      ...(timeoutMs !== undefined && { timeoutMs }),
    };
  }
  const refusal = JSON.stringify({ type: 'urn:account-authz:token_missing', reason: 'token_missing' });
  const problemJson = { 'content-type': 'application/problem+json' };

  it('waits 5 seconds for an answer, and no longer', async function () {
    this.timeout(30_000);
    const answer = await ask(await gateway(() => undefined), planned);
    expect(answer).to.include({ kind: 'problem', problem: 'no answer within 5 s' });
  });

  for (const framing of ['in chunks', 'that ends with the connection']) {
    it(`counts the body of a refusal ${framing} to the time`, async () => {
      const silent: RequestListener = (_, response) => {
        response.useChunkedEncodingByDefault = framing === 'in chunks';
        response.writeHead(401, problemJson).write('{');
      };
      const answer = await ask(await gateway(silent, 200), planned);
      expect(answer).to.include({ kind: 'problem', problem: 'no answer within 0.2 s' });
    });
  }

  for (const [name, padding, reason] of [
    ['of exactly 64 KiB', 64 * 1024 - refusal.length, 'token_missing'],
    ['of one byte more', 64 * 1024 - refusal.length + 1, undefined],
  ] as const) {
    it(`${reason === undefined ? 'does not know' : 'knows'} a refusal ${name}`, async () => {
      const body = `${' '.repeat(padding)}${refusal}`;
      const answer = await ask(await gateway((_, response) => response.writeHead(401, problemJson).end(body)), planned);
      expect(answer).to.deep.equal({ kind: 'answer', status: 401, mediaType: 'application/problem+json', reason });
    });
  }

  it('does not wait for the end of an answer without an end', async () => {
    const endless: RequestListener = (_, response) => {
      response.writeHead(401, problemJson);
      const write = (): void => {
        while (response.write(' '.repeat(65_536)));
        response.once('drain', write);
      };
      write();
    };
    const answer = await ask(await gateway(endless), planned);
    const mediaType = 'application/problem+json';
    expect(answer).to.deep.equal({ kind: 'answer', status: 401, mediaType, reason: undefined });
  });
});
