// Attacks on the port of the service itself: floods and slowness over connections with hand-made frames, while another client makes
// good calls to the built product.
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import {
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
  useAbuseLab,
} from './abuse-lab.ts';

const none = Buffer.alloc(0);

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

    it('refuses more than 128 streams on a connection and closes it at 5,000', async () => {
      await underAttack(() =>
        onConnection(async connection => {
          await flood(connection, 10, i => Buffer.concat(opened(streamNumbers(i * 500, 500))));
          await expectEnded(connection);
        }),
      );
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

    // Of 1,000 each, as these clients want, it grew by 777 MB.
    it('G-018 keeps 128 incomplete messages of a connection, and no more', async () => {
      const [size, short] = [256 * 1024, 5];
      await underAttack(async () => {
        const sessions = await Promise.all(
          Array.from({ length: 3 }, async () => {
            const session = connectHttp2(`http://127.0.0.1:${suite.port}`).on('error', () => undefined);
            await once(session, 'remoteSettings');
            return session;
          }),
        );
        const message = Buffer.concat([prefix(size), Buffer.alloc(size - short)]);
        const written = sessions.flatMap(session =>
          Array.from({ length: 1000 }, () => {
            const stream = session.request(Object.fromEntries(requestFields), { endStream: false });
            stream.on('error', () => undefined);
            return new Promise(resolve => stream.write(message, resolve));
          }),
        );
        await Promise.all(sessions.flatMap((_, i) => written.slice(i * 1000, i * 1000 + 128)));
        await expectGood();
        for (const session of sessions) session.destroy();
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
