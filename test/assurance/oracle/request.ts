// Reads a request before its token, by the contract, "Grammar of a request".
import type { CheckMessage, HttpAttributes } from './message.ts';
import type { Settings } from './settings.ts';

export interface RequestFinding {
  readonly method: string;
  readonly segments: readonly string[];
  /** The accounts in headers and query. */
  readonly accounts: readonly string[];
  /** The Authorization value without surrounding white space; empty if absent. */
  readonly authorization: string;
  /** Lower-case name → values, in order. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  /** The contract does not decide whether the request is in the grammar, so the product may refuse it. */
  readonly mayBeInvalid: boolean;
}

export type Outside = { readonly kind: 'outside'; readonly headers: ReadonlyMap<string, readonly string[]> };

export function readRequest(message: CheckMessage, settings: Settings): RequestFinding | Outside {
  const http = message.attributes?.request?.http;
  if (http === undefined || http === null) return { kind: 'outside', headers: new Map() };
  const lists = headerLists(http);
  const headers = new Map([...lists.joined, ...lists.separate]);
  const outside: Outside = { kind: 'outside', headers };
  if (contradicts(http, lists) || hasTooManyHeaders(http)) return outside;

  // Upper-case letters. The contract has no length: a longer method than any existing one may be refused (security-cases.md R-002).
  if (!/^[A-Z]+$/.test(http.method)) return outside;

  const segments = segmentsOf(http.path);
  if (segments === undefined) return outside;
  const otherCase = settings.routes.some(
    ({ path }) => fits(path, segments, sameButForCase) && !fits(path, segments, sameText),
  );
  if (otherCase) return outside;

  const authorizations = (headers.get('authorization') ?? []).map(withoutSpaceAround).filter(value => value !== '');
  if (authorizations.length > 1 || authorizations.some(value => value.includes(','))) return outside;

  if (hasAmbiguousHeader(headers, settings)) return outside;

  const inHeaders = accountsInHeaders(headers, settings.accountHeaders);
  const query = http.path.includes('?') ? http.path.slice(http.path.indexOf('?') + 1) : '';
  const inQuery = accountsInQuery(query, settings.accountQuery);
  if (inHeaders === undefined || inQuery === undefined) return outside;
  return {
    method: http.method,
    segments,
    accounts: [...inHeaders, ...inQuery.accounts],
    authorization: authorizations[0] ?? '',
    headers,
    mayBeInvalid: http.method.length > 32 || inQuery.mayBeInvalid,
  };
}

interface HeaderLists {
  readonly joined: ReadonlyMap<string, readonly string[]>;
  readonly separate: ReadonlyMap<string, readonly string[]>;
}

// A map in which Envoy joined the lines of a name, or a list with one entry per line.
function headerLists(http: HttpAttributes): HeaderLists {
  const entries = http.header_map?.headers ?? [];
  return {
    joined: grouped(http.headerEntries ?? Object.entries(http.headers)),
    separate: grouped(
      entries.map(({ key, value, raw_value }) => [key, raw_value.length > 0 ? raw_value.toString('latin1') : value]),
    ),
  };
}

// Section 5: "200 headers", plus the five pseudo-headers of HTTP/2 and extended CONNECT (RFC 9113, RFC 8441).
function hasTooManyHeaders(http: HttpAttributes): boolean {
  const mapNames = (http.headerEntries ?? Object.entries(http.headers)).map(([name]) => name);
  const listNames = (http.header_map?.headers ?? []).map(({ key }) => key);
  return [mapNames, listNames].some(names => {
    const pseudoHeaders = names.filter(name => name.startsWith(':')).length;
    return pseudoHeaders > 5 ? names.length > 200 : names.length - pseudoHeaders > 200;
  });
}

function grouped(lines: readonly (readonly [string, string])[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const [name, value] of lines) {
    const lower = name.toLowerCase();
    groups.set(lower, [...(groups.get(lower) ?? []), value]);
  }
  return groups;
}

