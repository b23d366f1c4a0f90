// The composition root: a configuration in, a running service out. All wiring by hand, on one screen.

import { parseListenAddress } from './address/listen-address.ts';
import { createCheck } from './check.ts';
import type { Config } from './config/schema.ts';
import { loadTlsFiles } from './config/tls-files.ts';
import { createEngine } from './engine.ts';
import { createAnswers } from './envoy/answers.ts';
import { startGrpcServer } from './envoy/grpc-server.ts';
import { createIdentityHeaders } from './envoy/identity-headers.ts';
import type { TlsSource } from './envoy/tls-credentials.ts';
import { createKeyRing, type KeyRing, type KeyRingObserver, type ProxySettings } from './keys/key-ring.ts';
import { startAdminServer } from './operations/admin-server.ts';
import { createHealth } from './operations/health.ts';
import { describeFault, type Logger, logCheck } from './operations/log.ts';
import { createMetrics } from './operations/metrics.ts';

export interface Service {
  /** Bound ports; `listen` is 0 for a Unix socket. */
  readonly ports: { readonly listen: number; readonly admin: number };
  /** Not ready at once, calls answered while they come, everything closed within `shutdown.graceSeconds`. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly proxy: ProxySettings;
}

/** Rejects where a file of keys or of TLS is not usable or an address cannot be bound; nothing is left running then. */
export async function startService({ config, version, logger, proxy }: ServiceOptions): Promise<Service> {
  const health = createHealth();
  const metrics = createMetrics(version, {
    keySets: () => [...keyRings.values()].map(ring => ring.status()),
    cachedTokens: () => engine.cachedTokens(),
  });
  const observer: KeyRingObserver = {
    onRefresh({ issuer, result, problem, keys, skipped }) {
      metrics.countKeyRefresh(issuer, result);
      if (result === 'failure') logger.warn({ issuer, problem }, 'key refresh failed');
      else logger.debug({ issuer, keys, skipped }, 'key refresh');
    },
    onUsable(issuer) {
      logger.info({ issuer }, 'keys usable');
      health.markReady();
    },
    onWarning: ({ issuer, problem }) => logger.warn({ issuer, problem }, 'keys'),
  };
  const keyRings: ReadonlyMap<string, KeyRing> = new Map(
    config.issuers.map(issuer => [issuer.issuer, createKeyRing({ issuer, keys: config.keys, observer, proxy })]),
  );
  const engine = createEngine({ config, keyRings, now: () => Date.now() / 1000 });
  const answers = createAnswers({
    identityHeaders: createIdentityHeaders(config.identityHeaders),
    forward: config.token.forward,
  });
  const configuration = { engine, answers };
  const check = createCheck({
    current: () => configuration,
    record(record) {
      metrics.countCheck(record);
      logCheck(logger, config.log, record);
    },
    onFault: error => logger.error({ fault: describeFault(error) }, 'fault'),
    monotonicNow: () => performance.now(),
  });
  const stopKeyRings = (): Promise<unknown> => Promise.all(Array.from(keyRings.values(), ring => ring.stop()));
  const readiness = () => ({
    ready: health.isServing(),
    body: {
      ready: health.isServing(),
      draining: health.isDraining(),
      issuers: [...keyRings.values()].map(ring => ring.status()),
    },
  });

  try {
    await Promise.all(Array.from(keyRings.values(), ring => ring.start()));
    const admin = await startAdminServer(tcpAddress(config.admin), { readiness, metrics: metrics.page });
    try {
      const address = parseListenAddress(config.listen);
      if (address.kind === 'problem') throw new Error(address.problem);
      const grpc = await startGrpcServer({
        address,
        tls: config.tls === undefined ? undefined : tlsSource(config.tls, logger),
        check,
        health: { Check: health.check, Watch: health.watch },
      });
      return {
        ports: { listen: grpc.port, admin: admin.port },
        async stop() {
          health.drain();
          await grpc.stop(config.shutdown.graceSeconds * 1000, health.endWatches);
          await Promise.all([admin.stop(), stopKeyRings()]);
        },
      };
    } catch (error) {
      await admin.stop();
      throw error;
    }
  } catch (error) {
    await stopKeyRings();
    throw error;
  }
}

function tlsSource(tls: NonNullable<Config['tls']>, logger: Logger): TlsSource {
  return {
    files: [tls.certFile, tls.keyFile, ...(tls.clientCaFile === undefined ? [] : [tls.clientCaFile])],
    async load() {
      const loaded = await loadTlsFiles(tls);
      if (loaded.kind === 'tls material') return loaded;
      return {
        kind: 'problem',
        problem: loaded.problems.map(({ key, message }) => `tls.${key}: ${message}`).join('; '),
      };
    },
    onReload: ({ notAfter }) => logger.info({ notAfter }, 'tls files reloaded'),
    onRefused: problem => logger.warn({ problem }, 'tls files refused, the old ones stay in use'),
  };
}

function tcpAddress(text: string): { host: string; port: number } {
  const address = parseListenAddress(text);
  if (address.kind !== 'tcp') throw new Error('admin is not an address that the configuration let pass');
  return address;
}
