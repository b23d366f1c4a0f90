// Finds and formats what is wrong with an Envoy bootstrap or with a dump of a running Envoy. Prints no value of it, which may be a secret.
import { type ConfigProblem, formatProblems, toPlace, toProblem } from '../config/problems.ts';
import { parseYamlDocument, type TextProblem } from '../config/yaml-document.ts';
import { lintBootstrap } from '../envoy-config/lint/lint.ts';
import type { EnvoyRelevantConfig } from '../envoy-config/settings.ts';
import { loadBoundedFile } from '../files/bounded-file.ts';
import { parseBoundedJson } from '../json/strict-json.ts';
import { printable } from '../text/printable.ts';
import { askEnvoyAdmin } from './envoy-admin.ts';

interface EnvoyProblems {
  /** One line for each; empty if there is none. */
  readonly lines: string;
  /** What was read, if it could be. */
  readonly bytes: Uint8Array | undefined;
}

// A bootstrap is nested deeper than a configuration, and Envoy knows one tag.
const envoyYaml = { maxDepth: 64, keyTag: '!ignore' } as const;
// With positions, 4 MiB take 400 MB and some seconds. A dump of a large mesh is longer.
const maxBytesWithPositions = 4 * 1024 * 1024;
const maxBytes = 64 * 1024 * 1024;
const dumpTimeoutMs = 10_000;
const jsonBounds = { maxDepth: 80, maxValues: 5_000_000 } as const;
const start = { line: 1, column: 1 } as const;

/** The problems of a file, with line and column unless it is longer than 4 MiB. */
export async function findFileProblems(file: string, config: EnvoyRelevantConfig): Promise<EnvoyProblems> {
  const content = await loadBoundedFile(file, maxBytes);
  const found = (problems: readonly ConfigProblem[]) => formatProblems(file, problems);
  if (content.kind === 'problem') {
    return { lines: found([unreadable({ path: [], position: start, message: content.problem })]), bytes: undefined };
  }
  const { bytes } = content;
  if (bytes.length > maxBytesWithPositions) return { lines: jsonProblemLines(file, bytes, config), bytes };
  const document = parseYamlDocument(bytes, envoyYaml);
  const problems = document.problems.map(unreadable);
  if (document.kind === 'document') {
    for (const { path, message } of lintBootstrap(document.value, config)) {
      problems.push(toProblem({ path, position: document.positionOf(path, 'value'), message }));
    }
  }
  return {
    lines: found(problems.toSorted((one, other) => one.line - other.line || one.column - other.column)),
    bytes,
  };
}

/** The problems of the dump that the admin interface of an Envoy gives. */
export async function findAdminProblems(admin: URL, config: EnvoyRelevantConfig): Promise<EnvoyProblems> {
  const path = '/config_dump?include_eds';
  const answer = await askEnvoyAdmin({ admin, method: 'GET', path, timeoutMs: dumpTimeoutMs, maxBytes });
  const name = admin.href;
  if (answer.kind === 'problem') return { lines: lineOf(name, [], unread(answer.problem)), bytes: undefined };
  const bytes = Buffer.from(answer.text);
  return { lines: jsonProblemLines(name, bytes, config), bytes };
}

function jsonProblemLines(name: string, bytes: Uint8Array, config: EnvoyRelevantConfig): string {
  const parsed = parseBoundedJson(bytes, jsonBounds);
  if (parsed.kind === 'problem') return lineOf(name, [], unread(`it is no JSON that can be read: ${parsed.problem}`));
  return lintBootstrap(parsed.value, config)
    .map(({ path, message }) => lineOf(name, path, message))
    .join('');
}

function lineOf(name: string, path: readonly PropertyKey[], message: string): string {
  const about = path.length === 0 ? message : `${toPlace(path)}: ${message}`;
  return `${printable(name, 1024)}: ${printable(about, 2048)}\n`;
}

function unreadable(problem: TextProblem): ConfigProblem {
  return toProblem({ ...problem, message: unread(problem.message) });
}

function unread(problem: string): string {
  return `${problem} [unreadable-file]`;
}
