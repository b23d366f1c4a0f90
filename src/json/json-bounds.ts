// Limits the nesting depth and the number of values of a JSON text, in one pass before JSON.parse: half a megabyte of brackets keeps
// JSON.parse busy for longer than a caller waits.

export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
}

export type JsonBoundsProblem = 'nested too deep' | 'too many values';

const [quote, backslash, comma] = ['"', '\\', ','].map(each => each.charCodeAt(0));
const opening = new Set(['{', '['].map(each => each.charCodeAt(0)));
const closing = new Set(['}', ']'].map(each => each.charCodeAt(0)));

/** Undefined within the bounds. The parser reports every other problem. */
export function jsonBoundsProblem(text: string, { maxDepth, maxValues }: JsonBounds): JsonBoundsProblem | undefined {
  let depth = 0;
  // Every value but the outermost follows a comma or is the first of its structure.
  let values = 1;
  let isInString = false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (isInString) {
      if (code === backslash) i += 1;
      else if (code === quote) isInString = false;
    } else if (code === quote) isInString = true;
    else if (code === comma) values += 1;
    else if (opening.has(code)) {
      depth += 1;
      values += 1;
    } else if (closing.has(code)) depth -= 1;
    if (depth > maxDepth) return 'nested too deep';
    if (values > maxValues) return 'too many values';
  }
  return undefined;
}
