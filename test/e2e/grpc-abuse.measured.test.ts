// Attacks on the port of the service itself: floods, truncated messages, false lengths. The built product is
// attacked over connections with hand-made frames, while another client makes good calls.
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { residentMegabytes } from '../../bench/measure/resident-memory.ts';
import { authorizationService } from '../../src/envoy/proto-files.ts';
import type { CheckRequestMessage, CheckResponseMessage } from '../../src/envoy/protocol.ts';
import { checkRequest } from '../support/check-request.ts';
import { type Http2Connection, openHttp2Connection, type ReceivedFrame } from '../support/http2-connection.ts';
import { invariants } from '../support/invariants.ts';
import { keptMegabytesOf, memoryNodeOptions } from '../support/kept-memory.ts';
import { type HeaderField, type Http2Answer, http2Exchange } from '../support/raw-http.ts';
import { flagEndHeaders, flagEndStream, frame, frameType, headerBlock } from '../support/raw-http2.ts';
import { connect, type GrpcClient } from '../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts';
import { signingKey } from '../support/signing-key.ts';
import { startTestIssuer, type TestIssuer } from '../support/test-issuer.ts';
import { token } from '../support/token.ts';
import { bearer, configuration } from './lab.ts';

const checkPath = '/envoy.service.auth.v3.Authorization/Check';
const requestFields: readonly HeaderField[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', checkPath],
  [':authority', 'authz.test'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
];
const requestBlock = headerBlock(requestFields);
const cancelCode = 8;
const none = Buffer.alloc(0);

/** Repetitions of each attack: in the long form, `npm run abuse`, its remains must not add up. */
const rounds = Number(process.env.ABUSE_ROUNDS ?? 1);

/** A burst of garbage explains at most this growth above the start. */
const maxGrowthMegabytes = 120;
/** What may remain after an attack: caches of the library and of V8, nothing per frame or stream. */
const maxKeptMegabytes = 4;
/**
 * How long it may remain. Node 20 does not notice when nghttp2 has given up a connection for a bad frame, so the server's keepalive
 * ends it, after 60 and 20 seconds; one round stays below the bound, many do not.
 */
const maxKeptSeconds = rounds === 1 ? 5 : 100;

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The five-byte prefix of a message (the gRPC protocol over HTTP/2), with any claim. */
function prefix(length: number, compressed = 0): Buffer {
  return Buffer.concat([Buffer.of(compressed), uint32(length)]);
}

function enveloped(message: Buffer, compressed = 0): Buffer {
  return Buffer.concat([prefix(message.length, compressed), message]);
}

/** HEADERS of a call on each of these streams, which stay open. */
function opened(streams: readonly number[]): Buffer[] {
  return streams.map(stream => frame(frameType.headers, flagEndHeaders, stream, requestBlock));
}

/** `count` client stream ids, from this index on. */
function streamNumbers(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => 1 + 2 * (from + i));
}

function repeated(count: number, bytes: Buffer): Buffer {
  return Buffer.concat(new Array<Buffer>(count).fill(bytes));
}

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

/** A length-delimited field with any field number. */
function field(number: number, ...parts: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(parts);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}

/** Field 11 of AttributeContext, `metadata_context`: google.protobuf.Structs nested to this depth. */
function deepMetadata(levels: number): Buffer {
  let struct: Buffer = none;
  for (let i = 0; i < levels; i += 1) struct = field(1, field(1, Buffer.from('a')), field(2, field(5, struct)));
  return field(1, field(11, field(1, field(1, Buffer.from('ns')), field(2, struct))));
}

function isFrame(type: number): (received: ReceivedFrame) => boolean {
  return received => received.type === type;
}

