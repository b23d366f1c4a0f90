// Names of parts of a JSON value, JSON Pointers (RFC 6901) among them: parses a name into a path, and follows a path.
import { memberOf } from './strict-json.ts';

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

/** The value there, or undefined: own members and array elements only, never something inherited such as `length`. */
export function valueAt(value: unknown, path: JsonPath): unknown {
  return path.reduce(partOf, value);
}

function partOf(value: unknown, name: string): unknown {
  if (!Array.isArray(value)) return memberOf(value, name);
  const elements: readonly unknown[] = value;
  return indexGrammar.test(name) ? elements[Number(name)] : undefined;
}
