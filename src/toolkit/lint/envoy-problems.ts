// Finds and formats what is wrong with an Envoy bootstrap or with a dump of a running Envoy. Prints no value of it, which may be a secret.
import { type ConfigProblem, formatProblems, formatRemarks, toPlace, toProblem } from '../../config/problems.ts';
import { parseYamlDocument, type TextProblem } from '../../config/yaml-document.ts';
import { loadBoundedFile } from '../../files/bounded-file.ts';
import { askEnvoyAdmin } from '../../http/envoy-admin.ts';
import { memberOf, parseBoundedJson } from '../../json/strict-json.ts';
import { printable } from '../../text/printable.ts';
import type { EnvoyRelevantConfig } from '../envoy-settings/settings.ts';
import { describeForeignFile } from './foreign-file.ts';
import { lintEnvoy, type Remark } from './lint.ts';
import type { ValuePath } from './proto-value.ts';

interface EnvoyProblems {
  /** One line for each; empty if there is none. */
  readonly lines: string;
  readonly findings: number;
  /** Among the lines. */
  readonly notJudged: number;
  /** What was read, if it could be. */
  readonly bytes: Uint8Array | undefined;
}

// A bootstrap is nested deeper than a configuration. Envoy knows one tag, and reads 017 as 15 but 018 as 18.
export const reader = { ignoredTag: '!ignore', isMisread: (text: string): boolean => /^[-+]?0o?\d+$/.test(text) };
// With positions, as many values take 400 MB and some seconds. A dump of a large mesh is longer.
const envoyYaml = { maxDepth: 64, maxValues: 200_000, reader } as const;
const maxBytesWithPositions = 4 * 1024 * 1024;
const maxBytes = 16 * 1024 * 1024;
const dumpTimeoutMs = 10_000;
const jsonBounds = { maxDepth: 80, maxValues: 5_000_000 } as const;
const start = { line: 1, column: 1 } as const;

/** The problems of a file, with line and column unless it is JSON with more than 4 MiB or 200,000 values. */
export async function findFileProblems(file: string, config: EnvoyRelevantConfig): Promise<EnvoyProblems> {
  const content = await loadBoundedFile(file, maxBytes);
  // Without its bytes: no setting would help.
  const refused = (problems: readonly ConfigProblem[]): EnvoyProblems => ({
    lines: formatProblems(file, problems),
    findings: problems.length,
    notJudged: 0,
    bytes: undefined,
  });
  if (content.kind === 'problem') return refused([unreadable({ path: [], position: start, message: content.problem })]);
  const { bytes } = content;
  if (bytes.length > maxBytesWithPositions || hasManyValues(bytes)) return lintJson(file, bytes, config);
  // Each line is a value, or a comment that takes as long.
  if (bytes.reduce((lines, byte) => (byte === 10 ? lines + 1 : lines), 0) > envoyYaml.maxValues)
    return refused([
      unreadable({ path: [], position: start, message: `has more than ${envoyYaml.maxValues} lines: pass it as JSON` }),
    ]);
  const document = parseYamlDocument(bytes, envoyYaml);
  const problems = document.problems.map(unreadable);
  const named = (message: string): EnvoyProblems => refused([unreadable({ path: [], position: start, message })]);
  const foreign = document.kind === 'document' ? describeForeignFile(document.value) : describeDocuments(bytes);
  if (foreign !== undefined) return named(foreign);
  if (document.kind !== 'document') return hasPlaceholders(bytes) ? named(placeholders) : refused(problems);
  const { problems: found, notJudged } = lintEnvoy(document.value, config);
  const at = (path: ValuePath, message: string) =>
    toProblem({ path, position: document.positionOf(path, 'value'), message });
  if (found.some(({ rule }) => rule === 'unreadable-value' || rule === 'nothing-checked') && hasPlaceholders(bytes))
    return named(placeholders);
  problems.push(...found.map(({ path, message }) => at(path, message)));
  const misread = 'which Envoy reads otherwise: the lint cannot check it; write it without [unreadable-value]';
  problems.push(...document.misread.map(each => toProblem({ ...each, message: `${each.message}, ${misread}` })));
  const ignored = document.ignored.map(each => toProblem({ ...each, message: 'is ignored by Envoy (`!ignore`)' }));
  const unknown = [...ignored, ...notJudged.map(({ path, message }) => at(path, message))];
  return {
    lines: formatProblems(file, inOrder(problems)) + formatRemarks('not-judged: ', file, inOrder(unknown)),
    findings: document.problems.length + countOf(found) + document.misread.length,
    notJudged: ignored.length + countOf(notJudged),
    bytes,
  };
}

function countOf(all: readonly Remark[]): number {
  return all.reduce((sum, { count = 1 }) => sum + count, 0);
}

/** If it is JSON; as YAML it would take half a minute. */
function hasManyValues(bytes: Uint8Array): boolean {
  const parsed = parseBoundedJson(bytes, { maxDepth: 100_000, maxValues: envoyYaml.maxValues });
  return parsed.kind === 'problem' && /^(?:too many values|nested too deep)$/.test(parsed.problem);
}

function inOrder(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  return problems.toSorted((one, other) => one.line - other.line || one.column - other.column);
}

const placeholders = 'has placeholders of a template: render it first, and pass the result';

const maxDocuments = 100;

/** Several YAML documents in one file are manifests of Kubernetes. */
function describeDocuments(bytes: Uint8Array): string | undefined {
  const texts = Buffer.from(bytes)
    .toString()
    .split(/^---.*$/m, maxDocuments);
  const read = texts.map(text => parseYamlDocument(Buffer.from(text), envoyYaml));
  const items = read.flatMap(each => (each.kind === 'document' && each.value !== null ? [each.value] : []));
  const isManifest = items.length > 0 && items.every(each => memberOf(each, 'apiVersion') !== undefined);
  return isManifest ? describeForeignFile({ apiVersion: 'v1', kind: 'List', items }) : undefined;
}

function hasPlaceholders(bytes: Uint8Array): boolean {
  return /\{\{[^{}]*\}\}|\$\{\w|<%/.test(Buffer.from(bytes).toString());
}

/** The problems of the dump that the admin interface of an Envoy gives. */
export async function findAdminProblems(admin: URL, config: EnvoyRelevantConfig): Promise<EnvoyProblems> {
  const path = '/config_dump?include_eds';
  const answer = await askEnvoyAdmin({ admin, method: 'GET', path, timeoutMs: dumpTimeoutMs, maxBytes });
  const name = admin.href;
  if (answer.kind === 'problem')
    return { lines: lineOf(name, [], unread(answer.problem)), findings: 1, notJudged: 0, bytes: undefined };
  return lintJson(name, Buffer.from(answer.text), config);
}

function lintJson(name: string, bytes: Uint8Array, config: EnvoyRelevantConfig): EnvoyProblems {
  const parsed = parseBoundedJson(bytes, jsonBounds);
  const foreign =
    parsed.kind === 'problem' ? `it is no JSON that can be read: ${parsed.problem}` : describeForeignFile(parsed.value);
  if (foreign !== undefined || parsed.kind === 'problem')
    return { lines: lineOf(name, [], unread(foreign ?? '')), findings: 1, notJudged: 0, bytes: undefined };
  const { problems, notJudged } = lintEnvoy(parsed.value, config);
  let lines = '';
  for (const { path, message } of problems) lines += lineOf(name, path, message);
  for (const { path, message } of notJudged) lines += `not-judged: ${lineOf(name, path, message)}`;
  return { lines, findings: countOf(problems), notJudged: countOf(notJudged), bytes };
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
