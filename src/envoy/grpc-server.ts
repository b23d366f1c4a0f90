// The gRPC server: serves Check and health on TCP or a Unix socket, with limits, and shuts down gracefully.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  logVerbosity,
  type Metadata,
  Server,
  ServerCredentials,
  setLogVerbosity,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { RequestFacts } from '../authz/request-facts.ts';
import type { WatchFiles } from '../files/file-watch.ts';
import { hostAndPort, type ListenAddress, listenError } from '../text/listen-address.ts';
import { authorizationService, healthService } from './protocol.ts';
import { readRequestFacts } from './request.ts';
import { freeSocketPath, shareWithGroup } from './socket-file.ts';
import { startTlsCredentials, type TlsSource } from './tls-credentials.ts';

export interface GrpcServer {
  /** The bound TCP port; 0 for a Unix socket. */
  readonly port: number;
  /**
   * Keeps answering until no call has come for a while or half of the grace period is over. Then it refuses new connections and lets
   * the calls in flight end, at the latest at the end of the grace period.
   */
  stop(graceMs: number, endWatches: () => void): Promise<void>;
}

// A CheckRequest contains the headers of one request, which Envoy limits (60 KiB by default); a response is below 8 KiB, without the cookies
// of the request that it may have. An incomplete message is kept, and grpc-js has no limit for the sum of these: a connection has room for
// 128, or 32 MiB. Envoy opens another connection when all streams of one are in use.
const serverOptions = {
  'grpc.max_receive_message_length': 256 * 1024,
  'grpc.max_send_message_length': 320 * 1024,
  'grpc.max_concurrent_streams': 128,
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 20_000,
  // No channelz service is registered, so its counters would only cost time per call.
  'grpc.enable_channelz': 0,
};

// request.ts decodes the CheckRequest, and answers.ts has already encoded the response. What Node keeps of a closed stream until the next
// major collection keeps the request too, so it is taken out of it (docs/dev/performance.md).
const checkMethods = {
  Check: {
    ...authorizationService.Check,
    requestDeserialize: (bytes: Buffer): { facts: RequestFacts | undefined } => ({ facts: readRequestFacts(bytes) }),
    responseSerialize: (bytes: Buffer): Buffer => bytes,
  },
};

/** After this long without a call, the clients are assumed to have gone elsewhere. */
const quietMs = 1000;

/** How long after the grace period a socket may stay open that neither a call nor GOAWAY can end. */
const lingerMs = 1000;

/** Rejects if the address cannot be bound or a TLS file is unusable. */
export async function startGrpcServer(options: {
  readonly address: ListenAddress;
  /** Absent: plain HTTP/2. */
  readonly tls?: TlsSource | undefined;
  readonly watchFiles?: WatchFiles;
  readonly check: (facts: RequestFacts, metadata: Metadata) => Buffer | Promise<Buffer>;
  readonly health: UntypedServiceImplementation;
}): Promise<GrpcServer> {
  const { address, check, health } = options;
  // grpc-js writes to standard error, past the log. Calls and the errors of bind report the same problems.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server(serverOptions);
  const activity = { inFlight: 0, lastCallAt: performance.now() };

  server.addService(checkMethods, {
    Check: (
      { request, metadata }: { readonly request: { facts: RequestFacts | undefined }; readonly metadata: Metadata },
      answer: (error: object | null, bytes?: Buffer) => void,
    ) => {
      const { facts } = request;
      request.facts = undefined;
      if (facts === undefined) return answer({ code: status.INTERNAL, details: 'internal' });
      const checked = check(facts, metadata);
      if (!(checked instanceof Promise)) {
        activity.lastCallAt = performance.now();
        return answer(null, checked);
      }
      activity.inFlight += 1;
      activity.lastCallAt = performance.now();
      checked.then(
        bytes => {
          activity.inFlight -= 1;
          answer(null, bytes);
        },
        // A check never rejects. If it did, the call would stay open until its deadline.
        () => {
          activity.inFlight -= 1;
          answer({ code: status.UNAVAILABLE, details: 'internal' });
        },
      );
    },
  });
  server.addService(healthService, health);
  const tls = options.tls === undefined ? undefined : await startTlsCredentials(options.tls, options.watchFiles);
  const port = await bind(server, address, tls?.credentials ?? ServerCredentials.createInsecure()).catch(error => {
    tls?.stop();
    throw error;
  });
  const target = targetOf(address, port);

  async function untilQuiet(limitMs: number): Promise<void> {
    const started = performance.now();
    const isQuiet = (now: number): boolean =>
      activity.inFlight === 0 && now - Math.max(activity.lastCallAt, started) >= quietMs;
    for (let now = started; now - started < limitMs && !isQuiet(now); now = performance.now()) await sleep(25);
  }

  return {
    port,
    async stop(graceMs, endWatches) {
      const forceAt = performance.now() + graceMs;
      await untilQuiet(graceMs / 2);
      endWatches();
      // Not forceShutdown, which closes no connection with channelz off (grpc-js 1.14.7).
      server.drain(target, Math.max(0, forceAt - performance.now()));
      // A TLS handshake in progress becomes a connection only later.
      const late = setInterval(() => {
        if (performance.now() >= forceAt) server.drain(target, 0);
      }, 25);
      const closed = new Promise<void>(resolve => {
        server.tryShutdown(() => resolve());
      });
      // What is still open then is a handshake that its peer does not continue, or a session that Node never closes: it has no call.
      await Promise.race([
        closed,
        sleep(Math.max(0, forceAt - performance.now()) + lingerMs, undefined, { ref: false }),
      ]);
      clearInterval(late);
      tls?.stop();
    },
  };
}

async function bind(server: Server, address: ListenAddress, credentials: ServerCredentials): Promise<number> {
  if (address.kind === 'tcp') return bindTo(server, targetOf(address, address.port), credentials);
  await freeSocketPath(address.path);
  await bindTo(server, targetOf(address, 0), credentials);
  await shareWithGroup(address.path).catch(error => {
    server.forceShutdown();
    throw error;
  });
  return 0; // grpc-js says 1
}

function targetOf(address: ListenAddress, port: number): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  return hostAndPort(address.host, port);
}

function bindTo(server: Server, target: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(target, credentials, (error, port) => {
      if (error === null) resolve(port);
      else reject(listenError(target, error));
    });
  });
}
