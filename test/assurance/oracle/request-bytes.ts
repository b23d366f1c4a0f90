// Decodes a CheckRequest by the rules of protobuf's encoding: the last value of a repeated scalar field wins, parts of a message are merged,
// list entries are concatenated, and unknown fields are skipped. Every map entry of the headers is kept, because a duplicate key is a
// duplicate header, which the grammar of requests decides.
import type { CheckMessage, HeaderEntry } from './message.ts';

/** `undefined` if the bytes are not a message. */
export function readRequestBytes(bytes: Buffer): CheckMessage | undefined {
  try {
    return checkRequest(bytes);
  } catch (error) {
    // From Node's Buffer: a length or a number exceeds the bytes.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

// Field numbers of proto/.
function checkRequest(bytes: Buffer): CheckMessage {
  const attributes = messagesIn(fieldsOf(bytes), 1);
  if (attributes === undefined) return { attributes: null };
  const request = messagesIn(attributes, 4);
  const http = request === undefined ? undefined : messagesIn(request, 2);
  return {
    attributes: {
      source: { certificate: textIn(messagesIn(attributes, 1) ?? [], 5) },
      context_extensions: {},
      request: request === undefined ? null : { http: http === undefined ? null : httpAttributes(http) },
    },
  };
}

function httpAttributes(
  http: readonly Field[],
): NonNullable<NonNullable<NonNullable<CheckMessage['attributes']>['request']>['http']> {
  const headerMap = messagesIn(http, 13);
  const joined = bytesIn(http, 3).map(entry => {
    const fields = fieldsOf(entry);
    return [textIn(fields, 1), textIn(fields, 2)] as const;
  });
  return {
    method: textIn(http, 2),
    path: textIn(http, 4),
    host: textIn(http, 5),
    scheme: textIn(http, 6),
    protocol: textIn(http, 10),
    query: textIn(http, 7),
    fragment: textIn(http, 8),
    headers: Object.fromEntries(joined),
    headerEntries: joined,
    header_map: headerMap === undefined ? null : { headers: bytesIn(headerMap, 1).map(headerEntry) },
  };
}

function headerEntry(bytes: Buffer): HeaderEntry {
  const fields = fieldsOf(bytes);
  return { key: textIn(fields, 1), value: textIn(fields, 2), raw_value: bytesIn(fields, 3).at(-1) ?? Buffer.alloc(0) };
}

interface Field {
  /** 0 belongs to no field and is skipped as unknown, as protobufjs does. */
  readonly number: number;
  /** The bytes of a length-delimited field; undefined for a number, which no field here has. */
  readonly bytes: Buffer | undefined;
}

/** The fields of all parts of a message; undefined if it is absent. */
function messagesIn(fields: readonly Field[], number: number): readonly Field[] | undefined {
  const parts = bytesIn(fields, number);
  return parts.length === 0 ? undefined : parts.flatMap(fieldsOf);
}

function bytesIn(fields: readonly Field[], number: number): readonly Buffer[] {
  return fields.flatMap(field => (field.number === number && field.bytes !== undefined ? [field.bytes] : []));
}

function textIn(fields: readonly Field[], number: number): string {
  return bytesIn(fields, number).at(-1)?.toString('utf8') ?? '';
}

/** Throws if a field is not whole. */
export function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < bytes.length; ) {
    const field = fieldAt(bytes, at);
    fields.push(field);
    at = field.end;
  }
  return fields;
}

function fieldAt(bytes: Buffer, start: number): Field & { readonly end: number; readonly isGroupEnd?: boolean } {
  const tag = varintAt(bytes, start);
  const number = Math.floor(tag.value / 8);
  const bounded = (end: number): number => {
    if (end > bytes.length) throw new RangeError('a field reaches beyond its message');
    return end;
  };
  switch (tag.value % 8) {
    case 0:
      return { number, bytes: undefined, end: varintAt(bytes, tag.end).end };
    case 1:
      return { number, bytes: undefined, end: bounded(tag.end + 8) };
    case 2: {
      const length = varintAt(bytes, tag.end);
      const end = bounded(length.end + length.value);
      return { number, bytes: bytes.subarray(length.end, end), end };
    }
    case 3: {
      // Any end-group tag ends it, whatever its number, as in protobufjs; its content is not read.
      for (let at = tag.end; ; ) {
        const inside = fieldAt(bytes, at);
        at = inside.end;
        if (inside.isGroupEnd === true) return { number, bytes: undefined, end: at };
      }
    }
    case 4:
      return { number, bytes: undefined, end: tag.end, isGroupEnd: true };
    case 5:
      return { number, bytes: undefined, end: bounded(tag.end + 4) };
    default:
      throw new RangeError('no wire type');
  }
}

function varintAt(bytes: Buffer, start: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let i = 0; i < 10; i += 1) {
    const byte = bytes.readUInt8(start + i);
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return { value, end: start + i + 1 };
  }
  throw new RangeError('a number of more than ten bytes');
}
