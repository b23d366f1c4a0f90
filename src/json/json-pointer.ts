// JSON Pointers (RFC 6901): parses one into its path, and follows a path into a parsed JSON value.
import { memberOf } from './strict-json.ts';

/** Member names and array indices, the outermost first. */
export type JsonPath = readonly string[];

const pointerGrammar = /^(?:\/(?:[^~/]|~[01])*)+$/;
// RFC 6901 section 4. `-`, the element after the last one, never has a value.
const indexGrammar = /^(?:0|[1-9][0-9]*)$/;

/** Undefined if the text is not a pointer to a part of a value; the empty text points to the whole. */
export function parseJsonPointer(text: string): JsonPath | undefined {
  if (!pointerGrammar.test(text)) return undefined;
  // `~1` first: `~01` stands for `~1` (RFC 6901 section 4).
  const names = text.slice(1).split('/');
  return names.map(name => name.replaceAll('~1', '/').replaceAll('~0', '~'));
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
