// The upstream of the demo: echoes each request, over HTTP/1.1 and HTTP/2.
import { once } from 'node:events';
import { connect } from 'node:http2';
import { expect } from 'chai';
import { jsonOf, send } from '../../demo/http-client.ts';
import { startUpstream, type Upstream } from '../../demo/upstream.ts';

describe('the upstream of the demo', () => {
  let upstream: Upstream;

  beforeEach(async () => {
    upstream = await startUpstream();
  });

  afterEach(() => upstream.stop());

  it('echoes the method, path and header lines of an HTTP/1.1 request', async () => {
    const response = await send({
      origin: `http://127.0.0.1:${upstream.port}`,
      method: 'POST',
      target: '/api/subscriptions?page=2',
      headers: { 'X-Line': ['one', 'two'] },
      body: 'ignored',
    });
    expect(response.status).to.equal(200);
    expect(jsonOf(response)).to.deep.include({
      method: 'POST',
      path: '/api/subscriptions?page=2',
      httpVersion: '1.1',
    });
    expect(jsonOf(response).headers).to.deep.include.members([
      ['x-line', 'one'],
      ['x-line', 'two'],
    ]);
  });

  it('echoes an HTTP/2 request without TLS', async () => {
    const session = connect(`http://127.0.0.1:${upstream.port}`);
    const stream = session.request({ ':path': '/api/subscriptions', 'x-line': 'one' });
    const chunks: Buffer[] = [];
    stream.on('data', chunk => chunks.push(chunk));
    await once(stream, 'end');
    session.close();
    const seen = JSON.parse(Buffer.concat(chunks).toString());
    expect(seen).to.deep.include({ method: 'GET', path: '/api/subscriptions', httpVersion: '2.0' });
    expect(seen.headers).to.deep.include(['x-line', 'one']);
  });

  it('records every request', async () => {
    const origin = `http://127.0.0.1:${upstream.port}`;
    await send({ origin, target: '/first' });
    await send({ origin, target: '/second' });
    expect(upstream.requests.map(request => request.path)).to.deep.equal(['/first', '/second']);
  });
});
