// Translates zod issues into problems for people, by the code of each issue. Never repeats a value: it may be a secret.
import type * as z from 'zod';
import { isJsonObject } from '../json/strict-json.ts';
import { type ConfigProblem, toProblem } from './problems.ts';
import type { PathProblem, YamlDocument } from './yaml-document.ts';

/** The rest of a sentence about the value, or the key, at the path. */
interface SchemaProblem extends PathProblem {
  readonly part: 'key' | 'value';
}

/** The issues must report their input (`reportInput`). */
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
      return [{ path, part: 'value', message: `must be one of ${issue.values.map(String).join(', ')}` }];
    case 'unrecognized_keys':
      return issue.keys.map(key => ({ path: [...path, key], part: 'key', message: issue.message }));
    case 'invalid_key':
      return issue.issues.map(({ message }) => ({ path, part: 'key', message }));
    case 'custom':
    case 'invalid_element':
    case 'invalid_format':
    case 'invalid_union':
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

function typeProblem(expected: string, value: unknown): string {
  const rule = `must be ${typeNames[expected] ?? expected}`;
  if (value === undefined) return 'is required';
  if (value === null) return `${rule}, but has no value`;
  if (typeof value === 'string') return `${rule}, not text`;
  if (Array.isArray(value)) return `${rule}, not a list`;
  if (isJsonObject(value)) return `${rule}, not a mapping`;
  return expected === 'string' ? `${rule}: put it in quotes` : rule;
}
