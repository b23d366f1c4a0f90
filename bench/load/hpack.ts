// The part of HPACK (RFC 7541) that a load generator needs: a block that fills the dynamic table of a connection, and the short indexed
// one for every later request, as Envoy's own encoder sends it. Nothing is decoded.

export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

/** Fields that all requests of a connection share, in this order. */
export interface SharedBlocks {
  /** For the first request: every field that is not in the static table enters the dynamic table. */
  readonly first: Buffer;
  /** For all later requests: one index per field. */
  readonly later: Buffer;
}

const staticFields: readonly (readonly [name: string, value: string, index: number])[] = [
  [':method', 'GET', 2],
  [':method', 'POST', 3],
  [':scheme', 'http', 6],
  [':scheme', 'https', 7],
];
const staticNames: ReadonlyMap<string, number> = new Map([
  [':authority', 1],
  [':path', 4],
  ['accept', 19],
  ['authorization', 23],
  ['content-type', 31],
  ['user-agent', 58],
]);
const staticTableSize = 61;

export function sharedBlocks(fields: readonly HeaderField[]): SharedBlocks {
  const dynamic = fields.filter(field => staticIndex(field) === undefined);
  const first: Buffer[] = [];
  const later: Buffer[] = [];
  let entered = 0;
  for (const field of fields) {
    const fixed = staticIndex(field);
    if (fixed !== undefined) {
      first.push(integer(0x80, 7, fixed));
      later.push(integer(0x80, 7, fixed));
      continue;
    }
    first.push(literal(0x40, 6, field));
    // The newest entry has the lowest index (RFC 7541 section 2.3.3).
    later.push(integer(0x80, 7, staticTableSize + dynamic.length - entered));
    entered++;
  }
  return { first: Buffer.concat(first), later: Buffer.concat(later) };
}

/** Fields of one request, encoded without indexing. */
export function ownBlock(fields: readonly HeaderField[]): Buffer {
  return Buffer.concat(fields.map(field => literal(0x00, 4, field)));
}

function staticIndex({ name, value }: HeaderField): number | undefined {
  return staticFields.find(([otherName, otherValue]) => otherName === name && otherValue === value)?.[2];
}

function literal(pattern: number, prefixBits: number, { name, value }: HeaderField): Buffer {
  const index = staticNames.get(name);
  return index === undefined
    ? Buffer.concat([Buffer.of(pattern), text(name), text(value)])
    : Buffer.concat([integer(pattern, prefixBits, index), text(value)]);
}

/** Without Huffman coding. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([integer(0x00, 7, bytes.length), bytes]);
}

/** RFC 7541 section 5.1. */
function integer(pattern: number, prefixBits: number, value: number): Buffer {
  const limit = 2 ** prefixBits - 1;
  if (value < limit) return Buffer.of(pattern | value);
  const bytes = [pattern | limit];
  let rest = value - limit;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
