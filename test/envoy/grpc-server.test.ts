import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import http2 from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { expect } from 'chai';
import type { ListenAddress } from '../../src/address/listen-address.ts';
import { type GrpcServer, startGrpcServer } from '../../src/envoy/grpc-server.ts';
import { authorizationService } from '../../src/envoy/proto-files.ts';
import type { TlsSource } from '../../src/envoy/tls-credentials.ts';
import { testCertificate } from '../keys/test-certificate.ts';

const anyPort = { kind: 'tcp', host: '127.0.0.1', port: 0 } as const;
const answerBytes = Buffer.from('an answer');

/** One call: the bytes of its answer, or the error that it ends with. */
function ask(client: Client): Promise<Buffer | ServiceError> {
  const asBytes = (bytes: Buffer): Buffer => bytes;
  const { path } = authorizationService.Check;
  return new Promise(resolve => {
    client.makeUnaryRequest(path, asBytes, asBytes, Buffer.from([]), new Metadata(), (error, bytes) =>
      resolve(error ?? bytes ?? Buffer.from('nothing')),
    );
  });
}

const own = testCertificate({ name: 'account-authz', dnsNames: ['localhost'] });

function tlsOf(loaded: Awaited<ReturnType<TlsSource['load']>>): TlsSource {
  return { files: [], load: async () => loaded, onReload: () => undefined, onRefused: () => undefined };
}

const goodTls = tlsOf({ ...own, kind: 'tls material', clientCa: undefined, notAfter: new Date(0) });

describe('gRPC server that is given TLS', () => {
  const start = (tls: TlsSource): Promise<GrpcServer> =>
    startGrpcServer({ address: anyPort, tls, check: () => answerBytes, health: {} });

  it('answers over TLS and nothing else', async () => {
    const server = await start(goodTls);
    const askOver = async (security: ChannelCredentials): Promise<Buffer | ServiceError> => {
      const client = new Client(`localhost:${server.port}`, security);
      const outcome = await ask(client);
      client.close();
      return outcome;
    };
    try {
      expect(await askOver(credentials.createSsl(Buffer.from(own.cert)))).to.deep.equal(answerBytes);
      expect(await askOver(credentials.createInsecure())).to.include({ code: status.UNAVAILABLE });
    } finally {
      await server.stop(0, () => undefined);
    }
  });

  it('does not start where its files are not usable', async () => {
    const failure = await start(tlsOf({ kind: 'problem', problem: 'the key is gone' })).catch((error: Error) => error);
    expect(failure).to.include({ message: 'the key is gone' });
  });
});

describe('gRPC server that cannot listen', () => {
  // An address for documentation only (RFC 3849), and a folder that no machine has.
  const rows = [
    [{ kind: 'tcp', host: '2001:db8::1', port: 9001 }, 'cannot listen on [2001:db8::1]:9001'],
    [{ kind: 'unix', path: '/no such folder/authz.sock' }, 'cannot listen on unix:/no such folder/authz.sock'],
  ] as const;
  for (const [address, message] of rows) {
    it(`names the ${address.kind} address and keeps the cause`, async () => {
      const failure = await startGrpcServer({ address, check: () => answerBytes, health: {} }).catch(
        (error: unknown) => error,
      );
      expect(failure).to.include({ message });
      expect(failure).to.have.property('cause').that.is.instanceOf(Error);
    });
  }
});

