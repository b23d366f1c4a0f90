// Bytes of a CheckRequest → RequestFacts: the only reader of what Envoy sends. Of the message only what a decision needs is
// read, and of the headers only the values that are asked for. Facts of a message that contradicts itself say so.
import protobuf from 'protobufjs/minimal.js';
import type { RequestFacts, RequestHeaders } from '../authz/request-facts.ts';

/** Throws where the bytes are not a CheckRequest: the library then answers INTERNAL and no handler runs. */
export function readRequestFacts(bytes: Buffer): RequestFacts {
  const reading: Reading = {
    reader: protobuf.Reader.create(bytes),
    message: bytes.toString('latin1'),
    http: { present: false, method: '', path: '', query: '', fragment: '' },
    joined: [],
    listed: [],
  };
  readMessage(reading, bytes.length, readCheckRequestField);
  const { http } = reading;
  return {
    method: http.method,
    target: http.path,
    headers: toRequestHeaders(reading),
    contradiction: http.present ? contradictionIn(reading) : 'no HTTP attributes',
  };
}

// No honest request needs more: Envoy itself refuses more than 100 unless configured (HttpProtocolOptions.max_headers_count).
const maxHeaders = 200;
// :method, :scheme, :authority, :path (RFC 9113 section 8.3.1) and :protocol (RFC 8441 section 4); Envoy shows them among the headers.
const maxPseudoHeaders = 5;

interface HttpAttributes {
  /** Whether the message has them at all. */
  present: boolean;
  method: string;
  path: string;
  query: string;
  fragment: string;
}

/** Where the parts of a header stand in the message; an empty part has its start for its end. */
interface HeaderPlace {
  name: string;
  valueStart: number;
  valueEnd: number;
  rawStart: number;
  rawEnd: number;
}

interface Reading {
  readonly reader: protobuf.Reader;
  /** The whole message, one character for each byte: a text is cut out of it without a copy, and no buffer outlives the call. */
  readonly message: string;
  readonly http: HttpAttributes;
  /** Of `headers`, filled where `encode_raw_headers` is off: the lines of a name joined by a comma. */
  readonly joined: HeaderPlace[];
  /** Of `header_map`, filled where `encode_raw_headers` is on: a line each, as it came. */
  readonly listed: HeaderPlace[];
}

/** Whether the field was read. One that was not is skipped, as proto3 asks for. */
type ReadField = (reading: Reading, tag: number) => boolean;

// Field numbers of proto/envoy/service/auth/v3/external_auth.proto, attribute_context.proto and
// proto/envoy/config/core/v3/base.proto. What is read has wire type 2: a length and as many bytes.
const tagOf = (fieldNumber: number): number => (fieldNumber << 3) | 2;
const attributesTag = tagOf(1);
const requestTag = tagOf(4);
const httpTag = tagOf(2);
const methodTag = tagOf(2);
const headersTag = tagOf(3);
const pathTag = tagOf(4);
const queryTag = tagOf(7);
const fragmentTag = tagOf(8);
const headerMapTag = tagOf(13);
const listedHeadersTag = tagOf(1);
const keyTag = tagOf(1);
const valueTag = tagOf(2);
const rawValueTag = tagOf(3);

// Parts of a message that comes in several pieces are merged (the rule of protobuf), since all write into the same reading.
function readMessage(reading: Reading, end: number, readField: ReadField): void {
  const { reader } = reading;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (!readField(reading, tag)) reader.skipType(tag & 7);
  }
  if (reader.pos !== end) throw new RangeError('a field reaches beyond its message');
}

function endOfValue(reader: protobuf.Reader): number {
  const length = reader.uint32();
  return reader.pos + length;
}

function readNested(reading: Reading, readField: ReadField): true {
  readMessage(reading, endOfValue(reading.reader), readField);
  return true;
}

function readCheckRequestField(reading: Reading, tag: number): boolean {
  return tag === attributesTag && readNested(reading, readAttributeContextField);
}

function readAttributeContextField(reading: Reading, tag: number): boolean {
  return tag === requestTag && readNested(reading, readRequestField);
}

function readRequestField(reading: Reading, tag: number): boolean {
  if (tag !== httpTag) return false;
  reading.http.present = true;
  return readNested(reading, readHttpField);
}

function readHttpField(reading: Reading, tag: number): boolean {
  const { http } = reading;
  switch (tag) {
    case methodTag:
      http.method = readText(reading);
      return true;
    case pathTag:
      http.path = readText(reading);
      return true;
    case queryTag:
      http.query = readText(reading);
      return true;
    case fragmentTag:
      http.fragment = readText(reading);
      return true;
    case headersTag:
      return readHeaderInto(reading.joined, reading);
    case headerMapTag:
      return readNested(reading, readHeaderMapField);
    default:
      return false;
  }
}

function readHeaderMapField(reading: Reading, tag: number): boolean {
  return tag === listedHeadersTag && readHeaderInto(reading.listed, reading);
}

