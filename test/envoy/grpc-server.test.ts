// The gRPC server: TLS, failures to listen, and graceful shutdown on a fake clock.
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import http2 from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { testCertificate } from '../../lab/test-certificate.ts';
import { type GrpcServer, startGrpcServer } from '../../src/envoy/grpc-server.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';
import type { TlsSource } from '../../src/envoy/tls-credentials.ts';
import type { ListenAddress } from '../../src/text/listen-address.ts';

const anyPort = { kind: 'tcp', host: '127.0.0.1', port: 0 } as const;
const answerBytes = Buffer.from('an answer');

/** Makes one call. Resolves with the bytes of the answer, or with the error. */
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

describe('gRPC server with TLS', () => {
  const start = (tls: TlsSource): Promise<GrpcServer> =>
    startGrpcServer({ address: anyPort, tls, check: () => answerBytes, health: {} });

  it('stops while a handshake is open that its peer does not continue', async () => {
    const server = await start(goodTls);
    const silent = connect(server.port, '127.0.0.1');
    await once(silent, 'connect');
    // The server accepts connections in order, so it has accepted the one before this call.
    const client = new Client(`localhost:${server.port}`, credentials.createSsl(Buffer.from(own.cert)));
    expect(await ask(client)).to.deep.equal(answerBytes);
    client.close();
    const first = await Promise.race([
      server.stop(0, () => undefined).then(() => 'stopped'),
      // After 10 s the server would give up the handshake, and end.
      sleep(8000).then(() => 'waits for the handshake'),
    ]);
    silent.destroy();
    expect(first).to.equal('stopped');
  });
});

describe('gRPC server on an unusable address', () => {
  // An address for documentation only (RFC 3849), and a folder in which no file can be made.
  const rows = [
    [{ kind: 'tcp', host: '2001:db8::1', port: 9001 }, /^cannot listen on \[2001:db8::1\]:9001: E[A-Z]+$/],
    [{ kind: 'unix', path: '/proc/A socket' }, /^cannot listen on unix:\/proc\/A socket: E[A-Z]+$/],
  ] as const;
  for (const [address, message] of rows) {
    it(`fails to start, names the ${address.kind} address and the reason, and keeps the cause`, async () => {
      const failure = await startGrpcServer({ address, check: () => answerBytes, health: {} }).catch(
        (error: unknown) => error,
      );
      expect(failure).to.have.property('message').that.matches(message);
      expect(failure).to.have.property('cause').that.is.instanceOf(Error);
    });
  }
});

