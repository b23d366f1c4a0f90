// A configuration file → the effective settings, or everything that is wrong with it and with the files it names.
// Asks nothing of the network.
import { dirname, resolve } from 'node:path';
import { type FileContent, loadBoundedFile } from '../files/bounded-file.ts';
import { loadNamedFileProblems, resolveNamedFiles } from './named-files.ts';
import { type Misconfiguration, misconfiguration, toPlace, unreadable } from './problems.ts';
import { type Config, configSchema } from './schema.ts';
import { toSchemaProblems } from './schema-problems.ts';
import { parseYamlDocument } from './yaml-document.ts';

/** The names of files in it are absolute: relative ones start at the folder of the configuration file. */
export interface LoadedConfig {
  readonly kind: 'config';
  readonly config: Config;
}

export async function loadConfig(file: string): Promise<LoadedConfig | Misconfiguration> {
  return judgeConfig(await loadBoundedFile(file), file);
}

/** The same for what was read from the file before. Reads the files that it names. */
export async function judgeConfig(content: FileContent, file: string): Promise<LoadedConfig | Misconfiguration> {
  if (content.kind === 'problem') return unreadable(content.problem);
  const document = parseYamlDocument(content.bytes);
  const problems = document.problems.map(({ path, position, message }) => ({
    place: toPlace(path),
    ...position,
    message,
  }));
  if (document.kind === 'problems') return misconfiguration(problems);

  const folder = dirname(resolve(file));
  const parsed = configSchema.safeParse(document.value);
  for (const { path, part, message } of toSchemaProblems(parsed.error?.issues ?? [], document.value)) {
    problems.push({ place: toPlace(path), ...document.positionOf(path, part), message });
  }
  for (const { path, message } of await loadNamedFileProblems(document.value, folder)) {
    problems.push({ place: toPlace(path), ...document.positionOf(path, 'value'), message });
  }
  if (!parsed.success || problems.length > 0) return misconfiguration(problems);
  return { kind: 'config', config: resolveNamedFiles(parsed.data, folder) };
}
