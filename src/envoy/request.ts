// Decodes a CheckRequest into RequestFacts: reads only the fields that a decision needs, and header values on demand. Reports a message
// that contradicts itself.
import protobuf from 'protobufjs/minimal.js';
import type { RequestFacts, RequestHeaders } from '../authz/request-facts.ts';

/** Throws if the bytes are not a CheckRequest: grpc-js then answers INTERNAL and calls no handler. */
export function readRequestFacts(bytes: Buffer): RequestFacts {
  const reading: Reading = {
    reader: protobuf.Reader.create(bytes),
    message: bytes.toString('latin1'),
    http: { present: false, method: '', path: '', host: '', query: '', fragment: '' },
    certificate: '',
    mapHeaders: [],
    listHeaders: [],
  };
  readMessage(reading, bytes.length, readCheckRequestField);
  const { http } = reading;
  return {
    method: http.method,
    target: http.path,
    // No getters: V8 makes a hidden class for each object literal that has one, and that keeps the whole message alive until the next
    // major collection (docs/dev/performance.md).
    host: http.host,
    certificate: reading.certificate,
    headers: toRequestHeaders(reading),
    contradiction: http.present ? contradictionIn(reading) : 'no HTTP attributes',
  };
}

// As many as the rendered Envoy takes (max_headers_count), over HTTP/2 with each cookie counted.
const maxHeaders = 256;
// :method, :scheme, :authority, :path (RFC 9113 section 8.3.1) and :protocol (RFC 8441 section 4); Envoy shows them among the headers.
const maxPseudoHeaders = 5;

interface HttpAttributes {
  /** Whether the message has HTTP attributes. */
  present: boolean;
  method: string;
  path: string;
  host: string;
  query: string;
  fragment: string;
}

/** The byte range of each part of a header in the message; start and end of an empty part are equal. */
interface HeaderPlace {
  name: string;
  valueStart: number;
  valueEnd: number;
  rawStart: number;
  rawEnd: number;
}

interface Reading {
  readonly reader: protobuf.Reader;
  /** The whole message, one character per byte, so that a slice copies nothing and no buffer outlives the call. */
  readonly message: string;
  readonly http: HttpAttributes;
  certificate: string;
  /** From `headers`, which Envoy fills with `encode_raw_headers` off: one entry per name, its lines joined by a comma. */
  readonly mapHeaders: HeaderPlace[];
  /** From `header_map`, which Envoy fills with `encode_raw_headers` on: one entry per header line. */
  readonly listHeaders: HeaderPlace[];
}

/** Returns false for an unknown field, which the caller skips, as proto3 requires. */
type ReadField = (reading: Reading, tag: number) => boolean;

// Field numbers of proto/envoy/service/auth/v3/external_auth.proto, attribute_context.proto and
// proto/envoy/config/core/v3/base.proto. All of these fields have wire type 2 (length-delimited).
const tagOf = (fieldNumber: number): number => (fieldNumber << 3) | 2;
const attributesTag = tagOf(1);
const sourceTag = tagOf(1);
const certificateTag = tagOf(5);
const requestTag = tagOf(4);
const httpTag = tagOf(2);
const methodTag = tagOf(2);
const headersTag = tagOf(3);
const pathTag = tagOf(4);
const hostTag = tagOf(5);
const queryTag = tagOf(7);
const fragmentTag = tagOf(8);
const headerMapTag = tagOf(13);
const listHeadersTag = tagOf(1);
const keyTag = tagOf(1);
const valueTag = tagOf(2);
const rawValueTag = tagOf(3);

// Repeated occurrences of a message field are merged, as protobuf requires: all write into the same reading.
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
  if (tag === sourceTag) return readNested(reading, readPeerField);
  return tag === requestTag && readNested(reading, readRequestField);
}

function readPeerField(reading: Reading, tag: number): boolean {
  if (tag !== certificateTag) return false;
  reading.certificate = readText(reading);
  return true;
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
    case hostTag:
      http.host = readText(reading);
      return true;
    case queryTag:
      http.query = readText(reading);
      return true;
    case fragmentTag:
      http.fragment = readText(reading);
      return true;
    case headersTag:
      return readHeaderInto(reading.mapHeaders, reading);
    case headerMapTag:
      return readNested(reading, readHeaderMapField);
    default:
      return false;
  }
}

