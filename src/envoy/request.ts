// CheckRequest → RequestFacts: the only reader of what Envoy sends. Total: a message that contradicts itself gives facts that say so.
import type { RequestFacts } from '../authz/request-facts.ts';
import type { CheckRequestMessage, HeaderValue, HttpRequestMessage } from './protocol.ts';

type HeaderLines = Map<string, string[]>;

export function toRequestFacts(message: CheckRequestMessage): RequestFacts {
  const http = message.attributes?.request?.http ?? undefined;
  if (http === undefined) return { method: '', target: '', headers: new Map(), contradiction: 'no HTTP attributes' };
  const joined = headersOfMap(http.headers);
  const raw = headersOfList(http.header_map?.headers ?? []);
  return {
    method: http.method,
    target: http.path,
    headers: raw.size === 0 ? joined : new Map([...joined, ...raw]),
    contradiction: contradictionIn(http, joined, raw),
  };
}

function headersOfMap(headers: Readonly<Record<string, string>>): HeaderLines {
  const lines: HeaderLines = new Map();
  for (const [name, value] of Object.entries(headers)) addLine(lines, name, value);
  return lines;
}

function headersOfList(headers: readonly HeaderValue[]): HeaderLines {
  const lines: HeaderLines = new Map();
  for (const header of headers) {
    // One character for each byte, so that no byte is replaced by another before the grammar judges it.
    addLine(lines, header.key, header.raw_value.length > 0 ? header.raw_value.toString('latin1') : header.value);
  }
  return lines;
}

function addLine(lines: HeaderLines, name: string, value: string): void {
  const lower = name.toLowerCase();
  const values = lines.get(lower);
  if (values === undefined) lines.set(lower, [value]);
  else values.push(value);
}

// Envoy fills either the map or the list and takes the attributes from the same headers. A message in which two places
// disagree was not made by Envoy, or was changed on its way: there is no telling which of them the upstream would see.
function contradictionIn(http: HttpRequestMessage, joined: HeaderLines, raw: HeaderLines): string | undefined {
  for (const { value, raw_value } of http.header_map?.headers ?? []) {
    if (value !== '' && raw_value.length > 0 && value !== raw_value.toString('utf8')) return 'two values in one header';
  }
  for (const [name, values] of raw) {
    const other = joined.get(name);
    if (other !== undefined && other.join() !== values.join()) return 'two header lists that disagree';
  }
  if (!agrees(http.path, joined.get(':path'), raw.get(':path'))) return ':path contradicts the path';
  if (!agrees(http.method, joined.get(':method'), raw.get(':method'))) return ':method contradicts the method';
  const mark = http.path.indexOf('?');
  if (http.query !== '' && (mark === -1 || http.path.slice(mark + 1) !== http.query))
    return 'query contradicts the path';
  if (http.fragment !== '') return 'a fragment beside the path';
  return undefined;
}

function agrees(attribute: string, ...pseudoHeaders: readonly (readonly string[] | undefined)[]): boolean {
  return pseudoHeaders.every(
    values =>
      values === undefined || (values.length === 1 && (values[0] === attribute || asUtf8(values[0]) === attribute)),
  );
}

// The attributes are text; the list holds the bytes of that text.
function asUtf8(latin1: string | undefined): string {
  return Buffer.from(latin1 ?? '', 'latin1').toString('utf8');
}