// "A `:path` that contradicts", and every other contradiction within one message (security-cases.md H-017, H-018, P-058, R-011):
// ambiguous input.
function contradicts(http: HttpAttributes, { joined, separate }: HeaderLists): boolean {
  for (const { value, raw_value } of http.header_map?.headers ?? []) {
    if (value !== '' && raw_value.length > 0 && value !== raw_value.toString('utf8')) return true;
  }
  for (const [name, values] of separate) {
    if (joined.has(name) && joined.get(name)?.join(',') !== values.join(',')) return true;
  }
  for (const [name, attribute] of [
    [':path', http.path],
    [':method', http.method],
  ] as const) {
    for (const values of [joined.get(name), separate.get(name)]) {
      if (values === undefined) continue;
      const spellings = [attribute, Buffer.from(attribute).toString('latin1')];
      if (values.length !== 1 || !spellings.includes(values[0] ?? '')) return true;
    }
  }
  const afterMark = http.path.includes('?') ? http.path.slice(http.path.indexOf('?') + 1) : undefined;
  return (http.query !== '' && http.query !== afterMark) || http.fragment !== '';
}

/** The segments of the path, without an empty last one; undefined if the target is outside the grammar. */
function segmentsOf(target: string): string[] | undefined {
  if (Buffer.byteLength(target) > 8192 || target.includes('#')) return undefined;
  const [path = ''] = target.split('?', 1);
  if (Buffer.byteLength(path) > 2048 || !path.startsWith('/')) return undefined;
  if (target.slice(path.length + 1).split('&').length > 256) return undefined;
  const segments = path.slice(1).split('/');
  if (segments.at(-1) === '') segments.pop();
  const isPlain = segments.every(
    segment => /^[A-Za-z0-9._~:@-]+$/.test(segment) && segment !== '.' && segment !== '..',
  );
  return isPlain ? segments : undefined;
}

const sameText = (one: string, other: string): boolean => one === other;
const sameButForCase = (one: string, other: string): boolean => one.toUpperCase() === other.toUpperCase();

function fits(template: string, segments: readonly string[], same: (one: string, other: string) => boolean): boolean {
  const parts = templateParts(template);
  const lengthFits = template.endsWith('/*') ? segments.length >= parts.length : segments.length === parts.length;
  return lengthFits && parts.every((part, i) => part.startsWith(':') || same(part, segments[i] ?? ''));
}

function templateParts(template: string): string[] {
  return template.replace(/\/\*$/, '').slice(1).split('/');
}

export interface Route {
  readonly accounts: readonly string[];
  readonly roles: readonly string[] | undefined;
}

/** The routes that match the path. */
export function routesOf(segments: readonly string[], settings: Settings): readonly Route[] {
  return settings.routes
    .filter(({ path }) => fits(path, segments, sameText))
    .map(({ path, roles }) => ({
      accounts: templateParts(path).flatMap((part, i) => (part === ':account_id' ? [segments[i] ?? ''] : [])),
      roles,
    }));
}

// "Connection: nominates no owned and no account header." "Charset: with `account.query` set, no `content-type` with a charset other than utf-8
// or us-ascii, twice, quoted or extended."
function hasAmbiguousHeader(headers: ReadonlyMap<string, readonly string[]>, settings: Settings): boolean {
  const nominated = (headers.get('connection') ?? []).flatMap(line => line.split(',')).map(withoutSpaceAround);
  const isOwned = (name: string): boolean =>
    name.startsWith(settings.identityPrefix) || settings.accountHeaders.includes(name);
  if (nominated.some(name => isOwned(name.toLowerCase()))) return true;
  if (settings.accountQuery.length === 0) return false;
  const [contentType = '', ...others] = headers.get('content-type') ?? [];
  const charsets = contentType
    .toLowerCase()
    .split(/[;,]/)
    .filter(part => part.includes('charset'));
  const isPlain = (part: string): boolean => ['charset=utf-8', 'charset=us-ascii'].includes(withoutSpaceAround(part));
  return others.length > 0 || charsets.length > 1 || !charsets.every(isPlain);
}

