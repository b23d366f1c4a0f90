// The active configuration: prepares another one beside it, switches all calls to that one in one step, and forgets what is gone.
import { createEngine, createTokenMemory, type Engine, type TokenMemory } from '../check/engine.ts';
import { toResponseSettings } from '../check/response-settings.ts';
import type { EffectiveConfig } from '../config/load.ts';
import { type RefusedConfig, refusedConfig } from '../config/problems.ts';
import type { Config } from '../config/schema.ts';
import { type Answers, createAnswers } from '../envoy/answers.ts';
import { accepted, type WatchOutcome } from '../files/file-watch.ts';
import { tlsFileKeys } from '../files/tls-files.ts';
import { KeyFileError } from '../keys/key-ring.ts';
import type { KeyRings } from '../keys/key-rings.ts';
import { describeFault } from '../text/problem.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { ReloadRecord, Widening } from './reload-record.ts';
import { RevocationFileError, type Revocations } from './revocations.ts';

/** A configuration with everything built from it. */
interface ActiveConfig {
  readonly config: Config;
  readonly memory: TokenMemory;
  readonly engine: Engine;
  readonly answers: Answers;
}

export interface ActiveConfigs {
  current(): ActiveConfig;
  /** Resolves when the first fetch for each issuer of the start has ended, successful or not. */
  readonly firstFetched: Promise<void>;
  /**
   * Applies a valid configuration from the next call on; a refused one changes nothing. Preserves FIFO order, even after a reload
   * that rejected. Rejects only on an internal error, which must end the process. `widening` is awaited after the switch, for the log
   * line: it must never reject.
   */
  reload(loaded: EffectiveConfig | RefusedConfig, widening?: Promise<Widening | undefined>): Promise<WatchOutcome>;
  /** From now on nothing is applied. Does not wait for a reload in progress: the file that it reads may be on a mount that hangs. */
  stop(): void;
}

/** Rejects if a key file or the revocation list is unusable. */
export async function activateFirst(
  first: Config,
  deps: {
    readonly keyRings: KeyRings;
    readonly revocations: Revocations;
    readonly reloads: ReloadRecord;
    readonly metrics: Pick<Metrics, 'forgetIssuer'>;
    readonly logger: Logger;
    readonly now: () => number;
    /** Called after each switch. */
    readonly onActive: () => void;
  },
): Promise<ActiveConfigs> {
  const { keyRings, revocations, reloads, metrics, logger, now, onActive } = deps;

  /** Starts what is new beside what is active. */
  async function prepare(config: Config, before?: ActiveConfig) {
    const listed = await revocations.prepare(config);
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
      const engine = createEngine({ config, keyRings: prepared.rings, memory, revocations: listed.current, now });
      const activate = (): void => {
        prepared.activate();
        listed.activate();
      };
      const activeConfig: ActiveConfig = { config, memory, engine, answers };
      const fetched = async (): Promise<void> => {
        await Promise.all([prepared.fetched(), listed.fetched()]);
      };
      return { activeConfig, fetched, activate, discard };
    } catch (error) {
      await discard();
      throw error;
    }
  }

  const initial = await prepare(first);
  let active = initial.activeConfig;
  initial.activate();
  let isStopped = false;
  let inOrder: Promise<unknown> = Promise.resolve();

  async function change(
    loaded: EffectiveConfig | RefusedConfig,
    widening?: Promise<Widening | undefined>,
  ): Promise<WatchOutcome> {
    const refused: WatchOutcome = { kind: 'refused', alsoWatch: loaded.namedFiles ?? [] };
    if (loaded.kind === 'refused') {
      reloads.refused(loaded);
      return refused;
    }
    const { config } = loaded;
    const before = active.config;
    // Nothing has changed yet. After the switch, an internal error ends the process.
    const next = await prepare(config, active).catch((error: unknown) => reloads.refused(toRefused(error)));
    if (next !== undefined && isStopped) await next.discard();
    else if (next !== undefined) {
      active = next.activeConfig;
      next.activate();
      logger.level = config.log.level;
      onActive();
      reloads.succeeded({
        issuers: config.issuers.length,
        needsRestart: settingsThatNeedRestart(first, config),
        widening: await widening,
      });
    }
    // A refused configuration may have named an issuer too.
    forgetIssuers(before, config);
    return next === undefined ? refused : accepted;
  }

  function toRefused(error: unknown) {
    if (error instanceof RevocationFileError) return error.refused;
    if (error instanceof KeyFileError) return refusedConfig([error.message]);
    logger.error({ fault: describeFault(error) }, 'fault');
    return refusedConfig(['internal error: see the log line before this one']);
  }

  function forgetIssuers(...configs: readonly Config[]): void {
    const known = new Set(active.config.issuers.map(({ issuer }) => issuer));
    for (const { issuer } of configs.flatMap(({ issuers }) => issuers))
      if (!known.has(issuer)) metrics.forgetIssuer(issuer);
  }

  return {
    current: () => active,
    firstFetched: initial.fetched(),
    reload(loaded, widening) {
      const changed = inOrder.then(() => change(loaded, widening));
      inOrder = changed.catch(() => undefined);
      return changed;
    },
    stop() {
      isStopped = true;
    },
  };
}

/** The names of the settings that differ from those at the start. */
function settingsThatNeedRestart(started: Config, changed: Config): readonly string[] {
  const before = new Map(settingsOfStart(started));
  return settingsOfStart(changed).flatMap(([name, value]) => (before.get(name) === value ? [] : [name]));
}

type Setting = readonly [name: string, value: string | undefined];

function settingsOfStart({ listen, admin, tls }: Config): readonly Setting[] {
  return [['listen', listen], ['admin', admin], ...tlsFileKeys.map(key => [`tls.${key}`, tls?.[key]] as const)];
}
