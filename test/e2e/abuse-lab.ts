// What the tests of abuse share: the built product with bounded memory, hand-made calls to it, and what must hold after an attack.
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { invariants } from '../../lab/invariants.ts';
import { megabytes } from '../../lab/process-usage.ts';
import type { HeaderField } from '../../lab/raw-http.ts';
import { connect, type GrpcClient } from '../../lab/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import type { TestIssuer } from '../../lab/test-issuer.ts';
import { authorizationService, type CheckRequestMessage, type CheckResponseMessage } from '../../src/envoy/protocol.ts';
import { keptMegabytesOf, memoryNodeOptions } from '../support/kept-memory.ts';
import {
  flagEndHeaders,
  frame,
  frameType,
  type Http2Connection,
  headerBlock,
  openHttp2Connection,
} from '../support/raw-http2.ts';
import { bearer, configuration, startIssuer } from './lab.ts';

export const requestFields: readonly HeaderField[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/envoy.service.auth.v3.Authorization/Check'],
  [':authority', 'authz.test'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
];

export const requestBlock = headerBlock(requestFields);

/** Repetitions of each attack: in the long form, `npm run abuse`, its remains must not add up. */
export const rounds = Number(process.env.ABUSE_ROUNDS ?? 1);

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
export function prefix(length: number, compressed = 0): Buffer {
  return Buffer.concat([Buffer.of(compressed), uint32(length)]);
}

export function enveloped(message: Buffer, compressed = 0): Buffer {
  return Buffer.concat([prefix(message.length, compressed), message]);
}

export function repeated(count: number, bytes: Buffer): Buffer {
  return Buffer.concat(new Array<Buffer>(count).fill(bytes));
}

/** HEADERS of a call on each of these streams, which stay open. */
export function opened(streams: readonly number[]): Buffer[] {
  return streams.map(stream => frame(frameType.headers, flagEndHeaders, stream, requestBlock));
}

/** RST_STREAM with CANCEL. */
export function reset(stream: number): Buffer {
  return frame(frameType.rstStream, 0, stream, uint32(8));
}

/** `count` client stream ids, from this index on. */
export function streamNumbers(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => 1 + 2 * (from + i));
}

export function toAnswer(body: Buffer): CheckResponseMessage {
  const answer = authorizationService.Check.responseDeserialize(body.subarray(5));
  invariants.hold(answer);
  return answer;
}

export function requestOf(authorization: string): CheckRequestMessage {
  return checkRequest({ raw: true, path: '/api/subscriptions/accounts/acct1/items', headers: { authorization } });
}

export function serialized(message: CheckRequestMessage): Buffer {
  return Buffer.from(authorizationService.Check.requestSerialize(message));
}

/**
 * Starts the product before the tests of this suite, and stops it after them. With `isOneAttack`, the whole suite runs beside good calls, and
 * must leave the service unharmed.
 */
export function useAbuseLab({ isOneAttack = false } = {}) {
  let issuer: TestIssuer;
  let service: ServiceProcess;
  let client: GrpcClient;
  let good: CheckRequestMessage;
  let goodBytes: Buffer;
  let keptMegabytes: () => Promise<number>;
  let endAttack: (() => Promise<void>) | undefined;

  before(async () => {
    issuer = await startIssuer();
    const keys = { cooldownSeconds: 1 };
    const nodeOptions = await memoryNodeOptions();
    service = await startServiceProcess({ ...configuration(issuer.jwksUrl), keys }, { nodeOptions });
    keptMegabytes = keptMegabytesOf(service);
    client = connect(service.address);
    good = requestOf(await bearer());
    goodBytes = serialized(good);
    for (let i = 0; i < 200; i += 1) await expectGood();
    if (isOneAttack) endAttack = await beginAttack();
  });
  after(async () => {
    try {
      await endAttack?.();
    } finally {
      client.close();
      await service.kill();
      await issuer.stop();
    }
  });

  const portOf = (): number => Number(service.address.split(':').at(-1));

  async function expectGood(): Promise<void> {
    const answer = await client.check(good, 20_000);
    expect(answer.status.code).to.equal(status.OK);
    expect(answer.ok_response?.headers.map(({ header }) => header.value)).to.include('acct1');
  }

  /** Makes good calls until the returned function is called, which asserts that the service is unharmed. */
  async function beginAttack(): Promise<() => Promise<void>> {
    const keptBefore = await keptMegabytes();
    const residentBefore = megabytes(service.pid, 'VmRSS');
    let isOver = false;
    let peak = residentBefore;
    const goodCalls = async (): Promise<void> => {
      do {
        await expectGood();
        peak = Math.max(peak, megabytes(service.pid, 'VmRSS'));
        await delay(2);
      } while (!isOver);
    };
    const calling = goodCalls();
    calling.catch(() => undefined);
    return async () => {
      isOver = true;
      await calling;
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
    };
  }

  return {
    get issuer() {
      return issuer;
    },
    get port() {
      return portOf();
    },
    /** A request that is allowed. */
    get goodBytes() {
      return goodBytes;
    },
    expectGood,
    /** Runs an attack beside good calls, `rounds` times. */
    async underAttack<Result>(attack: () => Promise<Result>): Promise<Result> {
      const endAttack = await beginAttack();
      try {
        for (let round = 1; round < rounds; round += 1) await attack();
        return await attack();
      } finally {
        await endAttack();
      }
    },
    /** On a new connection, which is closed afterwards. */
    async onConnection<Result>(
      act: (connection: Http2Connection) => Promise<Result>,
      options: Parameters<typeof openHttp2Connection>[1] = {},
    ): Promise<Result> {
      const connection = await openHttp2Connection(portOf(), options);
      try {
        return await act(connection);
      } finally {
        connection.destroy();
        await connection.closed;
      }
    },
  };
}
