// One request without redirects, over HTTP and TLS, and how much of its answer is read.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createRawServer } from 'node:net';
import { createSecureContext } from 'node:tls';
import { expect } from 'chai';
import { testCertificate } from '../../lab/test-certificate.ts';
import { readStart, sendRequest } from '../../src/http/send-request.ts';
import { listen } from '../support/listen.ts';

describe('sendRequest', () => {
  const certificate = testCertificate();
  const requests: IncomingMessage[] = [];
  let server: Server | undefined;

  afterEach(() => {
    requests.length = 0;
    server?.closeAllConnections();
    server?.close();
  });

  async function serve(answer: RequestListener, scheme = 'http'): Promise<URL> {
    const listener: RequestListener = (request, response) => {
      requests.push(request);
      answer(request, response);
    };
    server = scheme === 'http' ? createServer(listener) : createTlsServer(certificate, listener);
    return new URL(`${scheme}://127.0.0.1:${await listen(server)}/a?b=c`);
  }
  const signal = (): AbortSignal => AbortSignal.timeout(15_000);
  const ok: RequestListener = (_, response) => response.end('ok');
  const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : error);

  it('asks for the path and the query of the URL, and follows no redirect', async () => {
    const url = await serve((_, response) => response.writeHead(302, { location: '/elsewhere' }).end());
    expect((await sendRequest(url, { signal: signal() })).statusCode).to.equal(302);
    expect(requests.map(each => each.url)).to.deep.equal(['/a?b=c']);
  });

  it('rejects with the error of Node if nobody answers', async () => {
    const url = await serve(ok);
    server?.close();
    expect(codeOf(await sendRequest(url, { signal: signal() }).catch(error => error))).to.equal('ECONNREFUSED');
  });

  for (const headers of ['Connection: upgrade\r\nUpgrade: websocket\r\n', '']) {
    it(`rejects an answer 101${headers === '' ? ' that names no protocol' : ''}`, async () => {
      const raw = createRawServer(socket => socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\n`));
      const url = new URL(`http://127.0.0.1:${await listen(raw)}/`);
      const outcome = await sendRequest(url, { signal: signal() }).then(({ statusCode }) => statusCode, codeOf);
      raw.close();
      expect(outcome).to.equal('status 101');
    });
  }

  it('rejects a path that cannot be sent', async () => {
    const sent = sendRequest(await serve(ok), { signal: signal(), path: '/a b' });
    expect(codeOf(await sent.catch(error => error))).to.equal('ERR_UNESCAPED_CHARACTERS');
  });

  it('trusts the given authorities, and compares the certificate with the URL whatever the Host header is', async () => {
    const url = await serve(ok, 'https');
    const headers = { host: 'api.example.com' };
    const answer = await sendRequest(url, {
      signal: signal(),
      secureContext: createSecureContext({ ca: certificate.cert }),
      headers,
    });
    expect((await readStart(answer, 10)).toString()).to.equal('ok');
    expect(requests[0]?.headers.host).to.equal('api.example.com');
  });

  it('refuses another certificate, also with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
    const url = await serve(ok, 'https');
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const sent = sendRequest(url, { signal: signal() });
      expect(codeOf(await sent.catch(error => error))).to.equal('DEPTH_ZERO_SELF_SIGNED_CERT');
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  });
});
