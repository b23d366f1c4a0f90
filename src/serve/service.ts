// The composition root: wires all parts and starts, reloads and stops the service.

import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminPages, startAdminServer } from '../admin/admin-server.ts';
import { createCheck } from '../check/check.ts';
import { createEngine, createTokenMemory, type Engine, type TokenMemory } from '../check/engine.ts';
import { toResponseSettings } from '../check/response-settings.ts';
import { settingsThatNeedRestart } from '../config/restart-settings.ts';
import type { Config } from '../config/schema.ts';
import { type ConfigVerdict, refusedConfig } from '../config/verdict.ts';
import { createDeferred } from '../deferred.ts';
import { type Answers, createAnswers } from '../envoy/answers.ts';
import { startGrpcServer } from '../envoy/grpc-server.ts';
import type { TlsSource } from '../envoy/tls-credentials.ts';
import { accepted, createFileWatch, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import { loadTlsFiles } from '../files/tls-files.ts';
import { isKeyFileError, type KeyRingObserver, type ProxySettings } from '../keys/key-ring.ts';
import { createKeyRings } from '../keys/key-rings.ts';
import { createCheckSpans, registeredTracer } from '../operations/check-spans.ts';
import { describeFault } from '../operations/fault.ts';
import { createHealth } from '../operations/health.ts';
import { type Logger, logCheck } from '../operations/log.ts';
import { createMetrics } from '../operations/metrics.ts';
import { createReloadRecord, type ReloadStatus } from '../operations/reload-record.ts';
import { parseListenAddress } from '../text/listen-address.ts';
import { createRevocations, RevocationFileError } from './revocations.ts';

export interface Service {
  /** Bound ports; `listen` is 0 for a Unix socket. */
  readonly ports: { readonly listen: number; readonly admin: number };
  /** The active configuration; a setting that needs a restart may differ from what is in use. */
  config(): Config;
  /**
   * Applies a valid configuration from the next call on; a refused one changes nothing. Preserves FIFO order, even after a reload
   * that rejected. Rejects only on an internal error, which must end the process.
   */
  reload(verdict: ConfigVerdict): Promise<WatchOutcome>;
  /** Reads the revocation list again. A valid one is in force from then on. */
  reloadRevocations(): void;
  reloadStatus(): ReloadStatus;
  /** Graceful shutdown: becomes unready, answers the calls that still come, closes everything within `shutdown.graceSeconds`. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly proxy: ProxySettings;
  readonly watchFiles?: WatchFiles;
  /** The entry of the key thread; by default the built one. */
  readonly keyThreadEntry?: URL;
}

/** The active configuration with everything built from it. */
interface ActiveConfig {
  readonly config: Config;
  readonly memory: TokenMemory;
  readonly engine: Engine;
  readonly answers: Answers;
}

// While `listen` is not bound, Envoy asks the other authorizer; a 503 for want of keys it would pass on.
const firstKeysMs = 500;

/** Rejects if a key file, a TLS file or the revocation list is unusable or an address cannot be bound; then nothing is left running. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config: first, version, logger, proxy, watchFiles = createFileWatch() } = options;
  const now = (): number => Date.now() / 1000;
  const health = createHealth();
  const metrics = createMetrics(version, {
    keySets: () => keyRings.active().map(ring => ring.status()),
    cachedTokens: () => active.engine.cachedTokens(),
    revocations: () => revocations.status(),
  });
  const reloads = createReloadRecord({ logger, metrics, now });
  const revocations = createRevocations({
    logger,
    metrics,
    now,
    watchFiles,
  });
  let isBound = false;
  let isStopped = false;
  const markReady = (): void => {
    if (isBound && keyRings.active().some(ring => ring.status().state === 'usable')) health.markReady();
  };
  const firstKeys = createFirstKeys(first);
  const observer: KeyRingObserver = {
    onRefresh({ issuers, result, problem, keys, skipped }) {
      for (const issuer of issuers) {
        firstKeys.settle(issuer);
        metrics.countKeyRefresh(issuer, result);
      }
      if (result === 'failure') logger.warn({ ...named(issuers), problem }, 'key refresh failed');
      else logger.debug({ ...named(issuers), keys, skipped }, 'key refresh');
    },
    onUsable(issuers) {
      for (const issuer of issuers) firstKeys.settle(issuer);
      logger.info(named(issuers), 'keys usable');
      markReady();
    },
    onWarning: ({ issuers, problem }) => logger.warn({ ...named(issuers), problem }, 'keys'),
  };
  const keyRings = createKeyRings({ observer, proxy, threadEntry: options.keyThreadEntry });

  /** Starts what is new beside what is active. `takeOver` then switches all calls in one step. */
  async function prepare(config: Config, before?: ActiveConfig) {
    const listed = await revocations.prepare(config.revocation?.file);
    const prepared = await keyRings.prepare(config.issuers, config.keys).catch((error: unknown) => {
      listed.discard();
      throw error;
    });
    const discard = (): Promise<void> => {
      listed.discard();
      return prepared.discard();
    };
    try {
      const memory = createTokenMemory(config, before?.memory);
      const answers = createAnswers(toResponseSettings(config));
      const engine = createEngine({ config, keyRings: prepared.rings, memory, revocations: listed.list, now });
      const takeOver = (): void => {
        prepared.activate();
        listed.takeOver();
      };
      return { takeOver, discard, activeConfig: { config, memory, engine, answers } };
    } catch (error) {
      await discard();
      throw error;
    }
  }

  const initial = await prepare(first);
  let active: ActiveConfig = initial.activeConfig;
  initial.takeOver();

  let changes: Promise<unknown> = Promise.resolve();
  async function change(verdict: ConfigVerdict): Promise<WatchOutcome> {
    const refused: WatchOutcome = { kind: 'refused', alsoWatch: verdict.namedFiles ?? [] };
    if (verdict.kind === 'refused') {
      reloads.refused(verdict);
      return refused;
    }
    const { config } = verdict;
    const before = active.config;
    const next = await prepare(config, active).catch((error: unknown) => {
      if (error instanceof RevocationFileError) return reloads.refused(error.refused);
      // Nothing has changed yet. After the switch, an internal error ends the process.
      if (!isKeyFileError(error)) logger.error({ fault: describeFault(error) }, 'fault');
      const problem = isKeyFileError(error) ? error.message : 'internal error: see the log line before this one';
      reloads.refused(refusedConfig([problem]));
    });
    if (next !== undefined && isStopped) await next.discard();
    else if (next !== undefined) {
      active = next.activeConfig;
      next.takeOver();
      logger.level = config.log.level;
      markReady();
      reloads.succeeded({ issuers: config.issuers.length, needsRestart: settingsThatNeedRestart(first, config) });
    }
    forgetIssuers(before, config);
    return next === undefined ? refused : accepted;
  }

  // A refused configuration may have named an issuer too.
  function forgetIssuers(...configs: readonly Config[]): void {
    const known = new Set(active.config.issuers.map(({ issuer }) => issuer));
    for (const { issuer } of configs.flatMap(({ issuers }) => issuers))
      if (!known.has(issuer)) metrics.forgetIssuer(issuer);
  }

  const tracer = registeredTracer(version);
  const spans = tracer === undefined ? undefined : createCheckSpans(tracer);
  if (spans !== undefined) logger.info('tracing enabled: an OpenTelemetry SDK is registered in this process');
  const check = createCheck({
    current: () => active,
    record(record) {
      metrics.countCheck(record);
      logCheck(logger, active.config.log, record);
      spans?.record(record);
    },
    onFault: error => logger.error({ fault: describeFault(error) }, 'fault'),
    monotonicNow: () => performance.now(),
  });
  const readiness = () => ({
    ready: health.isServing(),
    body: {
      ready: health.isServing(),
      draining: health.isDraining(),
      issuers: keyRings.active().map(ring => ring.status()),
    },
  });

  const adminPages: AdminPages = {
    readiness,
    metrics: metrics.page,
    facts: async () => ({
      ...readiness().body,
      version,
      nodeVersion: process.version,
      nowMs: Date.now(),
      uptimeSeconds: process.uptime(),
      maxAgeSeconds: active.config.keys.maxAgeSeconds,
      maxTokens: active.config.cache.maxTokens,
      reload: reloads.status(),
      revocations: revocations.status(),
      metrics: await metrics.summary(),
    }),
  };

  try {
    const admin = await startAdminServer(tcpAddress(first.admin), adminPages);
    try {
      const address = parseListenAddress(first.listen);
      if (address.kind === 'problem') throw new Error(address.problem);
      await Promise.race([firstKeys.settled, sleep(firstKeysMs, undefined, { ref: false })]);
      const grpc = await startGrpcServer({
        address,
        tls: first.tls === undefined ? undefined : tlsSource(first.tls, logger),
        check,
        health: { Check: health.check, Watch: health.watch },
      });
      isBound = true;
      markReady();
      reloads.started();
      return {
        ports: { listen: grpc.port, admin: admin.port },
        config: () => active.config,
        reload(verdict) {
          const changed = changes.then(() => change(verdict));
          changes = changed.catch(() => undefined);
          return changed;
        },
        reloadRevocations: revocations.reloadNow,
        reloadStatus: reloads.status,
        async stop() {
          health.drain();
          await grpc.stop(active.config.shutdown.graceSeconds * 1000, health.endWatches);
          isStopped = true;
          revocations.stop();
          await Promise.all([admin.stop(), keyRings.stop()]);
          await changes;
        },
      };
    } catch (error) {
      await admin.stop();
      throw error;
    }
  } catch (error) {
    await keyRings.stop();
    throw error;
  }
}

// One line for all issuers that share a source: with a thousand of them, each failed refresh would write a thousand lines.
function named(issuers: readonly string[]) {
  return { issuer: issuers[0], ...(issuers.length > 1 ? { issuers: issuers.length } : {}) };
}

/** Settled when each issuer has had its first refresh or usable set. */
function createFirstKeys({ issuers }: Config) {
  const awaited = new Set(issuers.map(({ issuer }) => issuer));
  const { promise, resolve } = createDeferred<void>();
  return {
    settled: promise,
    settle(issuer: string): void {
      awaited.delete(issuer);
      if (awaited.size === 0) resolve();
    },
  };
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
    onRefused: problem => logger.warn({ problem }, 'tls files refused, the old certificate stays in use'),
  };
}

function tcpAddress(text: string): { host: string; port: number } {
  const address = parseListenAddress(text);
  if (address.kind !== 'tcp') throw new Error('admin is not a TCP address');
  return address;
}
