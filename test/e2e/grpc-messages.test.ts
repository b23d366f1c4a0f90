// Messages to the gRPC port that no client library would send: framing, compression, bounds.
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { type Http2Answer, http2Exchange } from '../../lab/raw-http.ts';
import { enveloped, prefix, repeated, requestFields, toAnswer, useAbuseLab } from './abuse-lab.ts';

const none = Buffer.alloc(0);

describe('messages to the gRPC port', () => {
  const suite = useAbuseLab({ isOneAttack: true });

  async function call(body: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Http2Answer> {
    const fields = { ...Object.fromEntries(requestFields), ...headers };
    return http2Exchange(suite.port, { headers: fields, body });
  }

  function rpcStatus({ headers, trailers }: Http2Answer): number {
    return Number([...headers, ...trailers].find(([name]) => name === 'grpc-status')?.[1] ?? Number.NaN);
  }

  describe('messages', () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    const gzip = { 'grpc-encoding': 'gzip' };
    const br = { 'grpc-encoding': 'br' };
    const rows: readonly (readonly [
      name: string,
      body: () => Buffer,
      code: number,
      headers?: Readonly<Record<string, string>>,
    ])[] = [
      ['G-007 no message', () => none, status.UNIMPLEMENTED],
      ['G-007 two messages', () => repeated(2, enveloped(suite.goodBytes)), status.UNIMPLEMENTED],
      ['G-007 a hundred messages', () => repeated(100, enveloped(suite.goodBytes)), status.UNIMPLEMENTED],
      ['G-007 a truncated message', () => enveloped(suite.goodBytes).subarray(0, -1), status.UNIMPLEMENTED],
      ['G-007 half of the length', () => Buffer.of(0, 0), status.UNIMPLEMENTED],
      ['G-009 a message of 300 kB', () => enveloped(Buffer.alloc(300_000)), status.RESOURCE_EXHAUSTED],
      ['G-009 a message of 5 MB', () => enveloped(Buffer.alloc(5_000_000)), status.RESOURCE_EXHAUSTED],
      ['G-009 a length of 4 GB', () => prefix(0xffffffff), status.RESOURCE_EXHAUSTED],
      ['G-008 G-010 a gzip bomb of 50 MB', () => enveloped(bomb, 1), status.RESOURCE_EXHAUSTED, gzip],
      ['G-011 an unknown encoding', () => enveloped(suite.goodBytes, 1), status.UNIMPLEMENTED, br],
      ['G-011 gzip that is none', () => enveloped(suite.goodBytes, 1), status.INTERNAL, gzip],
      ['G-011 gzip cut off', () => enveloped(gzipSync(suite.goodBytes).subarray(0, -9), 1), status.INTERNAL, gzip],
      ['G-031 a field of another type', () => enveloped(Buffer.of(0x0a, 0x02, 0x22, 0x7f)), status.INTERNAL],
      ['G-031 bytes that are no message', () => enveloped(Buffer.alloc(1000, 0xff)), status.INTERNAL],
      ['groups 100,000 deep', () => enveloped(Buffer.alloc(100_000, 0x0b)), status.INTERNAL],
    ];
    for (const [name, body, code, headers] of rows) {
      it(`${name}: the call ends with ${code} (${status[code]}) and without an answer`, async () => {
        const answer = await call(body(), headers);
        expect(rpcStatus(answer)).to.equal(code);
        expect(answer.bodyBytes).to.have.lengthOf(0);
      });
    }

    it('G-011 refuses a message with the compressed flag and no grpc-encoding', async () => {
      const answer = await call(enveloped(gzipSync(suite.goodBytes), 1));
      expect(rpcStatus(answer)).to.not.equal(status.OK);
      expect(answer.bodyBytes).to.have.lengthOf(0);
    });

    it('G-011 accepts a good message in gzip', async () => {
      const answer = await call(enveloped(gzipSync(suite.goodBytes), 1), gzip);
      expect(toAnswer(answer.bodyBytes).status.code).to.equal(status.OK);
    });

    for (const timeout of ['99999999H', '0n', '-1m', '', '1'.repeat(1000)]) {
      it(`survives a grpc-timeout of "${timeout.slice(0, 10)}"`, async () => {
        expect((await call(enveloped(suite.goodBytes), { 'grpc-timeout': timeout })).status).to.equal(200);
      });
    }

    it('G-002 G-003 refuses another content type and GET', async () => {
      const other = await call(enveloped(suite.goodBytes), { 'content-type': 'application/json' });
      expect(other.status).to.equal(415);
      const get = await call(none, { ':method': 'GET' });
      expect(rpcStatus(get)).to.not.equal(status.OK);
      expect(get.bodyBytes).to.have.lengthOf(0);
    });
  });
});
