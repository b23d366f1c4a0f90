// A strict JSON parser (RFC 8259), in which a duplicate name in an object is an error.
import { isUtf8 } from 'node:buffer';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = ReadonlyMap<string, Json>;

/** `undefined` if the bytes are not one JSON text, or an object in it has a duplicate name. */
export function readJson(bytes: Buffer): Json | undefined {
  if (!isUtf8(bytes)) return undefined;
  const reader = new Reader(bytes.toString('utf8'));
  try {
    return reader.document();
  } catch (error) {
    if (error instanceof NotJson) return undefined;
    throw error;
  }
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}

// Thrown and caught only in this file; an Error would capture a stack for each of thousands of broken tokens.
class NotJson {}

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

// A recursive descent parser with one method per rule of the grammar in RFC 8259.
class Reader {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  document(): Json {
    const value = this.value();
    this.space();
    if (this.at !== this.text.length) throw new NotJson();
    return value;
  }

  private value(): Json {
    this.space();
    switch (this.text[this.at]) {
      case '{':
        return this.object();
      case '[':
        return this.array();
      case '"':
        return this.string();
      case 't':
        return this.word('true', true);
      case 'f':
        return this.word('false', false);
      case 'n':
        return this.word('null', null);
      default:
        return this.number();
    }
  }

  private object(): JsonObject {
    const members = new Map<string, Json>();
    this.take('{');
    if (this.skips('}')) return members;
    do {
      this.space();
      const name = this.string();
      if (members.has(name)) throw new NotJson();
      this.space();
      this.take(':');
      members.set(name, this.value());
    } while (this.skips(','));
    this.space();
    this.take('}');
    return members;
  }

  private array(): readonly Json[] {
    const items: Json[] = [];
    this.take('[');
    if (this.skips(']')) return items;
    do items.push(this.value());
    while (this.skips(','));
    this.space();
    this.take(']');
    return items;
  }

  private string(): string {
    this.take('"');
    let value = '';
    for (;;) {
      const char = this.text[this.at];
      if (char === undefined || char < ' ') throw new NotJson();
      this.at += 1;
      if (char === '"') return value;
      value += char === '\\' ? this.escaped() : char;
    }
  }

  private escaped(): string {
    const char = this.text[this.at] ?? '';
    this.at += 1;
    if (char === 'u') {
      const digits = this.text.slice(this.at, this.at + 4);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new NotJson();
      this.at += 4;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const meant = Object.hasOwn(escapes, char) ? escapes[char] : undefined;
    if (meant === undefined) throw new NotJson();
    return meant;
  }

  private number(): number {
    const grammar = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
    grammar.lastIndex = this.at;
    const found = grammar.exec(this.text)?.[0];
    if (found === undefined) throw new NotJson();
    this.at += found.length;
    return Number(found);
  }

  private word<Value>(word: string, value: Value): Value {
    if (!this.text.startsWith(word, this.at)) throw new NotJson();
    this.at += word.length;
    return value;
  }

  private space(): void {
    while (' \t\n\r'.includes(this.text[this.at] ?? 'end')) this.at += 1;
  }

  private skips(char: string): boolean {
    this.space();
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }

  private take(char: string): void {
    if (this.text[this.at] !== char) throw new NotJson();
    this.at += 1;
  }
}
