// Readiness of this process: ready once it can answer a check, unready once it drains. One state for the gRPC health service and
// /readyz.
import { type handleServerStreamingCall, type handleUnaryCall, type ServerWritableStream, status } from '@grpc/grpc-js';
import {
  authorizationServiceName,
  type HealthCheckRequestMessage,
  type HealthCheckResponseMessage,
  servingStatus,
} from './protocol.ts';

export interface Health {
  isServing(): boolean;
  isDraining(): boolean;
  /** `listen` is bound and some issuer has usable keys. Latched: a later outage of the authentication service must not remove pods. */
  markReady(): void;
  /** Irreversible. Notifies every watcher. */
  drain(): void;
  /** Ends the Watch streams, which would otherwise block a graceful shutdown. */
  endWatches(): void;
  readonly check: handleUnaryCall<HealthCheckRequestMessage, HealthCheckResponseMessage>;
  readonly watch: handleServerStreamingCall<HealthCheckRequestMessage, HealthCheckResponseMessage>;
}

type WatchStream = ServerWritableStream<HealthCheckRequestMessage, HealthCheckResponseMessage>;

const serviceNames = new Set(['', authorizationServiceName]);

export function createHealth(): Health {
  let ready = false;
  let draining = false;
  const watches = new Map<WatchStream, 'known' | 'unknown'>();

  const isServing = (): boolean => ready && !draining;
  const message = (): HealthCheckResponseMessage => ({
    status: isServing() ? servingStatus.serving : servingStatus.notServing,
  });
  const notifyWatches = (): void => {
    for (const [stream, service] of watches) if (service === 'known') stream.write(message());
  };

  return {
    isServing,
    isDraining: () => draining,
    markReady() {
      if (ready) return;
      ready = true;
      notifyWatches();
    },
    drain() {
      if (draining) return;
      draining = true;
      notifyWatches();
    },
    endWatches() {
      for (const stream of watches.keys()) stream.end();
      watches.clear();
    },
    check(call, answer) {
      if (serviceNames.has(call.request.service)) answer(null, message());
      else answer({ code: status.NOT_FOUND, details: 'unknown service' });
    },
    watch(stream) {
      const known = serviceNames.has(stream.request.service);
      stream.on('error', () => undefined);
      stream.write(known ? message() : { status: servingStatus.serviceUnknown });
      watches.set(stream, known ? 'known' : 'unknown');
      stream.on('cancelled', () => watches.delete(stream));
      stream.on('close', () => watches.delete(stream));
    },
  };
}
