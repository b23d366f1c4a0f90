// Loads the configuration for a command that fetches keys as the service does.
import { type LoadedConfig, type LoadOptions, loadConfig } from '../config/load.ts';
import { formatProblems } from '../config/problems.ts';
import { type CommandIo, usageError } from './command.ts';
import { environmentProblem } from './environment.ts';

/** Undefined after its problems are printed: the command ends with code 1. */
export async function loadFetchingConfig(
  name: string,
  file: string,
  io: CommandIo,
  options?: LoadOptions,
): Promise<LoadedConfig | undefined> {
  const unsafe = environmentProblem(io.env);
  if (unsafe !== undefined) {
    usageError(io, name, unsafe);
    return undefined;
  }
  const loaded = await loadConfig(file, options);
  if (loaded.kind === 'config') return loaded;
  io.stderr.write(formatProblems(file, loaded.problems));
  return undefined;
}
