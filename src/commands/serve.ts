// `serve`: runs the service until it is told to stop.

import { judgeInThread } from '../config/config-thread.ts';
import type { LoadedConfig } from '../config/load.ts';
import { formatProblems, type Misconfiguration } from '../config/problems.ts';
import { type ConfigWatch, startConfigWatch } from '../config/watch.ts';
import { type FileContent, loadBoundedFile } from '../files/bounded-file.ts';
import { foreignText } from '../foreign-text.ts';
import { isKeyFileError } from '../keys/key-ring.ts';
import { createLogger, type Logger } from '../operations/log.ts';
import { type Service, startService } from '../service.ts';
import { version } from '../version.ts';
import { type CommandIo, defaultConfigFile, helpOption, parseCommandLine } from './command.ts';
import { environmentProblem, proxyOf } from './environment.ts';

const usage = `account-authz serve [--config FILE]

  --config FILE   the configuration, ${defaultConfigFile} if not given

A change of the file takes effect within five seconds, on SIGHUP at once; a bad one is refused, and the old configuration stays.
SIGTERM and SIGINT stop the service.

Exit code: 0 after a clean stop, 1 bad configuration, 2 a fault or a port in use.
`;

export async function serve(args: readonly string[], io: CommandIo): Promise<number> {
  const options = { config: { type: 'string', default: defaultConfigFile }, ...helpOption } as const;
  const parsed = parseCommandLine({ name: 'serve', usage, args, options }, io);
  if (parsed.kind === 'end') return parsed.code;
  const file = parsed.values.config;
  const unsafe = environmentProblem(io.env);
  if (unsafe !== undefined) {
    io.stderr.write(`account-authz: ${unsafe}\n`);
    return 1;
  }
  // What the service creates is for its own user; a mode that gives more is given to a file that is there (socket-file.ts).
  process.umask(0o077);
  const content = await loadBoundedFile(file);
  const loaded = await judgeAtStart(content, file);
  if (loaded.kind === 'misconfiguration') {
    io.stderr.write(formatProblems(file, loaded.problems));
    return 1;
  }
  const { config } = loaded;
  const logger = createLogger(config.log, io.log);
  const stopAsked = untilSignal(['SIGTERM', 'SIGINT']);
  const hangUps = createHangUps();
  try {
    const service = await startService({ config, version, logger, proxy: proxyOf(io.env) });
    logger.info({ version, listen: config.listen, admin: config.admin, ports: service.ports }, 'serving');
    const watch = await watchFile(file, content, service, logger);
    hangUps.call(watch.reportNow);
    const signal = await stopAsked;
    logger.info({ signal, graceSeconds: service.config().shutdown.graceSeconds }, 'stopping');
    watch.stop();
    await service.stop();
    logger.info('stopped');
    return 0;
  } catch (error) {
    io.stderr.write(`account-authz: ${foreignText(error instanceof Error ? error.message : String(error), 1024)}\n`);
    return isKeyFileError(error) ? 1 : 2;
  } finally {
    io.log.flushSync();
  }
}

/** In a thread like any later one. What is refused there is judged once more, for all that is wrong with it, and without bounds. */
async function judgeAtStart(content: FileContent, file: string): Promise<LoadedConfig | Misconfiguration> {
  const verdict = await judgeInThread(content, file, { keepsProcess: true });
  if (verdict.kind === 'config') return verdict;
  const { judgeConfig } = await import('../config/load.ts');
  return judgeConfig(content, file);
}

function watchFile(file: string, known: FileContent, service: Service, logger: Logger): Promise<ConfigWatch> {
  return startConfigWatch({
    file,
    known,
    onContent: async content => service.reload(await judgeInThread(content, file)),
    onProblem: problem => logger.warn({ problem }, 'configuration watch'),
  });
}

/** Heard from now on, since the signal ends a process that does not listen; one that came before `call` is not lost. */
function createHangUps(): { call(onHangUp: () => void): void } {
  let heard = false;
  let tell = (): void => {
    heard = true;
  };
  process.on('SIGHUP', () => tell());
  return {
    call(onHangUp) {
      tell = onHangUp;
      if (heard) onHangUp();
    },
  };
}

function untilSignal(signals: readonly NodeJS.Signals[]): Promise<string> {
  return new Promise(resolve => {
    for (const signal of signals) process.on(signal, resolve);
  });
}
