// The composition root: starts the parts of the service in order, and stops them in the opposite order.
import { setTimeout as sleep } from 'node:timers/promises';
import { createCheck } from '../check/check.ts';
import type { EffectiveConfig } from '../config/load.ts';
import type { RefusedConfig } from '../config/problems.ts';
import type { Config } from '../config/schema.ts';
import { startGrpcServer } from '../envoy/grpc-server.ts';
import { createHealth, type Health } from '../envoy/health.ts';
import type { TlsSource } from '../envoy/tls-credentials.ts';
import { createFileWatch, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import { loadTlsFiles } from '../files/tls-files.ts';
import type { ProxySettings } from '../http/proxy.ts';
import type { KeyRingObserver } from '../keys/key-ring.ts';
import { createKeyRings, type KeyRings } from '../keys/key-rings.ts';
import { toListenAddress, toTcpAddress } from '../text/listen-address.ts';
import { describeFault, problem } from '../text/problem.ts';
import { type ActiveConfigs, activateFirst } from './active-config.ts';
import { type AdminPages, startAdminServer } from './admin-server.ts';
import { createCheckSpans, registeredTracer } from './check-spans.ts';
import { type Logger, logCheck } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createReloadRecord, type ReloadRecord, type ReloadStatus, type Widening } from './reload-record.ts';
import { createRevocations, type Revocations } from './revocations.ts';

export interface Service {
  /** Bound ports; `listen` is 0 for a Unix socket. */
  readonly ports: { readonly listen: number; readonly admin: number };
  /** The active configuration; a setting that needs a restart may differ from what is in use. */
  config(): Config;
  /** See ActiveConfigs. */
  reload(loaded: EffectiveConfig | RefusedConfig, widening?: Promise<Widening | undefined>): Promise<WatchOutcome>;
  /** Reads the revocation list again. A valid one is in force from then on. */
  reloadRevocations(): void;
  reloadStatus(): ReloadStatus;
  /** Graceful shutdown: becomes unready, answers the calls that still come, closes everything within `shutdown.graceSeconds`. */
  stop(): Promise<void>;
}

interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly proxy: ProxySettings;
  readonly watchFiles?: WatchFiles;
  /** How long `listen` waits for the first keys of the issuers. Defaults to 500 ms. */
  readonly firstKeysMs?: number;
}

// While `listen` is not bound, Envoy asks the other authorizer; a 503 for want of keys it would pass on.
const usualFirstKeysMs = 500;