describe('abuse of gRPC', function () {
  this.timeout(60_000 * rounds);
  let issuer: TestIssuer;
  let service: ServiceProcess;
  let client: GrpcClient;
  let good: CheckRequestMessage;
  let goodBytes: Buffer;
  let port: number;
  let keptMegabytes: () => Promise<number>;

  before(async () => {
    issuer = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk] });
    const keys = { cooldownSeconds: 1 };
    const nodeOptions = await memoryNodeOptions();
    service = await startServiceProcess({ ...configuration(issuer.jwksUrl), keys }, { nodeOptions });
    keptMegabytes = keptMegabytesOf(service);
    port = Number(service.address.slice(service.address.lastIndexOf(':') + 1));
    client = connect(service.address);
    good = request(await bearer());
    goodBytes = serialized(good);
    for (let i = 0; i < 200; i += 1) await expectGood();
  });
  after(async () => {
    client.close();
    await service.kill();
    await issuer.stop();
  });

  function request(authorization: string): CheckRequestMessage {
    return checkRequest({ raw: true, path: '/api/subscriptions/accounts/acct1/items', headers: { authorization } });
  }

  function serialized(message: CheckRequestMessage): Buffer {
    return Buffer.from(authorizationService.Check.requestSerialize(message));
  }

  async function expectGood(): Promise<void> {
    const answer = await client.check(good, 20_000);
    expect(answer.status.code).to.equal(status.OK);
    expect(answer.ok_response?.headers.map(({ header }) => header.value)).to.include('acct1');
  }

  async function inRounds<Result>(attack: () => Promise<Result>): Promise<Result> {
    for (let round = 1; round < rounds; round += 1) await attack();
    return attack();
  }

  /** Runs an attack beside good calls, and asserts that the service is unharmed. */
  async function underAttack<Result>(attack: () => Promise<Result>): Promise<Result> {
    const keptBefore = await keptMegabytes();
    const residentBefore = residentMegabytes(service.pid) ?? 0;
    let isOver = false;
    let peak = residentBefore;
    const goodCalls = async (): Promise<void> => {
      while (!isOver) {
        await expectGood();
        peak = Math.max(peak, residentMegabytes(service.pid) ?? 0);
        await delay(2);
      }
    };
    const attacked = inRounds(attack).finally(() => {
      isOver = true;
    });
    const [result] = await Promise.all([attacked, goodCalls()]);
    await expectGood();
    expect(peak - residentBefore, 'resident memory at its peak').to.be.below(maxGrowthMegabytes);
    let kept = await keptMegabytes();
    // A closed connection, and buffers that V8 sweeps on another thread, may be counted for a moment longer.
    for (let i = 0; i < maxKeptSeconds * 10 && kept - keptBefore >= maxKeptMegabytes; i += 1) {
      await delay(100);
      kept = await keptMegabytes();
    }
    expect(kept - keptBefore, 'memory that is kept').to.be.below(maxKeptMegabytes);
    expect(service.errorLog()).to.equal('');
    expect(service.log().filter(({ level }) => level === 'error' || level === 'fatal')).to.deep.equal([]);
    return result;
  }

  /** On a new connection, which is closed afterwards. */
  async function onConnection<Result>(
    act: (connection: Http2Connection) => Promise<Result>,
    options: Parameters<typeof openHttp2Connection>[1] = {},
  ): Promise<Result> {
    const connection = await openHttp2Connection(port, options);
    try {
      return await act(connection);
    } finally {
      connection.destroy();
      await connection.closed;
    }
  }

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
    const rst = (stream: number): Buffer => frame(frameType.rstStream, 0, stream, uint32(cancelCode));

    it('G-013 ends a connection that opens and resets 20,000 streams', async () => {
      await underAttack(() =>
        onConnection(async connection => {
          await flood(connection, 40, i =>
            Buffer.concat(streamNumbers(i * 500, 500).flatMap(each => [...opened([each]), rst(each)])),
          );
          await expectEnded(connection);
        }),
      );
    });

    it('G-013 ends a connection that resets 20,000 calls after their message', async () => {
      await underAttack(() =>
        onConnection(async connection => {
          const data = (stream: number): Buffer => frame(frameType.data, flagEndStream, stream, enveloped(goodBytes));
          await flood(connection, 200, i =>
            Buffer.concat(streamNumbers(i * 100, 100).flatMap(each => [...opened([each]), data(each), rst(each)])),
          );
          await expectEnded(connection);
        }),
      );
    });

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

    it('serves others beside 5,000 open streams on five connections', async () => {
      await underAttack(async () => {
        const connections = await Promise.all(Array.from({ length: 5 }, () => openHttp2Connection(port)));
        for (const connection of connections) {
          await connection.write(...opened(streamNumbers(0, 1000)));
          await expectGood();
        }
        expect(connections.filter(({ isOpen }) => isOpen)).to.have.lengthOf(5);
        for (const connection of connections) connection.destroy();
        await Promise.all(connections.map(({ closed }) => closed));
      });
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

    it('keeps little memory for a client with 5,000 calls and no window for the answers', async () => {
      const noWindow = Buffer.concat([Buffer.of(0, 4), uint32(0)]);
      await underAttack(() =>
        onConnection(
          async connection => {
            connection.stopReading();
            await flood(connection, 500, i =>
              Buffer.concat(
                streamNumbers(i * 10, 10).flatMap(each => [
                  ...opened([each]),
                  frame(frameType.data, flagEndStream, each, enveloped(goodBytes)),
                ]),
              ),
            );
            await expectGood();
          },
          { settings: noWindow },
        ),
      );
    });

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
          for (const byte of enveloped(goodBytes)) {
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
        const idle = await Promise.all(Array.from({ length: 500 }, () => openHttp2Connection(port, { silent: true })));
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

    it('serves others beside 1,000 calls that withhold the end of their message', async () => {
      await underAttack(() =>
        onConnection(async connection => {
          const part = Buffer.concat([prefix(256 * 1024), Buffer.alloc(16_000)]);
          await flood(connection, 1000, i =>
            Buffer.concat([...opened([1 + 2 * i]), frame(frameType.data, 0, 1 + 2 * i, part)]),
          );
          await expectGood();
        }),
      );
    });
  });

  describe('calls that end early', () => {
    // An unknown kid makes the service fetch from a slow issuer: such a call waits in the middle of its check.
    // Within the cooldown there is no fetch, so calls are sent until it is over.
    const maxRounds = 200;
    let unknownKeys = 0;
    let otherKeys = 0;

    async function callOfUnknownKey(): Promise<Buffer> {
      unknownKeys += 1;
      const key = { ...(await signingKey('k1')), kid: `unknown-${unknownKeys}` };
      const seconds = Math.floor(Date.now() / 1000);
      const text = await token({ key, claims: { iat: seconds - 10, exp: seconds + 600 } });
      return enveloped(serialized(request(`Bearer ${text}`)));
    }

    /** So that each refresh brings a changed set: one that brings nothing new delays the next one by more than the cooldown. */
    async function publishAnotherKey(): Promise<void> {
      const { publicJwk } = await signingKey('k1');
      otherKeys += 1;
      issuer.publish([publicJwk, { ...publicJwk, kid: `other-${otherKeys}` }]);
    }

    beforeEach(() => issuer.fault({ kind: 'slow', delayMs: 500 }));
    afterEach(() => issuer.healthy());

    it('G-021 keeps serving when callers cancel in the middle of a check', async () => {
      const message = await callOfUnknownKey();
      await underAttack(async () => {
        await publishAnotherKey();
        const asked = issuer.requests().length;
        for (let round = 0; issuer.requests().length === asked && round < maxRounds; round += 1) {
          await onConnection(async connection => {
            const streams = streamNumbers(0, 50);
            await connection.write(
              ...streams.flatMap(each => [...opened([each]), frame(frameType.data, flagEndStream, each, message)]),
            );
            await delay(50);
            await connection.write(...streams.map(each => frame(frameType.rstStream, 0, each, uint32(cancelCode))));
            await delay(50);
          });
        }
        expect(issuer.requests().length).to.be.above(asked);
      });
    });

    it('G-022 answers DEADLINE_EXCEEDED to callers with a deadline of 1 ms, and allows none of them', async () => {
      const message = await callOfUnknownKey();
      const answers = await underAttack(async () => {
        await publishAnotherKey();
        const all: Http2Answer[] = [];
        for (let round = 0; !all.some(hasExpired) && round < maxRounds; round += 1) {
          all.push(...(await Promise.all(Array.from({ length: 10 }, () => call(message, { 'grpc-timeout': '1m' })))));
        }
        return all;
      });
      expect(answers.some(hasExpired)).to.equal(true);
      const allowed = answers.filter(each => !hasExpired(each) && toAnswer(each.bodyBytes).status.code === status.OK);
      expect(allowed).to.deep.equal([]);
    });

    function hasExpired(answer: Http2Answer): boolean {
      return rpcStatus(answer) === status.DEADLINE_EXCEEDED;
    }
  });

  async function call(body: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Http2Answer> {
    const fields = { ...Object.fromEntries(requestFields), ...headers };
    return http2Exchange(port, { headers: fields, body });
  }

  function rpcStatus({ headers, trailers }: Http2Answer): number {
    return Number([...headers, ...trailers].find(([name]) => name === 'grpc-status')?.[1] ?? Number.NaN);
  }

  function toAnswer(body: Buffer): CheckResponseMessage {
    const answer = authorizationService.Check.responseDeserialize(body.subarray(5));
    invariants.hold(answer);
    return answer;
  }

  describe('messages', () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    const gzip = { 'grpc-encoding': 'gzip' };
    const rows: readonly (readonly [
      name: string,
      body: () => Buffer,
      code: number,
      headers?: Readonly<Record<string, string>>,
    ])[] = [
      ['G-007 no message', () => none, status.UNIMPLEMENTED],
      ['G-007 two messages', () => repeated(2, enveloped(goodBytes)), status.UNIMPLEMENTED],
      ['G-007 a hundred messages', () => repeated(100, enveloped(goodBytes)), status.UNIMPLEMENTED],
      ['G-007 a truncated message', () => enveloped(goodBytes).subarray(0, -1), status.UNIMPLEMENTED],
      ['G-007 half of the length', () => Buffer.of(0, 0), status.UNIMPLEMENTED],
      ['G-009 a message of 5 MB', () => enveloped(Buffer.alloc(5_000_000)), status.RESOURCE_EXHAUSTED],
      ['G-009 a length of 4 GB', () => prefix(0xffffffff), status.RESOURCE_EXHAUSTED],
      ['G-010 a gzip bomb of 50 MB', () => enveloped(bomb, 1), status.RESOURCE_EXHAUSTED, gzip],
      ['G-011 an unknown encoding', () => enveloped(goodBytes, 1), status.UNIMPLEMENTED, { 'grpc-encoding': 'br' }],
      ['G-011 gzip that is none', () => enveloped(goodBytes, 1), status.INTERNAL, gzip],
      ['G-011 gzip cut off', () => enveloped(gzipSync(goodBytes).subarray(0, -9), 1), status.INTERNAL, gzip],
      ['G-031 a field of another type', () => enveloped(Buffer.of(0x0a, 0x02, 0x22, 0x7f)), status.INTERNAL],
      ['G-031 bytes that are no message', () => enveloped(Buffer.alloc(1000, 0xff)), status.INTERNAL],
      ['groups 100,000 deep', () => enveloped(Buffer.alloc(100_000, 0x0b)), status.INTERNAL],
    ];
    for (const [name, body, code, headers] of rows) {
      it(`${name}: the call ends with ${code} (${status[code]}) and without an answer`, async () => {
        const answer = await underAttack(() => call(body(), headers));
        expect(rpcStatus(answer)).to.equal(code);
        expect(answer.bodyBytes).to.have.lengthOf(0);
      });
    }

    it('G-011 refuses a message with the compressed flag and no grpc-encoding', async () => {
      const answer = await underAttack(() => call(enveloped(gzipSync(goodBytes), 1)));
      expect(rpcStatus(answer)).to.not.equal(status.OK);
      expect(answer.bodyBytes).to.have.lengthOf(0);
    });

    it('G-011 accepts a good message in gzip', async () => {
      const answer = await underAttack(() => call(enveloped(gzipSync(goodBytes), 1), gzip));
      expect(toAnswer(answer.bodyBytes).status.code).to.equal(status.OK);
    });

    const grpcTimeouts = ['99999999H', '0n', '-1m', '1x', '', '1'.repeat(1000), 'm'];
    for (const timeout of grpcTimeouts) {
      it(`survives a grpc-timeout of "${timeout.slice(0, 10)}"`, async () => {
        const answer = await underAttack(() => call(enveloped(goodBytes), { 'grpc-timeout': timeout }));
        expect(answer.status).to.equal(200);
      });
    }

    it('G-002 refuses another content type with 415', async () => {
      const answer = await underAttack(() => call(enveloped(goodBytes), { 'content-type': 'application/json' }));
      expect(answer.status).to.equal(415);
    });

    it('G-003 refuses GET', async () => {
      const answer = await underAttack(() => call(none, { ':method': 'GET' }));
      expect(rpcStatus(answer)).to.not.equal(status.OK);
      expect(answer.bodyBytes).to.have.lengthOf(0);
    });

    it('keeps serving after 300 connections with noise after the preface', async () => {
      await underAttack(async () => {
        let seed = 1;
        const noise = (length: number): Buffer =>
          Buffer.from(
            Array.from({ length }, () => {
              seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
              return seed >>> 24;
            }),
          );
        for (let i = 0; i < 300; i += 1) {
          await onConnection(connection =>
            connection.write(frame(i % 12, noise(1).readUInt8(), i % 4, noise(i)), noise(50)),
          );
        }
      });
    });
  });

  describe('contents', () => {
    async function decisionOn(message: Buffer): Promise<CheckResponseMessage> {
      const answer = await underAttack(() => call(enveloped(message)));
      expect(rpcStatus(answer)).to.equal(status.OK);
      return toAnswer(answer.bodyBytes);
    }

    it('allows a good request whose metadata are Structs 10,000 deep, which it does not read', async () => {
      const { status: decided } = await decisionOn(Buffer.concat([goodBytes, deepMetadata(10_000)]));
      expect(decided.code).to.equal(status.OK);
    });

    it('refuses a request of only Structs 10,000 deep', async () => {
      const { denied_response } = await decisionOn(deepMetadata(10_000));
      expect(denied_response?.status.code).to.equal(400);
    });

    for (const name of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']) {
      it(`G-029 treats the map key ${name} as a plain name, in every map`, async () => {
        const entry = (value: Buffer): Buffer => Buffer.concat([field(1, Buffer.from(name)), field(2, value)]);
        const header = entry(Buffer.from('{"polluted":1}'));
        const message = Buffer.concat([
          goodBytes,
          field(1, field(4, field(2, field(3, header)))),
          field(1, field(10, header)),
          field(1, field(11, field(1, entry(field(1, entry(field(3, Buffer.from('x')))))))),
        ]);
        const { status: decided } = await decisionOn(message);
        expect(decided.code).to.equal(status.OK);
      });
    }

    it('G-030 refuses a path with an overlong UTF-8 slash', async () => {
      const path = Buffer.from('/api/subscriptions/accounts/acct1\xc0\xafitems', 'latin1');
      const http = Buffer.concat([field(2, Buffer.from('GET')), field(4, path)]);
      const { denied_response } = await decisionOn(field(1, field(4, field(2, http))));
      expect(denied_response?.status.code).to.equal(400);
    });

    it('G-031 ignores fields that it does not know', async () => {
      const unknown = field(1, field(4, field(2, field(1000, Buffer.from('x')))), field(99, Buffer.alloc(100)));
      const { status: decided } = await decisionOn(Buffer.concat([goodBytes, unknown, field(77, Buffer.from('y'))]));
      expect(decided.code).to.equal(status.OK);
    });
  });
});