/** Skips the header where the list is too long already: the request is refused whatever else it says. */
function readHeaderInto(list: HeaderPlace[], reading: Reading): true {
  if (list.length > maxHeaders + maxPseudoHeaders) startOfValue(reading.reader);
  else list.push(readHeader(reading));
  return true;
}

function readText({ reader, message }: Reading): string {
  const start = startOfValue(reader);
  return utf8(message, start, reader.pos);
}

/** An entry of the map or a HeaderValue of the list: the fields that they share have the same numbers. */
function readHeader({ reader, message }: Reading): HeaderPlace {
  const place: HeaderPlace = { name: '', valueStart: 0, valueEnd: 0, rawStart: 0, rawEnd: 0 };
  const end = endOfValue(reader);
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case keyTag:
        place.name = utf8(message, startOfValue(reader), reader.pos).toLowerCase();
        break;
      case valueTag:
        place.valueStart = startOfValue(reader);
        place.valueEnd = reader.pos;
        break;
      case rawValueTag:
        place.rawStart = startOfValue(reader);
        place.rawEnd = reader.pos;
        break;
      default:
        reader.skipType(tag & 7);
    }
  }
  if (reader.pos !== end) throw new RangeError('a field reaches beyond its message');
  return place;
}

/** Leaves the reader behind the value. */
function startOfValue(reader: protobuf.Reader): number {
  const length = reader.uint32();
  const start = reader.pos;
  reader.skip(length);
  return start;
}

const beyondAscii = /[\x80-\xff]/;

function utf8(message: string, start: number, end: number): string {
  const text = message.slice(start, end);
  return beyondAscii.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text;
}

// For `raw_value` one character for each byte, so that no byte is replaced by another before the grammar judges it.
function lineValue(message: string, place: HeaderPlace): string {
  if (place.rawEnd > place.rawStart) return message.slice(place.rawStart, place.rawEnd);
  return utf8(message, place.valueStart, place.valueEnd);
}

function linesOf(message: string, places: readonly HeaderPlace[], name: string): string[] | undefined {
  let lines: string[] | undefined;
  for (const place of places) {
    if (place.name !== name) continue;
    if (lines === undefined) lines = [lineValue(message, place)];
    else lines.push(lineValue(message, place));
  }
  return lines;
}

function toRequestHeaders({ message, joined, listed }: Reading): RequestHeaders {
  return {
    get: name => linesOf(message, listed, name) ?? linesOf(message, joined, name),
    keys: () => (joined.length === 0 ? listed : [...listed, ...joined]).map(({ name }) => name),
  };
}

// Envoy fills either the map or the list and takes the attributes from the same headers. A message in which two places
// disagree was not made by Envoy, or was changed on its way: there is no telling which of them the upstream would see.
function contradictionIn({ message, http, joined, listed }: Reading): string | undefined {
  if (isTooLong(joined) || isTooLong(listed)) return `more than ${maxHeaders} headers`;
  for (const { valueStart, valueEnd, rawStart, rawEnd } of listed) {
    if (valueEnd === valueStart || rawEnd === rawStart) continue;
    if (utf8(message, valueStart, valueEnd) !== utf8(message, rawStart, rawEnd)) return 'two values in one header';
  }
  if (joined.length > 0 && listed.length > 0) {
    const joinedValues = joinedByName(message, joined);
    for (const [name, value] of joinedByName(message, listed)) {
      if (value !== (joinedValues.get(name) ?? value)) return 'two header lists that disagree';
    }
  }
  for (const places of [joined, listed]) {
    if (!agrees(http.path, linesOf(message, places, ':path'))) return ':path contradicts the path';
    if (!agrees(http.method, linesOf(message, places, ':method'))) return ':method contradicts the method';
  }
  if (http.query !== '') {
    const mark = http.path.indexOf('?');
    if (mark === -1 || http.path.slice(mark + 1) !== http.query) return 'query contradicts the path';
  }
  if (http.fragment !== '') return 'a fragment beside the path';
  return undefined;
}

function isTooLong(list: readonly HeaderPlace[]): boolean {
  if (list.length <= maxHeaders) return false;
  const pseudoHeaders = list.filter(({ name }) => name.startsWith(':')).length;
  return pseudoHeaders > maxPseudoHeaders || list.length - pseudoHeaders > maxHeaders;
}

/** Name → its lines, joined by a comma as Envoy joins those of the map. */
function joinedByName(message: string, list: readonly HeaderPlace[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const place of list) {
    const before = values.get(place.name);
    const line = lineValue(message, place);
    values.set(place.name, before === undefined ? line : `${before},${line}`);
  }
  return values;
}

function agrees(attribute: string, lines: readonly string[] | undefined): boolean {
  if (lines === undefined) return true;
  const [line = ''] = lines;
  // The attributes are text; the list holds the bytes of that text.
  return lines.length === 1 && (line === attribute || Buffer.from(line, 'latin1').toString('utf8') === attribute);
}
