// Problems of a configuration and how they are printed. Does not import the parser, because the service prints problems too.
import type * as z from 'zod';
import type { FileVersion } from '../files/file-watch.ts';

import { isJsonObject } from '../json/strict-json.ts';
import type { LineProblem } from '../revocation/list-reader.ts';
import { printable, quotedPrintable } from '../text/printable.ts';
import type { PathProblem, TextProblem, YamlDocument } from './yaml-document.ts';

export interface ConfigProblem {
  /** The file, if it is not the configuration but one that it names. */
  readonly file?: string;
  /** The path in the configuration: `issuers[0].audiences`; empty for the whole file. */
  readonly place: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
  /** The rest of a sentence that starts with the place. Repeats no text of the file. */
  readonly message: string;
}

export interface Misconfiguration {
  readonly kind: 'misconfiguration';
  /** Never empty: those of the configuration in the order of the file, then those of the files that it names. */
  readonly problems: readonly ConfigProblem[];
  /** The files that the configuration names, as they were before they were read. */
  readonly namedFiles?: readonly FileVersion[];
}

/** A configuration, or a list, that a running service refuses: its problems as check-config prints them, bounded for one log line. */
export interface RefusedConfig {
  readonly kind: 'refused';
  /** The first ones. */
  readonly problems: readonly string[];
  /** The number of all problems. */
  readonly count: number;
  readonly namedFiles?: readonly FileVersion[];
}

const maxRefusedProblems = 20;
const maxRefusedLength = 300;

export function refuse(file: string, { problems, namedFiles = [] }: Misconfiguration): RefusedConfig {
  const lines = problems.slice(0, maxRefusedProblems).map(each => formatProblems(file, [each]).trimEnd());
  return { ...refusedConfig(lines), count: problems.length, namedFiles };
}

export function refusedConfig(problems: readonly string[]): RefusedConfig {
  const shown = problems.map(problem => printable(problem, maxRefusedLength));
  return { kind: 'refused', problems: shown, count: problems.length };
}

export function toProblem({ path, position, message }: TextProblem): ConfigProblem {
  return { place: toPlace(path), ...position, message };
}

/** The problems of a revocation list. Without a member, the problem is about the whole line. */
export function toListProblems(file: string, problems: readonly LineProblem[]): readonly ConfigProblem[] {
  return problems.map(({ line, member, message }) => ({
    file,
    place: member === undefined ? '' : toPlace([member]),
    line,
    column: 1,
    message,
  }));
}

/** One line for each problem: `config.yaml:12:5: issuers[0].audiences: must name at least one audience`. */
export function formatProblems(configFile: string, problems: readonly ConfigProblem[]): string {
  return problems
    .map(({ file = configFile, place, line, column, message }) => {
      const about = place === '' ? message : `${place}: ${message}`;
      return `${printable(file, maxLineLength)}:${line}:${column}: ${printable(about, maxLineLength)}\n`;
    })
    .join('');
}

/** The same for what is valid, each line after `warning: ` or, as a comment in YAML, `# information: `. */
export function formatRemarks(
  kind: 'warning: ' | '# information: ' | 'not-judged: ',
  configFile: string,
  remarks: readonly ConfigProblem[],
): string {
  return remarks.map(remark => `${kind}${formatProblems(configFile, [remark])}`).join('');
}

/** For a file that cannot be read. */
export function unreadable(problem: string): Misconfiguration {
  return misconfiguration([{ place: '', line: 1, column: 1, message: problem }]);
}

export function misconfiguration(
  problems: readonly ConfigProblem[],
  namedFiles: readonly FileVersion[] = [],
): Misconfiguration {
  const isNamed = ({ file }: ConfigProblem): number => (file === undefined ? 0 : 1);
  const sorted = problems.toSorted(
    (one, other) => isNamed(one) - isNamed(other) || one.line - other.line || one.column - other.column,
  );
  const last = sorted[maxProblems];
  if (last !== undefined)
    sorted.splice(maxProblems, Infinity, {
      ...last,
      place: '',
      message: `${sorted.length - maxProblems} more problems are not listed`,
    });
  return { kind: 'misconfiguration', problems: sorted, namedFiles };
}

const maxProblems = 1000;
const maxKeyLength = 65;
const maxLineLength = 2048;

/** Formats a path as `issuers[0].audiences`; a key that is not a plain name stands in brackets and quotes. */
export function toPlace(path: readonly PropertyKey[]): string {
  let place = '';
  for (const segment of path) {
    if (typeof segment === 'number') place += `[${segment}]`;
    else if (isPlainName(segment)) place += place === '' ? segment : `.${segment}`;
    else place += `[${quotedPrintable(String(segment), maxKeyLength)}]`;
  }
  return place;
}

function isPlainName(segment: PropertyKey): segment is string {
  return typeof segment === 'string' && /^[A-Za-z_][\w-]{0,63}$/.test(segment);
}

/** The rest of a sentence about the value, or the key, at the path. */
interface SchemaProblem extends PathProblem {
  readonly part: 'key' | 'value';
}

/** Translates zod issues by their code; never repeats a value, which may be a secret. The issues must report their input (`reportInput`). */
export function toProblems(
  issues: readonly z.core.$ZodIssue[],
  { positionOf }: YamlDocument,
): readonly ConfigProblem[] {
  return issues
    .flatMap(toSchemaProblems)
    .map(({ path, part, message }) => toProblem({ path, position: positionOf(path, part), message }));
}

function toSchemaProblems(issue: z.core.$ZodIssue): SchemaProblem[] {
  const { path } = issue;
  switch (issue.code) {
    case 'invalid_type':
      return [{ path, part: 'value', message: typeProblem(issue.expected, issue.input) }];
    case 'invalid_value':
      return [{ path, part: 'value', message: valueProblem(issue.values) }];
    case 'unrecognized_keys':
      return issue.keys.map(key => ({ path: [...path, key], part: 'key', message: issue.message }));
    case 'invalid_key':
      return issue.issues.map(({ message }) => ({ path, part: 'key', message }));
    case 'invalid_union': {
      // The one form whose keys the value has tells what is wrong with it.
      const [form, ...others] = issue.errors.filter(inner => inner.every(each => each.path.length > 0));
      if (form === undefined || others.length > 0) return [{ path, part: 'value', message: issue.message }];
      return form.flatMap(each => toSchemaProblems({ ...each, path: [...path, ...each.path] }));
    }
    case 'custom':
    case 'invalid_element':
    case 'invalid_format':
    case 'not_multiple_of':
    case 'too_big':
    case 'too_small':
      return [{ path, part: 'value', message: issue.message }];
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

function valueProblem([only, ...others]: readonly unknown[]): string {
  return others.length === 0 ? `must be ${JSON.stringify(only)}` : `must be one of ${[only, ...others].join(', ')}`;
}

function typeProblem(expected: string, value: unknown): string {
  const rule = `must be ${typeNames[expected] ?? expected}`;
  if (value === undefined) return 'is required';
  if (value === null) return `${rule}, but has no value`;
  if (typeof value === 'string') return `${rule}, not text`;
  if (Array.isArray(value)) return `${rule}, not a list`;
  if (isJsonObject(value)) return `${rule}, not a mapping`;
  return expected === 'string' ? `${rule}: put it in quotes` : rule;
}