function readHeaderMapField(reading: Reading, tag: number): boolean {
  return tag === listHeadersTag && readHeaderInto(reading.listHeaders, reading);
}

/** Skips the header if the list is already too long: the request is refused anyway. */
function readHeaderInto(list: HeaderPlace[], reading: Reading): true {
  if (list.length > maxHeaders + maxPseudoHeaders) startOfValue(reading.reader);
  else list.push(readHeader(reading, list === reading.listHeaders));
  return true;
}

function readText({ reader, message }: Reading): string {
  const start = startOfValue(reader);
  return utf8(message, start, reader.pos);
}

/** Reads an entry of the map or a HeaderValue of the list: their common fields have the same numbers, and only the list has `raw_value`. */
function readHeader({ reader, message }: Reading, hasRawValue: boolean): HeaderPlace {
  const place: HeaderPlace = { name: '', valueStart: 0, valueEnd: 0, rawStart: 0, rawEnd: 0 };
  const end = endOfValue(reader);
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case keyTag:
        place.name = headerName(message.slice(startOfValue(reader), reader.pos));
        break;
      case valueTag:
        place.valueStart = startOfValue(reader);
        place.valueEnd = reader.pos;
        break;
      case rawValueTag: {
        const start = startOfValue(reader);
        if (hasRawValue) [place.rawStart, place.rawEnd] = [start, reader.pos];
        break;
      }
      default:
        reader.skipType(tag & 7);
    }
  }
  if (reader.pos !== end) throw new RangeError('a field reaches beyond its message');
  return place;
}

/** A name as Envoy sends it is in lower-case ASCII, and to see that costs less than to make it so. */
function headerName(text: string): string {
  return /[A-Z\x80-\xff]/.test(text) ? utf8(text, 0, text.length).toLowerCase() : text;
}

/** Moves the reader behind the value. */
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

// One character per byte for `raw_value`: UTF-8 decoding would replace invalid bytes before the grammar checks them.
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

function toRequestHeaders({ message, mapHeaders, listHeaders }: Reading): RequestHeaders {
  let names: readonly string[] | undefined;
  return {
    get: name => linesOf(message, listHeaders, name) ?? linesOf(message, mapHeaders, name),
    keys() {
      names ??= (mapHeaders.length === 0 ? listHeaders : [...listHeaders, ...mapHeaders]).map(({ name }) => name);
      return names;
    },
  };
}

// Envoy fills either the map or the list and takes the attributes from the same headers. If two places disagree, something else made or
// changed the message, and which value the upstream gets is unknown.
function contradictionIn({ message, http, mapHeaders, listHeaders }: Reading): RequestFacts['contradiction'] {
  if (isTooLong(mapHeaders) || isTooLong(listHeaders)) return `more than ${maxHeaders} headers`;
  for (const { valueStart, valueEnd, rawStart, rawEnd } of listHeaders) {
    if (valueEnd === valueStart || rawEnd === rawStart) continue;
    if (utf8(message, valueStart, valueEnd) !== utf8(message, rawStart, rawEnd)) return 'two values in one header';
  }
  if (mapHeaders.length > 0 && listHeaders.length > 0) {
    const mapValues = valuesByName(message, mapHeaders);
    for (const [name, value] of valuesByName(message, listHeaders)) {
      if (value !== (mapValues.get(name) ?? value)) return 'two header lists that disagree';
    }
  }
  for (const places of [mapHeaders, listHeaders]) {
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

/** Header name → its lines joined by a comma, as Envoy joins those of the map. */
function valuesByName(message: string, list: readonly HeaderPlace[]): ReadonlyMap<string, string> {
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
  // An attribute is text; a line of the list holds the bytes of that text.
  return lines.length === 1 && (line === attribute || Buffer.from(line, 'latin1').toString('utf8') === attribute);
}
