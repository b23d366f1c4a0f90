// Reads JSON the way a security decision needs it: valid UTF-8, valid JSON, no member twice in any object.
// Used for tokens and for key sets; everything that is ambiguous to another reader is refused here.

/** What `parseStrictJson` found wrong; stable words for logs, never the text itself. */
export type JsonProblem = { readonly kind: 'problem'; readonly problem: 'not UTF-8' | 'not JSON' | 'a member twice' };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes or text to the value they hold. A byte order mark is not JSON (RFC 8259 section 8.1). Never throws. */
export function parseStrictJson(
  input: Uint8Array | string,
): { readonly kind: 'value'; readonly value: unknown } | JsonProblem {
  let text: string;
  try {
    text = typeof input === 'string' ? input : utf8.decode(input);
  } catch {
    return { kind: 'problem', problem: 'not UTF-8' };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'problem', problem: 'not JSON' };
  }
  return hasDuplicateMember(text) ? { kind: 'problem', problem: 'a member twice' } : { kind: 'value', value };
}

/** A JSON object (not an array, not null), as opposed to any other JSON value. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// RFC 8259 section 4 leaves duplicate names to the reader and JSON.parse keeps the last one, so a second reader may see
// another value. The text is known to be valid JSON here, hence the scan only has to find strings and braces; it keeps
// its own stack so that deep nesting cannot exhaust the call stack.
function hasDuplicateMember(text: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  let nameExpected = false;
  for (let i = 0; i < text.length; i += 1) {
    switch (text[i]) {
      case '{':
        open.push(new Set());
        nameExpected = true;
        break;
      case '[':
        open.push(undefined);
        nameExpected = false;
        break;
      case '}':
      case ']':
        open.pop();
        nameExpected = false;
        break;
      case ',':
        nameExpected = open.at(-1) !== undefined;
        break;
      case '"': {
        const end = endOfString(text, i);
        const names = open.at(-1);
        if (nameExpected && names !== undefined) {
          // Two spellings of one name ("acc", "\u0061cc") are the same member: compare after unescaping.
          const name: unknown = JSON.parse(text.slice(i, end + 1));
          if (typeof name === 'string') {
            if (names.has(name)) return true;
            names.add(name);
          }
          nameExpected = false;
        }
        i = end;
        break;
      }
      default:
    }
  }
  return false;
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}
