// Attacks on the port of the service itself: floods and slowness over connections with hand-made frames, while another client makes
// good calls to the built product.
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import type { HeaderField } from '../../lab/raw-http.ts';
import {
  flagEndHeaders,
  flagEndStream,
  frame,
  frameType,
  type Http2Connection,
  headerBlock,
  openHttp2Connection,
  type ReceivedFrame,
} from '../support/raw-http2.ts';
import {
  enveloped,
  opened,
  prefix,
  repeated,
  requestBlock,
  requestFields,
  reset,
  rounds,
  streamNumbers,
  toAnswer,
  uint32,
  useAbuseLab,
} from './abuse-lab.ts';

const none = Buffer.alloc(0);

/** A header block split into one HEADERS frame and CONTINUATION frames. */
function inFrames(block: Buffer): Buffer[] {
  const size = 16_384;
  const count = Math.ceil(block.length / size);
  return Array.from({ length: count }, (_, i) => {
    const flags = (i === 0 ? flagEndStream : 0) | (i === count - 1 ? flagEndHeaders : 0);
    const type = i === 0 ? frameType.headers : frameType.continuation;
    return frame(type, flags, 1, block.subarray(i * size, (i + 1) * size));
  });
}

function isFrame(type: number): (received: ReceivedFrame) => boolean {
  return received => received.type === type;
}

