// `serve`: runs the service until SIGTERM or SIGINT.
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { readConfigFile, validateConfig } from '../config/load.ts';
import { formatProblems, refuse, refusedConfig, unreadable } from '../config/problems.ts';
import type { Config } from '../config/schema.ts';
import type { FileContent } from '../files/bounded-file.ts';
import {
  createFileWatch,
  digestOf,
  type FileVersion,
  type FileWatch,
  fileVersions,
  type WatchFiles,
} from '../files/file-watch.ts';
import { askEnvoyAdmin, envoyAdminRule, parseEnvoyAdmin } from '../http/envoy-admin.ts';
import { version } from '../package.ts';
import { createLogger, type Logger } from '../service/log.ts';
import { nghttp2Warning } from '../service/nghttp2.ts';
import type { Widening } from '../service/reload-record.ts';
import { RevocationFileError } from '../service/revocations.ts';
import { type Service, startService } from '../service/service.ts';
import { describeFault } from '../text/problem.ts';
import { CommandError, defaultConfigFile, defineCommand } from './command.ts';
import { proxyOf, requireSafeEnvironment } from './command-input.ts';

const usage = `account-authz serve [options]

Runs the service until SIGTERM or SIGINT.

  --config FILE       the configuration, ${defaultConfigFile} if not given
  --envoy-admin URL   at the start, tell the Envoy with this admin interface once that it is healthy (POST /healthcheck/ok):
                      takes back what an earlier drain told it

A change of the configuration or the revocation list takes effect within 5 seconds, or at once on SIGHUP.
An invalid change is refused and logged, and the old configuration stays in effect.

Exit code: 0 clean stop, 1 invalid configuration or usage error, 2 internal error or port in use.
`;

export const command = defineCommand({
  name: 'serve',
  usage,
  options: { config: { type: 'string', default: defaultConfigFile }, 'envoy-admin': { type: 'string' } },
  async run({ values, io }) {
    const { config: file, 'envoy-admin': envoyAdmin } = values;
    const admin = envoyAdmin === undefined ? undefined : parseEnvoyAdmin(envoyAdmin);
    if (envoyAdmin !== undefined && admin === undefined) throw new CommandError(envoyAdminRule);
    requireSafeEnvironment(io.env);
    const stopSignal = untilSignal(['SIGTERM', 'SIGINT']);
    const reloadSignal = listenForReloadSignal();
    // Takes back a drain: the kubelet runs preStop before a liveness restart too. Not later: it could undo the drain of this process's own stop.
    const healthy = admin && (await askEnvoyAdmin({ admin, method: 'POST', path: '/healthcheck/ok', timeoutMs: 1000 }));
    // Files that the service creates are for its own user only; socket-file.ts gives the socket its mode afterwards.
    process.umask(0o077);
    const versions = await fileVersions([file]);
    const content = await readConfigFile(file);
    const config = await validConfig(content, file);
    const logger = createLogger(config.log, io.log);
    if (healthy?.kind === 'problem') logger.warn({ problem: healthy.problem }, 'Envoy not told that it is healthy');
    try {
      const watchFiles = createFileWatch({
        onMountedAlone: file => logger.warn({ file, problem: mountedAlone }, 'mounted alone, it never changes'),
      });
      const service = await startService({ config, version, logger, proxy: proxyOf(io.env), watchFiles });
      logger.info({ version, listen: config.listen, admin: config.admin, ports: service.ports }, 'serving');
      const oldNghttp2 = nghttp2Warning();
      if (oldNghttp2 !== undefined) logger.warn({ problem: oldNghttp2 }, 'old nghttp2');
      const digest = content.kind === 'bytes' ? digestOf(content.bytes) : '';
      const known = versions.map(each => ({ ...each, digest }));
      const inForce = content.kind === 'bytes' ? content.bytes : undefined;
      const watch = watchConfig({ file, inForce, known, service, watchFiles, logger });
      reloadSignal.onSignal(() => {
        watch.applyNow();
        service.reloadRevocations();
      });
      const signal = await stopSignal;
      logger.info({ signal, graceSeconds: service.config().shutdown.graceSeconds }, 'stopping');
      await service.stop();
      watch.stop();
      logger.info('stopped');
      return 0;
    } catch (error) {
      if (!(error instanceof RevocationFileError)) throw error;
      throw new CommandError(`${error.refused.problems.join('\n')}\n`, { areLines: true });
    } finally {
      io.log.flushSync();
    }
  },
});

