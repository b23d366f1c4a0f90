// Parses JSON strictly, for tokens and key sets: valid UTF-8, valid JSON and no duplicate member in any object. Refuses text that another
// parser could read differently. Follows paths into a value.
import { isUtf8 } from 'node:buffer';
import { type Problem, problem } from '../text/problem.ts';

export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
}

export type JsonBoundsProblem = 'nested too deep' | 'too many values';

/** Stable words for logs, without any of the text. */
export type JsonProblem = Problem<'not UTF-8' | 'not JSON' | 'a member twice'>;

export type JsonValue = { readonly kind: 'value'; readonly value: unknown };

/** Never throws. A byte order mark is not JSON (RFC 8259 section 8.1). */
export function parseStrictJson(input: Uint8Array | string): JsonValue | JsonProblem {
  if (typeof input !== 'string' && !isUtf8(input)) return problem('not UTF-8');
  const text = typeof input === 'string' ? input : textOf(input);
  return parseText(text, () => contentsOf(text).members);
}

/** Its members are counted if it is JSON. */
function parseText(text: string, countMembers: () => number): JsonValue | JsonProblem {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return problem('not JSON');
  }
  // RFC 8259 section 4 leaves duplicate names to the parser. JSON.parse keeps the last one, another parser may keep the first. A text with
  // more members than its value has a duplicate name, in whatever spelling ("acc", "\u0061cc").
  return countMembers() > membersOf(value) ? problem('a member twice') : { kind: 'value', value };
}

/**
 * `parseStrictJson` with bounds that are checked before the text is parsed: half a megabyte of brackets keeps JSON.parse busy for longer than
 * a caller waits.
 */
export function parseBoundedJson(
  bytes: Uint8Array,
  bounds: JsonBounds,
): JsonValue | JsonProblem | Problem<JsonBoundsProblem> {
  if (!isUtf8(bytes)) return problem('not UTF-8');
  const text = textOf(bytes);
  const { members, exceeded } = contentsOf(text, bounds);
  return exceeded === undefined ? parseText(text, () => members) : problem(exceeded);
}

/** A JSON object: not an array, not null. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The own member of an object, or undefined: never an inherited one such as `constructor`. */
export function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** The items of a list; none of another value. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

const [quote, colon, comma, backslash] = ['"', ':', ',', '\\'].map(each => each.charCodeAt(0));
const opening = new Set(['{', '['].map(each => each.charCodeAt(0)));
const closing = new Set(['}', ']'].map(each => each.charCodeAt(0)));

/** What a text contains if it is JSON, up to the bounds; the parser reports every other problem. */
function contentsOf(text: string, { maxDepth, maxValues }: JsonBounds = { maxDepth: Infinity, maxValues: Infinity }) {
  let members = 0;
  let depth = 0;
  // Every value but the outermost follows a comma or is the first of its structure.
  let values = 1;
  let exceeded: JsonBoundsProblem | undefined;
  for (let i = 0; i < text.length && exceeded === undefined; i += 1) {
    const code = text.charCodeAt(i);
    if (code === quote) i = endOfString(text, i);
    else if (code === colon) members += 1;
    else if (code === comma) values += 1;
    else if (opening.has(code)) {
      depth += 1;
      values += 1;
    } else if (closing.has(code)) depth -= 1;
    if (depth > maxDepth) exceeded = 'nested too deep';
    else if (values > maxValues) exceeded = 'too many values';
  }
  return { members, exceeded };
}

// Not recursive: deep nesting must not exhaust the call stack.
function membersOf(value: unknown): number {
  let members = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const structure = open.pop();
    if (typeof structure !== 'object' || structure === null) continue;
    const values: unknown[] = Object.values(structure);
    if (!Array.isArray(structure)) members += values.length;
    for (const each of values) if (typeof each === 'object') open.push(each);
  }
  return members;
}

/** The end of the text for a string without an end. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === backslash) backslashes += 1;
  return backslashes % 2 === 1;
}

// Names of parts of a JSON value, JSON Pointers (RFC 6901) among them.

/** Member names and array indices, the outermost first. */
export type JsonPath = readonly string[];

const pointerGrammar = /^(?:\/(?:[^~/]|~[01])*)+$/;
// RFC 6901 section 4. `-`, the element after the last one, never has a value.
const indexGrammar = /^(?:0|[1-9][0-9]*)$/;

/** A name with a leading `/` is a JSON Pointer, any other that of a member, byte for byte. Undefined: not a JSON Pointer. */
export function parsePath(name: string): JsonPath | undefined {
  if (!name.startsWith('/')) return [name];
  if (!pointerGrammar.test(name)) return undefined;
  // `~1` first: `~01` stands for `~1` (RFC 6901 section 4).
  const parts = name.slice(1).split('/');
  return parts.map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The JSON Pointer of a path. */
export function toPointer(path: JsonPath): string {
  return path.map(part => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The value there, or undefined: own members and array elements only, never something inherited such as `length`. */
export function valueAt(value: unknown, path: JsonPath): unknown {
  return path.reduce(partOf, value);
}

function partOf(value: unknown, name: string): unknown {
  if (!Array.isArray(value)) return memberOf(value, name);
  const elements: readonly unknown[] = value;
  return indexGrammar.test(name) ? elements[Number(name)] : undefined;
}

export function nameOfType(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