describe('gRPC server that stops', () => {
  const minuteMs = 60_000;
  const quietMs = 1000;
  let time: StandingTime;
  let server: GrpcServer;
  let client: Client;
  let stopped: Promise<void>;
  /** A check that is held back says when it is `asked`, and goes on when it is `open`. */
  let gate: EventEmitter;
  beforeEach(() => {
    gate = new EventEmitter();
    time = standStill();
  });
  // A stop that a failed test leaves behind ends here.
  afterEach(async () => {
    gate.emit('open');
    time.skip(10 * minuteMs);
    await Promise.race([stopped, time.looked()]);
    client.close();
    time.goOn();
  });

  const answered = (): Buffer => answerBytes;
  const heldBack = async (): Promise<Buffer> => {
    gate.emit('asked');
    await once(gate, 'open');
    return answerBytes;
  };

  async function serve(
    check: () => Buffer | Promise<Buffer>,
    { address = anyPort, tls }: { readonly address?: ListenAddress; readonly tls?: TlsSource } = {},
  ): Promise<void> {
    server = await startGrpcServer({ address, tls, check, health: {} });
    const target = address.kind === 'unix' ? `unix:${address.path}` : `localhost:${server.port}`;
    const security = tls === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(own.cert));
    client = new Client(target, security);
  }

  /** Serves, and has one call that is not answered before the gate is open. */
  async function serveOneCall(
    check = heldBack,
    address?: ListenAddress,
  ): Promise<{ readonly outcome: Promise<Buffer | ServiceError> }> {
    await serve(check, address && { address });
    const asked = once(gate, 'asked');
    const outcome = ask(client);
    await asked;
    return { outcome };
  }

  /** `left`: it refuses new connections from now on. */
  function stop(graceMs: number) {
    const leaving = new EventEmitter();
    const left = once(leaving, 'left');
    stopped = server.stop(graceMs, () => leaving.emit('left'));
    const isLeft = (): Promise<boolean> => Promise.race([left.then(() => true), time.looked().then(() => false)]);
    return { left, isLeft };
  }

  const connectionOutcome = async (): Promise<unknown> => {
    const socket = connect(server.port, '127.0.0.1');
    const outcome = await once(socket, 'connect').catch((error: NodeJS.ErrnoException) => error.code);
    socket.destroy();
    return outcome;
  };

  it('goes on until nobody has called for a while', async () => {
    await serve(answered);
    time.skip(minuteMs);
    const { left, isLeft } = stop(minuteMs);
    expect(await isLeft()).to.equal(false);
    time.skip(quietMs - 1);
    expect(await isLeft()).to.equal(false);
    time.skip(1);
    await left;
    await stopped;
    expect(await connectionOutcome()).to.equal('ECONNREFUSED');
  });

  for (const [name, check] of [
    ['at once', answered],
    ['later', async () => answerBytes],
  ] as const) {
    it(`answers a call meanwhile, whose check answers ${name}, and waits anew`, async () => {
      await serve(check);
      const { left, isLeft } = stop(minuteMs);
      time.skip(quietMs - 1);
      expect(await ask(client)).to.deep.equal(answerBytes);
      time.skip(quietMs - 1);
      expect(await isLeft()).to.equal(false);
      time.skip(1);
      await left;
      await stopped;
    });
  }

  it('goes on while a call is under way, and no longer', async () => {
    const { outcome } = await serveOneCall();
    const { left, isLeft } = stop(minuteMs);
    time.skip(2 * quietMs);
    expect(await isLeft()).to.equal(false);
    gate.emit('open');
    expect(await outcome).to.deep.equal(answerBytes);
    await left;
    await stopped;
  });

  it('takes a call whose check fails as ended', async () => {
    const { outcome } = await serveOneCall(async () => {
      await heldBack();
      throw new Error('against its promise');
    });
    const { left } = stop(minuteMs);
    time.skip(2 * quietMs);
    gate.emit('open');
    expect(await outcome).to.include({ code: status.UNAVAILABLE, details: 'internal' });
    await left;
    await stopped;
  });

  it('refuses new connections when half of the grace is over, and lets the calls under way end', async () => {
    const { outcome } = await serveOneCall();
    const { left, isLeft } = stop(minuteMs);
    time.skip(minuteMs / 2 - 1);
    expect(await isLeft()).to.equal(false);
    time.skip(1);
    await left;
    expect(await connectionOutcome()).to.equal('ECONNREFUSED');
    // What ends the calls by force too early is due before this.
    await sleep(5);
    gate.emit('open');
    expect(await outcome).to.deep.equal(answerBytes);
    await stopped;
  });

  for (const [name, address] of [
    ['over TCP', anyPort],
    ['over a Unix socket', { kind: 'unix', path: join(tmpdir(), `account-authz-${randomUUID()}.sock`) }],
  ] as const) {
    it(`ends the calls ${name} that are left when the grace is over`, async () => {
      const { outcome } = await serveOneCall(heldBack, address);
      stop(minuteMs);
      time.skip(minuteMs);
      expect(await outcome).to.be.instanceOf(Error);
      await stopped;
    });
  }

  it('ends a connection too that was in its handshake when new ones were refused', async () => {
    await serve(answered, { tls: goodTls });
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    // Connections are accepted in their order: the server knows the one before this.
    expect(await ask(client)).to.deep.equal(answerBytes);
    const { left } = stop(minuteMs);
    time.skip(minuteMs / 2);
    await left;
    const secured = connectTls({ socket, ca: own.cert, servername: 'localhost', ALPNProtocols: ['h2'] });
    const session = http2.connect('https://localhost', { createConnection: () => secured });
    await once(session, 'connect');
    // What ends it too early is due before this.
    await sleep(60);
    expect(session.closed).to.equal(false);
    const closed = once(session, 'close');
    time.skip(minuteMs / 2);
    await closed;
    await stopped;
  });
});

interface StandingTime {
  skip(ms: number): void;
  /** Resolves when the time was read a few times more: whoever polls it has come to a conclusion about what it is now. */
  looked(): Promise<void>;
  goOn(): void;
}

/** Halts `performance.now`, so that what waits for a time ends with a step of the test. */
function standStill(): StandingTime {
  const { now } = performance;
  const reads = new EventEmitter();
  // A whole number, so that sums of the skips are exact.
  let nowMs = Math.ceil(now.call(performance));
  performance.now = () => {
    reads.emit('read');
    return nowMs;
  };
  return {
    skip(ms) {
      nowMs += ms;
    },
    async looked() {
      for (let read = 0; read < 3; read += 1) await once(reads, 'read');
    },
    goOn() {
      performance.now = now;
    },
  };
}