// A function of its own: the frame of `run` lives as long as the service, and would hold the whole document.
async function validConfig(content: FileContent, file: string): Promise<Config> {
  // The service reads the list of a valid configuration itself.
  const loaded = await validateConfig(content, file, { readsRevocations: 'if invalid' });
  if (loaded.kind === 'config') return loaded.config;
  throw new CommandError(formatProblems(file, loaded.problems), { areLines: true });
}

const mountedAlone =
  'this file never changes: it was mounted alone (subPath), and its source was replaced; mount its folder';

function watchConfig(options: {
  readonly file: string;
  readonly inForce: Uint8Array | undefined;
  readonly known: readonly FileVersion[];
  readonly service: Service;
  readonly watchFiles: WatchFiles;
  readonly logger: Logger;
}): FileWatch {
  const { file, known, service, watchFiles, logger } = options;
  let { inForce } = options;
  return watchFiles({
    files: [file],
    known,
    load: () => readConfigFile(file, { isRegular: true }),
    async apply(content, isRetry) {
      if (content.kind === 'bytes' || content.reason !== 'other') {
        const loaded = await validateConfig(content, file, { readsRevocations: false }).catch((error: unknown) => {
          logger.error({ fault: describeFault(error) }, 'fault');
          return unreadable('internal error: see the log line before this one');
        });
        if (loaded.kind !== 'config') return service.reload(refuse(file, loaded));
        if (content.kind !== 'bytes') return service.reload(loaded);
        const outcome = await service.reload(loaded, findWidening(inForce, content.bytes));
        if (outcome.kind === 'accepted') inForce = content.bytes;
        return outcome;
      }
      if (!isRetry) await service.reload(refusedConfig([`${file}: ${content.problem}`]));
      return { kind: 'retry' };
    },
  });
}

// A thread has its own heap; a comparison that needs more is left out, as one that takes longer.
const wideningLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 } as const;
/** For the comparison; the thread itself starts in a third of a second. */
const wideningMs = 250;
const threadStartMs = 2000;

/** What the new configuration allows more, found by a thread beside the one that decides; undefined where it takes too long. Never rejects. */
async function findWidening(old: Uint8Array | undefined, now: Uint8Array): Promise<Widening | undefined> {
  if (old === undefined) return undefined;
  const worker = new Worker(new URL('./compare-worker.js', import.meta.url), {
    workerData: [old, now],
    resourceLimits: wideningLimits,
    stdout: true,
    stderr: true,
  });
  const ended = new Promise<undefined>(resolve => {
    for (const event of ['error', 'exit']) worker.once(event, () => resolve(undefined));
  });
  const message = <T>(timeoutMs: number): Promise<T | undefined> => {
    const received = new Promise<T>(resolve => worker.once('message', resolve));
    return Promise.race([received, ended, delay(timeoutMs, undefined, { ref: false })]);
  };
  const isReady = (await message<'ready'>(threadStartMs)) === 'ready';
  const widening = isReady ? await message<Widening>(wideningMs) : undefined;
  await worker.terminate();
  return widening;
}

/** Listens from now on, because SIGHUP ends a process without a listener. A signal before `onSignal` is not lost. */
function listenForReloadSignal(): { onSignal(reload: () => void): void } {
  let wasReceived = false;
  let handle = (): void => {
    wasReceived = true;
  };
  process.on('SIGHUP', () => handle());
  return {
    onSignal(reload) {
      handle = reload;
      if (wasReceived) reload();
    },
  };
}

function untilSignal(signals: readonly NodeJS.Signals[]): Promise<string> {
  return new Promise(resolve => {
    for (const signal of signals) process.on(signal, resolve);
  });
}
