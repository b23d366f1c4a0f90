// One fetch over HTTP: what it asks, what it accepts, how it fails.
import { createServer } from 'node:net';
import { brotliCompressSync, deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { gzipped, type IssuerFault } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import { fetchDocument } from '../../src/http/fetch.ts';
import { listen } from '../support/listen.ts';
import { get, textOf, useFetchLab } from './fetch-lab.ts';

const text = '{"keys":[]}';
const maxBytes = 512 * 1024;

describe('fetchDocument', () => {
  const { ends, issuerWith } = useFetchLab();

  it('K-001 returns the body, and asks for JSON without compression', async () => {
    const issuer = await issuerWith();
    expect(textOf(await get(issuer.jwksUrl))).to.contain('"kid":"k1"');
    const { headers } = issuer.requests('jwks')[0] ?? {};
    expect(headers).to.include({ 'accept-encoding': 'identity', 'user-agent': 'account-authz', connection: 'close' });
    expect(headers).to.include({ accept: 'application/json, application/jwk-set+json' });
    expect(headers).to.not.have.any.keys('authorization', 'if-none-match');
  });

  const faults: readonly (readonly [string, IssuerFault, string])[] = [
    ['a connection closed before the response', { kind: 'reset' }, 'connection closed'],
    ['an endless body', { kind: 'huge' }, 'body too large'],
    ['a content-length beyond the bound', { kind: 'huge', declared: true }, 'body too large'],
    ['K-013 a gzip bomb', { kind: 'gzipBomb' }, 'body too large'],
    [
      'K-013 a compressed body beyond the bound that decodes to nothing',
      { kind: 'respond', headers: { 'content-encoding': 'gzip' }, body: Buffer.concat(Array(30000).fill(gzipped(''))) },
      'body too large',
    ],
    [
      'K-013 a doubly compressed body',
      { kind: 'respond', headers: { 'content-encoding': 'gzip, gzip' }, body: gzipped(text, 2) },
      'content encoding',
    ],
    ['an unknown encoding', { kind: 'respond', headers: { 'content-encoding': 'zstd' } }, 'content encoding'],
    ['invalid gzip', { kind: 'respond', headers: { 'content-encoding': 'gzip' } }, 'content encoding'],
    ['bad brotli', { kind: 'respond', headers: { 'content-encoding': 'br' }, body: '\xff\xff' }, 'content encoding'],
    ['K-015 a redirect', { kind: 'redirect', location: 'http://169.254.169.254/' }, 'redirect refused'],
    ['K-015 a permanent redirect', { kind: 'redirect', location: '/elsewhere', status: 308 }, 'redirect refused'],
    ['K-017 status 404', { kind: 'respond', status: 404 }, 'status 404'],
    ['K-017 status 500', { kind: 'respond', status: 500 }, 'status 500'],
    ['K-017 status 204', { kind: 'respond', status: 204, body: '' }, 'status 204'],
    ['K-017 status 206', { kind: 'respond', status: 206 }, 'status 206'],
    ['an unrequested status 304', { kind: 'respond', status: 304, body: '' }, 'status 304'],
    ['a truncated body', { kind: 'cutOff' }, 'connection closed'],
    ['a header of 100,000 bytes', { kind: 'respond', headers: { 'x-long': 'x'.repeat(100_000) } }, 'headers too large'],
  ];
  for (const [name, fault, problem] of faults) {
    it(`${name} fails with "${problem}"`, async () => {
      const issuer = await issuerWith();
      issuer.fault(fault);
      expect(await get(issuer.jwksUrl)).to.deep.equal({ kind: 'problem', problem });
      expect(issuer.requests()).to.have.length(1);
    });
  }

  const upgraded = 'HTTP/1.1 101 Switching Protocols\r\n';
  const early = 'HTTP/1.1 103 Early Hints\r\n';
  const good = 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"keys":[]}';
  for (const [name, answer, result, proxied = result] of [
    ['another protocol', 'SSH-2.0-OpenSSH\r\n', 'not HTTP'],
    ['an upgrade', `${upgraded}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n`, 'status 101 Switching Protocols'],
    ['an upgrade to nothing', `${upgraded}\r\n`, 'status 101 Switching Protocols'],
    ['an interim answer alone', `${early}\r\n`, 'connection closed', 'status 103'],
    ['interim answers before the answer', `${early}\r\n${early}\r\n${good}`, text, 'status 103'],
    ['an answer before the request', good, text, 'connection closed'],
  ] as const) {
    it(`${name} gives "${result}", and from a proxy "${proxied}"`, async () => {
      const server = createServer(socket => socket.on('error', () => undefined).end(answer));
      ends.push(() => server.close());
      const url = `http://127.0.0.1:${await listen(server)}/`;
      expect(textOf(await get(url))).to.equal(result);
      expect(textOf(await get('https://issuer.test/', { proxy: { httpsProxy: url } }))).to.contain(proxied);
    });
  }

  for (const [encoding, body] of [
    ['gzip', gzipped(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
    ['identity', text],
  ] as const) {
    it(`accepts a body in ${encoding}`, async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'respond', headers: { 'content-encoding': encoding }, body });
      expect(textOf(await get(issuer.jwksUrl))).to.equal(text);
    });
  }

  it('K-013 accepts a body of 512 KiB and not of a byte more', async () => {
    const issuer = await issuerWith();
    issuer.fault({ kind: 'huge', bytes: maxBytes });
    expect(textOf(await get(issuer.jwksUrl))).to.have.length(maxBytes);
    issuer.fault({ kind: 'huge', bytes: maxBytes + 1 });
    expect(textOf(await get(issuer.jwksUrl))).to.equal('body too large');
  });

  it('accepts any content type, and names it without its parameters', async () => {
    const issuer = await issuerWith();
    issuer.fault({ kind: 'respond', headers: { 'content-type': 'text/plain; charset=utf-8' } });
    expect(await get(issuer.jwksUrl)).to.include({ kind: 'document', mediaType: 'text/plain' });
  });

  it('returns the ETag, with which the document is not modified', async () => {
    const issuer = await issuerWith();
    const first = await get(issuer.jwksUrl);
    if (first.kind !== 'document') throw new Error(textOf(first));
    expect(await get(issuer.jwksUrl, { validator: first.validator })).to.deep.equal({ kind: 'notModified' });
    issuer.publish([]);
    expect(textOf(await get(issuer.jwksUrl, { validator: first.validator }))).to.equal('{"keys":[]}');
  });

  for (const etag of ['unquoted', `"${'x'.repeat(300)}"`]) {
    it(`ignores the invalid ETag ${etag.slice(0, 12)}`, async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'respond', headers: { etag } });
      expect(await get(issuer.jwksUrl)).to.include({ kind: 'document', validator: undefined });
    });
  }

  it('K-054 closes its connection on abort, and after each answer', async () => {
    const issuer = await issuerWith();
    await get(issuer.jwksUrl);
    await until(() => issuer.connections() === 0);
    issuer.fault({ kind: 'hang' });
    const controller = new AbortController();
    const fetching = fetchDocument({ url: issuer.jwksUrl, proxy: {} }, controller.signal);
    await until(() => issuer.requests().length === 2);
    controller.abort();
    expect(await fetching).to.have.property('kind', 'problem');
    await until(() => issuer.connections() === 0);
  });

  it('does not connect once it is aborted', async () => {
    const issuer = await issuerWith();
    const fetched = await fetchDocument({ url: issuer.jwksUrl, proxy: {} }, AbortSignal.abort());
    expect(fetched).to.have.property('kind', 'problem');
    expect(issuer.requests()).to.have.length(0);
  });
});
