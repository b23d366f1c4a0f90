// Loads a configuration file: the effective settings, or every problem of it and of the files that it names.
// Does not use the network.
import { dirname, resolve } from 'node:path';
import { type FileContent, loadBoundedFile } from '../files/bounded-file.ts';
import { loadNamedFileProblems, resolveNamedFiles } from './named-files.ts';
import { type Misconfiguration, misconfiguration, toProblem, unreadable } from './problems.ts';
import { type Config, configSchema } from './schema.ts';
import { toProblems } from './schema-problems.ts';
import { parseYamlDocument } from './yaml-document.ts';

/** File names are absolute: relative ones start at the folder of the configuration file. */
export interface LoadedConfig {
  readonly kind: 'config';
  readonly config: Config;
}

export async function loadConfig(file: string): Promise<LoadedConfig | Misconfiguration> {
  return validateConfig(await loadBoundedFile(file), file);
}

/** Validates content that has been read from the file, and reads the files that it names. */
export async function validateConfig(content: FileContent, file: string): Promise<LoadedConfig | Misconfiguration> {
  if (content.kind === 'problem') return unreadable(content.problem);
  const document = parseYamlDocument(content.bytes);
  const problems = document.problems.map(toProblem);
  if (document.kind === 'problems') return misconfiguration(problems);

  const folder = dirname(resolve(file));
  const parsed = configSchema.safeParse(document.value, { reportInput: true });
  problems.push(...toProblems(parsed.error?.issues ?? [], document));
  for (const { path, message } of await loadNamedFileProblems(document.value, folder)) {
    problems.push(toProblem({ path, position: document.positionOf(path, 'value'), message }));
  }
  if (!parsed.success || problems.length > 0) return misconfiguration(problems);
  return { kind: 'config', config: resolveNamedFiles(parsed.data, folder) };
}