/** Rejects if a key file, a TLS file or the revocation list is unusable or an address cannot be bound; then nothing is left running. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config: first, version, logger, proxy, watchFiles = createFileWatch() } = options;
  const { firstKeysMs = usualFirstKeysMs } = options;
  const now = (): number => Date.now() / 1000;
  /** The stops of all that has been started, in the order of the start. */
  const stops: (() => void | Promise<void>)[] = [];
  async function stopAll(): Promise<void> {
    for (const stop of stops.splice(0).reverse()) await stop();
  }

  try {
    const health = createHealth();
    const metrics = createMetrics(version, {
      keySets: () => keyRings.active().map(ring => ring.status()),
      cachedTokens: () => configs.current().engine.cachedTokens(),
      revocations: () => revocations.status(),
    });
    const reloads = createReloadRecord({ logger, metrics, now });

    let isBound = false;
    const markReady = (): void => {
      const hasKeys = keyRings.active().some(ring => ring.status().state === 'usable');
      if (isBound && hasKeys && (revocations.status()?.source?.state ?? 'usable') === 'usable') health.markReady();
    };
    const observer = createKeyEvents(logger, metrics, markReady);
    const keyRings = createKeyRings({ observer, proxy, watchFiles });
    stops.push(keyRings.stop);
    const revocations = createRevocations({ logger, metrics, now, watchFiles, proxy, onUsable: () => markReady() });
    stops.push(revocations.stop);
    const configs = await activateFirst(first, {
      keyRings,
      revocations,
      reloads,
      metrics,
      logger,
      now,
      onActive: markReady,
    });
    stops.push(configs.stop);

    const pages = adminPages(version, { health, keyRings, configs, reloads, revocations, metrics });
    const admin = await startAdminServer(toTcpAddress(first.admin), pages);
    stops.push(admin.stop);

    const tracer = registeredTracer(version);
    const spans = tracer === undefined ? undefined : createCheckSpans(tracer);
    if (spans !== undefined) logger.info('tracing enabled: an OpenTelemetry SDK is registered in this process');
    const check = createCheck({
      current: configs.current,
      record(record) {
        metrics.countCheck(record);
        logCheck(logger, configs.current().config.log, record);
        spans?.record(record);
      },
      onFault: error => logger.error({ fault: describeFault(error) }, 'fault'),
      monotonicNow: () => performance.now(),
    });

    await Promise.race([configs.firstFetched, sleep(firstKeysMs, undefined, { ref: false })]);
    const address = toListenAddress(first.listen);
    const grpc = await startGrpcServer({
      address,
      tls: first.tls === undefined ? undefined : tlsSource(first.tls, logger),
      watchFiles,
      check,
      health: { Check: health.check, Watch: health.watch },
    });
    stops.push(() => grpc.stop(configs.current().config.shutdown.graceSeconds * 1000, health.endWatches), health.drain);
    isBound = true;
    markReady();
    reloads.started();
    return {
      ports: { listen: address.kind === 'unix' ? 0 : grpc.port, admin: admin.port },
      config: () => configs.current().config,
      reload: configs.reload,
      reloadRevocations: revocations.reloadNow,
      reloadStatus: reloads.status,
      stop: stopAll,
    };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

/** What the keys report: log lines and metrics, and that they are usable. */
function createKeyEvents(logger: Logger, metrics: Metrics, onUsable: () => void): KeyRingObserver {
  return {
    onRefresh({ issuers, result, problem, keys, skipped }) {
      for (const issuer of issuers) metrics.countKeyRefresh(issuer, result);
      const fields = { ...issuerFields(issuers), ...(skipped && { skipped }) };
      if (result === 'failure') logger.warn({ ...fields, problem }, 'key refresh failed');
      else logger.debug({ ...fields, keys }, 'key refresh');
    },
    onUsable(issuers) {
      logger.info(issuerFields(issuers), 'keys usable');
      onUsable();
    },
    onWarning: ({ issuers, problem }) => logger.warn({ ...issuerFields(issuers), problem }, 'keys'),
  };
}

// One line for all issuers that share a source: with a thousand of them, each failed refresh would write a thousand lines.
function issuerFields(issuers: readonly string[]) {
  return { issuer: issuers[0], ...(issuers.length > 1 && { issuers: issuers.length }) };
}

/** What the admin server shows. */
function adminPages(
  version: string,
  parts: {
    readonly health: Health;
    readonly keyRings: KeyRings;
    readonly configs: ActiveConfigs;
    readonly reloads: ReloadRecord;
    readonly revocations: Revocations;
    readonly metrics: Metrics;
  },
): AdminPages {
  const { health, keyRings, configs, reloads, revocations, metrics } = parts;
  const state = () => ({
    ready: health.isServing(),
    draining: health.isDraining(),
    issuers: keyRings.active().map(ring => ring.status()),
    revocation: revocations.status()?.source,
  });
  return {
    readiness: () => ({ ready: health.isServing(), body: state() }),
    metrics: metrics.page,
    async facts() {
      const { config } = configs.current();
      return {
        ...state(),
        version,
        nodeVersion: process.version,
        nowMs: Date.now(),
        uptimeSeconds: process.uptime(),
        maxAgeSeconds: config.keys.maxAgeSeconds,
        policy: config,
        reload: reloads.status(),
        revocations: revocations.status(),
        decisions: await metrics.decisions(),
      };
    },
  };
}

function tlsSource(tls: NonNullable<Config['tls']>, logger: Logger): TlsSource {
  return {
    files: [tls.certFile, tls.keyFile, ...(tls.clientCaFile === undefined ? [] : [tls.clientCaFile])],
    async load() {
      const loaded = await loadTlsFiles(tls);
      if (loaded.kind === 'tls material') return loaded;
      return problem(loaded.problems.map(({ key, message }) => `tls.${key}: ${message}`).join('; '));
    },
    onReload: ({ notAfter }) => logger.info({ notAfter }, 'tls files reloaded'),
    onRefused: refused => logger.warn({ problem: refused }, 'tls files refused, the old certificate stays in use'),
  };
}
