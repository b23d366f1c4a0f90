// The composition root: a configuration in, a running service out (start, reload, stop). All wiring stands here, by hand; what the
// parts do stands in their own folders.

import { parseListenAddress } from './address/listen-address.ts';
import { createCheck } from './check.ts';
import { settingsThatNeedRestart } from './config/restart-settings.ts';
import type { Config } from './config/schema.ts';
import { type ConfigVerdict, refusedConfig } from './config/verdict.ts';
import { createEngine, createTokenMemory, type Engine, type TokenMemory } from './engine.ts';
import { type Answers, createAnswers } from './envoy/answers.ts';
import { startGrpcServer } from './envoy/grpc-server.ts';
import { createIdentityHeaders } from './envoy/identity-headers.ts';
import type { TlsSource } from './envoy/tls-credentials.ts';
import { loadTlsFiles } from './files/tls-files.ts';
import { isKeyFileError, type KeyRingObserver, type ProxySettings } from './keys/key-ring.ts';
import { createKeyRings } from './keys/key-rings.ts';
import { type AdminPages, startAdminServer } from './operations/admin-server.ts';
import { createCheckSpans, registeredTracer } from './operations/check-spans.ts';
import { describeFault } from './operations/fault.ts';
import { createHealth } from './operations/health.ts';
import { type Logger, logCheck } from './operations/log.ts';
import { createMetrics } from './operations/metrics.ts';
import { createReloadRecord, type ReloadStatus } from './operations/reload-record.ts';

export interface Service {
  /** Bound ports; `listen` is 0 for a Unix socket. */
  readonly ports: { readonly listen: number; readonly admin: number };
  /** In effect now, but for the settings that need a restart. */
  config(): Config;
  /**
   * A good configuration takes effect for the next call, a refused one changes nothing. One after the other, also after one that
   * rejected; rejects only on a fault, which must end the process.
   */
  reload(verdict: ConfigVerdict): Promise<void>;
  reloadStatus(): ReloadStatus;
  /** Not ready at once, calls answered while they come, everything closed within `shutdown.graceSeconds`. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly proxy: ProxySettings;
}

/** All that one configuration decides over a call. */
interface Generation {
  readonly config: Config;
  readonly memory: TokenMemory;
  readonly engine: Engine;
  readonly answers: Answers;
}

/** Rejects where a file of keys or of TLS is not usable or an address cannot be bound; nothing is left running then. */
export async function startService({ config: first, version, logger, proxy }: ServiceOptions): Promise<Service> {
  const now = (): number => Date.now() / 1000;
  const health = createHealth();
  const metrics = createMetrics(version, {
    keySets: () => keyRings.inForce().map(ring => ring.status()),
    cachedTokens: () => inForce.engine.cachedTokens(),
  });
  const reloads = createReloadRecord({ logger, metrics, now });
  let isBound = false;
  const markReady = (): void => {
    if (isBound && keyRings.inForce().some(ring => ring.status().state === 'usable')) health.markReady();
  };
  const observer: KeyRingObserver = {
    onRefresh({ issuer, result, problem, keys, skipped }) {
      metrics.countKeyRefresh(issuer, result);
      if (result === 'failure') logger.warn({ issuer, problem }, 'key refresh failed');
      else logger.debug({ issuer, keys, skipped }, 'key refresh');
    },
    onUsable(issuer) {
      logger.info({ issuer }, 'keys usable');
      markReady();
    },
    onWarning: ({ issuer, problem }) => logger.warn({ issuer, problem }, 'keys'),
  };
  const keyRings = createKeyRings({ observer, proxy });

  /** What is new runs beside what is in force. From `takeOver` on, which is one step for every call, it is in force. */
  async function prepare(config: Config, before?: Generation) {
    const prepared = await keyRings.prepare(config.issuers, config.keys);
    try {
      const memory = createTokenMemory(config, before?.memory);
      const identityHeaders = createIdentityHeaders(config.identityHeaders);
      const answers = createAnswers({ identityHeaders, forward: config.token.forward });
      const engine = createEngine({ config, keyRings: prepared.rings, memory, now });
      return { ...prepared, generation: { config, memory, engine, answers } };
    } catch (error) {
      await prepared.discard();
      throw error;
    }
  }

  const initial = await prepare(first);
  let inForce: Generation = initial.generation;
  initial.takeOver();

  let changes: Promise<void> = Promise.resolve();
  async function change(verdict: ConfigVerdict): Promise<void> {
    if (verdict.kind === 'refused') return reloads.refused(verdict);
    const { config } = verdict;
    const before = inForce.config;
    const next = await prepare(config, inForce).catch((error: unknown) => {
      // Nothing has changed yet, and nothing is left behind. From the switch on, a fault ends the process.
      if (!isKeyFileError(error)) logger.error({ fault: describeFault(error) }, 'fault');
      const problem = isKeyFileError(error) ? error.message : 'a fault, see the log line before this one';
      reloads.refused(refusedConfig([problem]));
    });
    if (next !== undefined) {
      if (health.isDraining()) return next.discard();
      inForce = next.generation;
      next.takeOver();
      logger.level = config.log.level;
      markReady();
      reloads.succeeded({ issuers: config.issuers.length, needsRestart: settingsThatNeedRestart(first, config) });
    }
    forgetIssuers(before, config);
  }

  // A refused configuration may have named an issuer too.
  function forgetIssuers(...configs: readonly Config[]): void {
    const known = new Set(inForce.config.issuers.map(({ issuer }) => issuer));
    for (const { issuer } of configs.flatMap(({ issuers }) => issuers))
      if (!known.has(issuer)) metrics.forgetIssuer(issuer);
  }

  const tracer = registeredTracer(version);
  const spans = tracer === undefined ? undefined : createCheckSpans(tracer);
  if (spans !== undefined) logger.info('spans are made, for the OpenTelemetry SDK of this process');
  const check = createCheck({
    current: () => inForce,
    record(record) {
      metrics.countCheck(record);
      logCheck(logger, inForce.config.log, record);
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
      issuers: keyRings.inForce().map(ring => ring.status()),
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
      maxAgeSeconds: inForce.config.keys.maxAgeSeconds,
      maxTokens: inForce.config.cache.maxTokens,
      reload: reloads.status(),
      metrics: await metrics.summary(),
    }),
  };

  try {
    const admin = await startAdminServer(tcpAddress(first.admin), adminPages);
    try {
      const address = parseListenAddress(first.listen);
      if (address.kind === 'problem') throw new Error(address.problem);
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
        config: () => inForce.config,
        reload(verdict) {
          const changed = changes.then(() => change(verdict));
          changes = changed.catch(() => undefined);
          return changed;
        },
        reloadStatus: reloads.status,
        async stop() {
          health.drain();
          await grpc.stop(inForce.config.shutdown.graceSeconds * 1000, health.endWatches);
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