describe('gRPC server shutdown', () => {
  const minuteMs = 60_000;
  const idleMs = 1000;
  let clock: FakeClock;
  let server: GrpcServer;
  let client: Client;
  let stopped: Promise<void>;
  /** A blocked check emits `called` and waits for `open`. */
  let gate: EventEmitter;
  beforeEach(() => {
    gate = new EventEmitter();
    clock = startFakeClock();
  });
  // Ends the shutdown that a failed test leaves in flight.
  afterEach(async () => {
    gate.emit('open');
    clock.advance(10 * minuteMs);
    await Promise.race([stopped, clock.polled()]);
    client.close();
    clock.restore();
  });

  const answered = (): Buffer => answerBytes;
  const blocked = async (): Promise<Buffer> => {
    gate.emit('called');
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

  /** Serves with one call in flight, which is answered when the gate opens. */
  async function serveOneCall(
    check = blocked,
    address?: ListenAddress,
  ): Promise<{ readonly outcome: Promise<Buffer | ServiceError> }> {
    await serve(check, address && { address });
    const called = once(gate, 'called');
    const outcome = ask(client);
    await called;
    return { outcome };
  }

  /** `closed` resolves when the server refuses new connections. */
  function stop(graceMs: number) {
    const events = new EventEmitter();
    const closed = once(events, 'closed');
    stopped = server.stop(graceMs, () => events.emit('closed'));
    const isClosed = (): Promise<boolean> => Promise.race([closed.then(() => true), clock.polled().then(() => false)]);
    return { closed, isClosed };
  }

  const connectionOutcome = async (): Promise<unknown> => {
    const socket = connect(server.port, '127.0.0.1');
    const outcome = await once(socket, 'connect').catch((error: NodeJS.ErrnoException) => error.code);
    socket.destroy();
    return outcome;
  };

  it('accepts connections until no call has arrived for 1 s', async () => {
    await serve(answered);
    clock.advance(minuteMs);
    const { closed, isClosed } = stop(minuteMs);
    expect(await isClosed()).to.equal(false);
    clock.advance(idleMs - 1);
    expect(await isClosed()).to.equal(false);
    clock.advance(1);
    await closed;
    await stopped;
    expect(await connectionOutcome()).to.equal('ECONNREFUSED');
  });

  for (const [name, check] of [
    ['synchronously', answered],
    ['asynchronously', async () => answerBytes],
  ] as const) {
    it(`answers a call whose check completes ${name}, and restarts the idle time`, async () => {
      await serve(check);
      const { closed, isClosed } = stop(minuteMs);
      clock.advance(idleMs - 1);
      expect(await ask(client)).to.deep.equal(answerBytes);
      clock.advance(idleMs - 1);
      expect(await isClosed()).to.equal(false);
      clock.advance(1);
      await closed;
      await stopped;
    });
  }

  it('waits for a call in flight and stops when it ends', async () => {
    const { outcome } = await serveOneCall();
    const { closed, isClosed } = stop(minuteMs);
    clock.advance(2 * idleMs);
    expect(await isClosed()).to.equal(false);
    gate.emit('open');
    expect(await outcome).to.deep.equal(answerBytes);
    await closed;
    await stopped;
  });

  it('does not wait for a call whose check has failed', async () => {
    const { outcome } = await serveOneCall(async () => {
      await blocked();
      throw new Error('a fault');
    });
    const { closed } = stop(minuteMs);
    clock.advance(2 * idleMs);
    gate.emit('open');
    expect(await outcome).to.include({ code: status.UNAVAILABLE, details: 'internal' });
    await closed;
    await stopped;
  });

  it('refuses new connections after half the grace period, and completes calls in flight', async () => {
    const { outcome } = await serveOneCall();
    const { closed, isClosed } = stop(minuteMs);
    clock.advance(minuteMs / 2 - 1);
    expect(await isClosed()).to.equal(false);
    clock.advance(1);
    await closed;
    expect(await connectionOutcome()).to.equal('ECONNREFUSED');
    // A premature forced close would happen within this time.
    await sleep(5);
    gate.emit('open');
    expect(await outcome).to.deep.equal(answerBytes);
    await stopped;
  });

  for (const [name, address] of [
    ['over TCP', anyPort],
    ['over a Unix socket', { kind: 'unix', path: join(tmpdir(), `account-authz-${randomUUID()}.sock`) }],
  ] as const) {
    it(`closes calls in flight ${name} when the grace period ends`, async () => {
      const { outcome } = await serveOneCall(blocked, address);
      stop(minuteMs);
      clock.advance(minuteMs);
      expect(await outcome).to.be.instanceOf(Error);
      await stopped;
    });
  }

  it('closes a connection that was in its handshake when new ones were refused', async () => {
    await serve(answered, { tls: goodTls });
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    // The server accepts connections in order, so it has accepted the one before this call.
    expect(await ask(client)).to.deep.equal(answerBytes);
    const { closed } = stop(minuteMs);
    clock.advance(minuteMs / 2);
    await closed;
    const secured = connectTls({ socket, ca: own.cert, servername: 'localhost', ALPNProtocols: ['h2'] });
    const session = http2.connect('https://localhost', { createConnection: () => secured });
    await once(session, 'connect');
    // A premature close would happen within this time.
    await sleep(60);
    expect(session.closed).to.equal(false);
    const sessionClosed = once(session, 'close');
    clock.advance(minuteMs / 2);
    await sessionClosed;
    await stopped;
  });
});

interface FakeClock {
  advance(ms: number): void;
  /** Resolves after three more reads of the clock: every poller has seen the current time by then. */
  polled(): Promise<void>;
  restore(): void;
}

/** Replaces `performance.now`, so that time passes only when the test advances it. */
function startFakeClock(): FakeClock {
  const { now } = performance;
  const reads = new EventEmitter();
  // A whole number, so that sums of the steps are exact.
  let nowMs = Math.ceil(now.call(performance));
  performance.now = () => {
    reads.emit('read');
    return nowMs;
  };
  return {
    advance(ms) {
      nowMs += ms;
    },
    async polled() {
      for (let read = 0; read < 3; read += 1) await once(reads, 'read');
    },
    restore() {
      performance.now = now;
    },
  };
}
