// A configuration file → the effective settings, or everything that is wrong with it and with the files it names.
// Asks nothing of the network.
import { dirname, resolve } from 'node:path';
import { type FileContent, loadBoundedFile } from './bounded-file.ts';
import { loadNamedFileProblems, resolveNamedFiles } from './named-files.ts';
import { type Config, configSchema } from './schema.ts';
import { toSchemaProblems } from './schema-problems.ts';
import { parseYamlDocument } from './yaml-document.ts';

export interface Problem {
  /** Where in the configuration: `issuers[0].audiences`; empty for the file as a whole. */
  readonly place: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
  /** The rest of a sentence that starts with the place; printable, without any text of the file. */
  readonly message: string;
}

export interface Misconfiguration {
  readonly kind: 'misconfiguration';
  /** Never empty, in the order of the file. */
  readonly problems: readonly Problem[];
}

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
  if (content.kind === 'problem')
    return misconfiguration([{ place: '', line: 1, column: 1, message: content.problem }]);
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

/** `config.yaml:12:5: issuers[0].audiences: must name at least one audience`, one line each, each with its line end. */
export function formatProblems(file: string, problems: readonly Problem[]): string {
  return problems
    .map(({ place, line, column, message }) => {
      const about = place === '' ? message : `${place}: ${message}`;
      return `${toPrintable(file)}:${line}:${column}: ${about}\n`;
    })
    .join('');
}

function misconfiguration(problems: readonly Problem[]): Misconfiguration {
  const sorted = problems.toSorted((one, other) => one.line - other.line || one.column - other.column);
  return { kind: 'misconfiguration', problems: sorted };
}

const maxKeyLength = 64;

/** `issuers[0].audiences` of a path; keys that are no plain names in brackets and quotes. */
export function toPlace(path: readonly PropertyKey[]): string {
  return path
    .map((segment, i) => {
      if (typeof segment === 'number') return `[${segment}]`;
      const key = String(segment);
      if (/^[A-Za-z_][\w-]{0,63}$/.test(key)) return i === 0 ? key : `.${key}`;
      const shown = key.length > maxKeyLength ? `${key.slice(0, maxKeyLength)}…` : key;
      return `[${toPrintable(JSON.stringify(shown))}]`;
    })
    .join('');
}

/** Escapes what a terminal or a log could take for something else than text: controls, line ends, marks of direction, halves of pairs. */
export function toPrintable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, character => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}