function accountsInHeaders(
  headers: ReadonlyMap<string, readonly string[]>,
  configured: readonly string[],
): readonly string[] | undefined {
  const accounts: string[] = [];
  for (const [name, values] of headers) {
    if (!configured.includes(name)) {
      // A look-alike: the same letters and digits, with other characters between them.
      if (configured.some(other => isSameButForSigns(name, other))) return undefined;
      continue;
    }
    const [value = ''] = values;
    // A second line, an empty value, a list.
    if (values.length > 1 || value.trim() === '' || value.includes(',')) return undefined;
    accounts.push(value);
  }
  return accounts;
}

function isSameButForSigns(name: string, other: string): boolean {
  const isSign = (character: string): boolean => !/^[a-z0-9]$/.test(character);
  const theirs = [...other];
  const ours = [...name];
  return (
    ours.length === theirs.length &&
    ours.every((character, i) => character === theirs[i] || (isSign(character) && theirs[i] === '-'))
  );
}

interface QueryFinding {
  readonly accounts: readonly string[];
  readonly mayBeInvalid: boolean;
}

function accountsInQuery(query: string, configured: readonly string[]): QueryFinding | undefined {
  const accounts: string[] = [];
  let mayBeInvalid = false;
  for (const parameter of query.split('&')) {
    const [name = ''] = parameter.split('=', 1);
    const isConfigured = configured.includes(name);
    if (isConfigured) {
      const value = parameter.slice(name.length + 1);
      if (value === '' || ['%', '+', ';'].some(char => value.includes(char))) return undefined;
      accounts.push(value);
    }
    for (const reading of namesIn(parameter).flatMap(sent => [sent, decoded(sent), decoded(decoded(sent))])) {
      const pieces = reading.split(/[=&;.[\]?!+\s\0]/);
      const candidates = [...pieces, pieces.join('')];
      if (candidates.some(piece => piece.replaceAll('-', '').toLowerCase() === '_method')) return undefined;
      if (candidates.some(piece => plain(piece) === 'xhttpmethodoverride')) return undefined;
      if (!isConfigured && candidates.some(piece => configured.some(wanted => plain(piece) === plain(wanted))))
        return undefined;
    }
    mayBeInvalid ||= [...configured, 'method'].some(wanted => !isConfigured && resembles(parameter, wanted));
  }
  return { accounts, mayBeInvalid };
}

// "Cut as sent at its first `=` that is not at the beginning; what stands before it, and in the value the same after each `;`".
function namesIn(parameter: string): readonly string[] {
  const cut = (text: string): string => {
    const rest = text.replace(/^=+/, '');
    return text.slice(0, text.length - rest.length) + (rest.split('=', 1)[0] ?? '');
  };
  const name = cut(parameter);
  // Netty splits at `;` first, so that `=` is at a beginning after each of them, in the name too.
  return [name, ...parameter.split(';').map(cut)];
}

function plain(name: string): string {
  return name.normalize('NFKC').toUpperCase().toLowerCase().replace(/[_-]/g, '');
}

// The product may refuse a name that contains the configured one, or a method override, and a character that parsers treat differently: the
// contract's list of delimiters and compatibility forms is the least, not the most.
function resembles(parameter: string, wanted: string): boolean {
  if (/^[A-Za-z0-9_~=-]*$/.test(parameter)) return false;
  const bare = (text: string): string =>
    text
      .normalize('NFKC')
      .toLowerCase()
      .replace(/[^a-z0-9]/g, '');
  // `%uXXXX` is an encoding of old Windows servers.
  const text = parameter.replace(/%u([0-9a-f]{4})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return bare(decoded(decoded(text))).includes(bare(wanted));
}

function decoded(text: string): string {
  const pieces = text.split(/(%[0-9a-fA-F]{2})/);
  const bytes = pieces.map((piece, i) => (i % 2 === 1 ? Buffer.from(piece.slice(1), 'hex') : Buffer.from(piece)));
  return Buffer.concat(bytes).toString('utf8');
}

export function withoutSpaceAround(value: string): string {
  return value.replace(/^[ \t]+/, '').replace(/[ \t]+$/, '');
}