describe('abuse of gRPC', function () {
  this.timeout(60_000 * rounds);
  const suite = useAbuseLab();
  const { expectGood, underAttack, onConnection } = suite;

  /** Sends these bytes repeatedly until the server closes the connection or stops reading. */
  async function flood(connection: Http2Connection, times: number, bytes: (i: number) => Buffer): Promise<void> {
    for (let i = 0; i < times && connection.isOpen; i += 1) {
      const isWritten = await Promise.race([connection.write(bytes(i)).then(() => true), delay(1000, false)]);
      if (!isWritten) return;
    }
  }

  async function expectEnded(connection: Http2Connection): Promise<void> {
    const goaway = connection.frameOf(isFrame(frameType.goaway)).then(() => 'ended');
    expect(await Promise.race([goaway, delay(10_000, 'still served', { ref: false })])).to.equal('ended');
  }

  describe('floods', () => {
    for (const [name, perWrite, hasMessage] of [
      ['opens and resets 20,000 streams', 500, false],
      ['resets 20,000 calls after their message', 100, true],
    ] as const) {
      it(`G-013 ends a connection that ${name}`, async () => {
        const data = (stream: number): Buffer =>
          hasMessage ? frame(frameType.data, flagEndStream, stream, enveloped(suite.goodBytes)) : none;
        await underAttack(() =>
          onConnection(async connection => {
            await flood(connection, 20_000 / perWrite, i =>
              Buffer.concat(
                streamNumbers(i * perWrite, perWrite).flatMap(each => [...opened([each]), data(each), reset(each)]),
              ),
            );
            await expectEnded(connection);
          }),
        );
      });
    }

    const headerFloods: readonly (readonly [name: string, piece: Buffer, times: number])[] = [
      ['large fields', frame(frameType.continuation, 0, 1, headerBlock([['x-a', 'a'.repeat(16_000)]])), 3000],
      ['no fields', repeated(1000, frame(frameType.continuation, 0, 1, none)), 100],
      ['one field of one byte', repeated(1000, frame(frameType.continuation, 0, 1, headerBlock([['x', '']]))), 100],
    ];
    for (const [name, piece, times] of headerFloods) {
      it(`G-014 ends a connection whose headers never end: CONTINUATION with ${name}`, async () => {
        await underAttack(() =>
          onConnection(async connection => {
            await connection.write(frame(frameType.headers, 0, 1, requestBlock));
            await flood(connection, times, () => piece);
            await expectEnded(connection);
          }),
        );
      });
    }

    const longHeaders: readonly (readonly [name: string, fields: readonly HeaderField[]])[] = [
      ['20 fields of 10 KB', Array.from({ length: 20 }, (_, i) => [`x-${i}`, 'a'.repeat(10_000)])],
      ['one field of 200 KB', [['x-a', 'a'.repeat(200_000)]]],
      ['20,000 empty fields', new Array<HeaderField>(20_000).fill(['x', ''])],
    ];
    for (const [name, fields] of longHeaders) {
      it(`G-015 refuses request headers with ${name}`, async () => {
        await underAttack(() =>
          onConnection(async connection => {
            await connection.write(...inFrames(headerBlock([...requestFields, ...fields])));
            const refusal = await connection.frameOf(
              ({ type }) => type === frameType.rstStream || type === frameType.goaway,
            );
            const answers = connection.received.filter(isFrame(frameType.headers));
            expect(answers).to.deep.equal([]);
            expect(refusal === undefined).to.equal(!connection.isOpen);
          }),
        );
      });
    }

    it('refuses more than 1,000 streams on a connection and closes it at 5,000', async () => {
      await underAttack(() =>
        onConnection(async connection => {
          await flood(connection, 10, i => Buffer.concat(opened(streamNumbers(i * 500, 500))));
          await expectEnded(connection);
        }),
      );
    });

    const answered: readonly (readonly [name: string, bytes: Buffer])[] = [
      ['PING', frame(frameType.ping, 0, 0, Buffer.alloc(8))],
      ['SETTINGS', frame(frameType.settings, 0, 0, none)],
    ];
    for (const [name, bytes] of answered) {
      it(`ends a connection that sends ${name} without reading the answers`, async () => {
        await underAttack(() =>
          onConnection(async connection => {
            connection.stopReading();
            await flood(connection, 500, () => repeated(1000, bytes));
            connection.resumeReading();
            await expectEnded(connection);
          }),
        );
      });
    }

    it('G-019 ends connections whose window overflows, and frees the memory of 300 of them', async () => {
      const overflow = frame(frameType.windowUpdate, 0, 0, uint32(0x7fffffff));
      await underAttack(async () => {
        for (let i = 0; i < 300; i += 1) {
          await onConnection(async connection => {
            await connection.write(...opened([1]), overflow, overflow);
            await expectEnded(connection);
          });
        }
      });
    });
  });

  describe('slowness', () => {
    it('G-017 answers a call whose bytes come one at a time, and others meanwhile', async () => {
      await underAttack(() =>
        onConnection(async connection => {
          await connection.write(...opened([1]));
          for (const byte of enveloped(suite.goodBytes)) {
            await connection.write(frame(frameType.data, 0, 1, Buffer.of(byte)));
          }
          await connection.write(frame(frameType.data, flagEndStream, 1, none));
          const answer = await connection.frameOf(isFrame(frameType.data));
          expect(toAnswer(answer?.payload ?? none).status.code).to.equal(status.OK);
        }),
      );
    });

    it('G-017 serves others beside 500 connections that send nothing', async () => {
      await underAttack(async () => {
        const idle = await Promise.all(
          Array.from({ length: 500 }, () => openHttp2Connection(suite.port, { silent: true })),
        );
        await expectGood();
        for (const connection of idle) connection.destroy();
        await Promise.all(idle.map(({ closed }) => closed));
      });
    });

    it('G-018 takes a million DATA frames of one byte with bounded memory', async () => {
      const bytes = repeated(1000, frame(frameType.data, 0, 1, Buffer.of(0)));
      await underAttack(() =>
        onConnection(async connection => {
          await connection.write(...opened([1]), frame(frameType.data, 0, 1, prefix(256 * 1024)));
          await flood(connection, 1000, () => bytes);
          await expectGood();
        }),
      );
    });

    it('G-018 ends a connection that sends 100,000 empty DATA frames', async () => {
      await underAttack(() =>
        onConnection(async connection => {
          await connection.write(...opened([1]));
          await flood(connection, 100, () => repeated(1000, frame(frameType.data, 0, 1, none)));
          await expectEnded(connection);
        }),
      );
    });
  });
});
