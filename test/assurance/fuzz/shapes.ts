// Structure-aware mutations, which get past the first parser: inside a field of a protobuf message, a
// segment of a token, a value of a JSON document, or by whole lines.
import { pick, type Random } from './mutator.ts';

/** Mutates a part; undefined if the input does not have this structure. */
export type Shape = (input: Buffer, random: Random, change: (part: Buffer) => Buffer) => Buffer | undefined;

interface Field {
  readonly tag: number;
  /** The content of a length-delimited field; for others, the raw bytes. */
  readonly bytes: Buffer;
  readonly hasLength: boolean;
}

/** Mutates, repeats or removes one field at any depth of the message, and corrects the enclosing lengths. */
export const inFields: Shape = (input, random, change) => {
  const fields = readFields(input);
  if (fields === undefined || fields.length === 0) return undefined;
  const at = random(fields.length);
  const field = fields[at];
  if (field === undefined) return undefined;
  const action = random(12);
  if (action === 0) fields.splice(at, 1);
  else if (action === 1) fields.splice(random(fields.length + 1), 0, field);
  else {
    const inner = field.hasLength && random(8) !== 0 ? inFields(field.bytes, random, change) : undefined;
    fields[at] = { ...field, bytes: inner ?? change(field.bytes) };
  }
  return Buffer.concat(fields.map(toBytes));
};

function readFields(message: Buffer): Field[] | undefined {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; at < message.length && shift < 35; shift += 7) {
      const byte = message.readUInt8(at);
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    return Number.NaN;
  };
  while (at < message.length) {
    const tag = varint();
    const start = at;
    if (!(tag >= 8)) return undefined;
    const length = { 0: 0, 1: 8, 2: varint(), 5: 4 }[tag % 8];
    if (length === undefined) return undefined;
    const from = tag % 8 === 2 ? at : start;
    // The varint after the tag was read above: it is the value of wire type 0, and not part of the others.
    if (tag % 8 !== 0) at = from + length;
    if (!(at <= message.length)) return undefined;
    fields.push({ tag, bytes: message.subarray(from, at), hasLength: tag % 8 === 2 });
  }
  return fields;
}

function toBytes({ tag, bytes, hasLength }: Field): Buffer {
  return Buffer.concat([toVarint(tag), hasLength ? toVarint(bytes.length) : Buffer.alloc(0), bytes]);
}

function toVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Mutates the decoded content of one segment of a compact serialization, or its last character. */
export const inSegments: Shape = (input, random, change) => {
  const segments = input.toString('latin1').split('.');
  if (segments.length < 2) return undefined;
  const at = random(segments.length);
  if (random(4) === 0) {
    // The last character has unused bits.
    segments[at] = `${segments[at]?.slice(0, -1)}${pick([...alphabet], random)}`;
    return Buffer.from(segments.join('.'), 'latin1');
  }
  const [, scheme = '', text = ''] = /^(.* )?(.*)$/s.exec(segments[at] ?? '') ?? [];
  const bytes = Buffer.from(text, 'base64url');
  const changed = (random(2) === 0 ? inJson(bytes, random, change) : undefined) ?? change(bytes);
  segments[at] = scheme + changed.toString('base64url');
  return Buffer.from(segments.join('.'), 'latin1');
};

const oddValues: readonly unknown[] = [
  ...[null, true, '', 'none', 'HS256', 0, -1, -0, 1.5, 1e308, 2 ** 53, [], {}, ['a', 'b'], '\0', '\ud800', 'oct'],
];

/** Mutates one value anywhere in the document. */
export const inJson: Shape = (input, random, change) => {
  let document: unknown;
  try {
    document = JSON.parse(input.toString('utf8'));
  } catch {
    return undefined;
  }
  const replaced = (value: unknown): unknown => {
    if (typeof value === 'object' && value !== null && random(6) !== 0) {
      const names = Object.keys(value);
      if (names.length > 0) {
        const name = pick(names, random);
        const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...value };
        const inner: unknown = Reflect.get(copy, name);
        if (random(8) === 0) Reflect.deleteProperty(copy, name);
        else if (Array.isArray(copy) && random(4) === 0) copy.push(inner);
        else Reflect.set(copy, name, replaced(inner));
        return copy;
      }
    }
    if (typeof value === 'string' && random(2) === 0) return change(Buffer.from(value)).toString('utf8');
    return pick(oddValues, random);
  };
  return Buffer.from(JSON.stringify(replaced(document)) ?? '');
};

/** Removes, repeats, moves or indents whole lines. */
export const inLines: Shape = (input, random, change) => {
  const lines = input.toString('latin1').split('\n');
  const at = random(lines.length);
  const line = lines[at] ?? '';
  switch (random(5)) {
    case 0:
      lines.splice(at, 1);
      break;
    case 1:
      lines.splice(random(lines.length + 1), 0, line);
      break;
    case 2:
      lines[at] = `${' '.repeat(1 + random(4))}${line}`;
      break;
    case 3:
      lines[at] = line.trimStart();
      break;
    default:
      lines[at] = change(Buffer.from(line, 'latin1')).toString('latin1');
  }
  return Buffer.from(lines.join('\n'), 'latin1');
};
