// Whether a JSON text nests deeper or holds more values than an honest one does: found in one pass, before anything is built from it.
// Half a megabyte of brackets keeps JSON.parse busy for as long as a caller waits for an answer.

export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
}

export type JsonBoundsProblem = 'nested too deep' | 'too many values';

const [quote, backslash, comma] = ['"', '\\', ','].map(each => each.charCodeAt(0));
const opening = new Set(['{', '['].map(each => each.charCodeAt(0)));
const closing = new Set(['}', ']'].map(each => each.charCodeAt(0)));

/** Undefined within the bounds, and where the text ends within a string; what else is wrong with it is for the parser to say. */
export function jsonBoundsProblem(text: string, { maxDepth, maxValues }: JsonBounds): JsonBoundsProblem | undefined {
  let depth = 0;
  // Each value but the outermost follows a comma or opens its structure.
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
