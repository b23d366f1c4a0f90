// Reads a request before its token, by the contract, "Grammar of a request".
import type { CheckMessage, HttpAttributes } from './message.ts';
import { isPathAccepted, routesOf, segmentsOf } from './request-path.ts';
import { accountsInQuery } from './request-query.ts';
import type { Settings } from './settings.ts';
import { isSameButForSigns, withoutSpaceAround } from './text.ts';
import { asNamed, isAccountName } from './token.ts';
import { type PlaceFinding, readPlaces } from './token-place.ts';

export interface RequestFinding {
  readonly method: string;
  readonly segments: readonly string[];
  /** The accounts in headers, query and host. */
  readonly accounts: readonly string[];
  /** Whether an entry of `hosts` matches. */
  readonly isHostKnown: boolean;
  readonly place: PlaceFinding;
  /** The Authorization value without surrounding white space; empty if absent. */
  readonly authorization: string;
  /** The client's certificate as the check shows it. */
  readonly certificate: string;
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

  // Upper-case letters. The contract has no length: a longer method than any existing one may be refused.
  if (!/^[A-Z]+$/.test(http.method)) return outside;

  const segments = segmentsOf(http.path);
  if (segments === undefined || !isPathAccepted(segments, settings)) return outside;

  const authorizations = (headers.get('authorization') ?? []).map(withoutSpaceAround).filter(value => value !== '');
  if (authorizations.length > 1 || authorizations.some(value => value.includes(','))) return outside;

  const [authorization = ''] = authorizations;
  const place = readPlaces(headers, authorization, settings);
  if (place === undefined) return outside;

  if (hasAmbiguousHeader(headers, settings)) return outside;

  const inHeaders = accountsInHeaders(headers, settings.accountHeaders);
  const query = http.path.includes('?') ? http.path.slice(http.path.indexOf('?') + 1) : '';
  const inQuery = accountsInQuery(query, settings.accountQuery);
  if (inHeaders === undefined || inQuery === undefined) return outside;
  const host = hostOf(http, headers, settings);
  if (host === undefined) return outside;
  const named = [...inHeaders, ...inQuery.accounts, ...host.accounts].map(account => asNamed(account, settings));
  // "A named account, wherever it is named, is in the grammar of accounts."
  const inPath = routesOf(segments, settings).flatMap(route => route.accounts);
  if (![...named, ...inPath].every(account => isAccountName(account, settings))) return outside;
  return {
    method: http.method,
    segments,
    accounts: named,
    isHostKnown: host.isKnown,
    place,
    authorization,
    certificate: message.attributes?.source?.certificate ?? '',
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

// Section 5: "256 headers", plus the five pseudo-headers of HTTP/2 and extended CONNECT (RFC 9113, RFC 8441).
function hasTooManyHeaders(http: HttpAttributes): boolean {
  const mapNames = (http.headerEntries ?? Object.entries(http.headers)).map(([name]) => name);
  const listNames = (http.header_map?.headers ?? []).map(({ key }) => key);
  return [mapNames, listNames].some(names => {
    const pseudoHeaders = names.filter(name => name.startsWith(':')).length;
    return pseudoHeaders > 5 ? names.length > 256 : names.length - pseudoHeaders > 256;
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

// "A `:path` that contradicts", and every other contradiction within one message (H-017, H-018, P-058, R-011):
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

interface HostFinding {
  readonly isKnown: boolean;
  readonly accounts: readonly string[];
}

// The contract, "Hosts". Undefined: `request_invalid`.
function hostOf(
  http: HttpAttributes,
  headers: ReadonlyMap<string, readonly string[]>,
  { hosts, parameter, lower }: Settings,
): HostFinding | undefined {
  const sent = [http.host, ...(headers.get(':authority') ?? []), ...(headers.get('host') ?? [])].filter(
    (each, i) => i > 0 || each !== '',
  );
  // "Whatever is configured an empty host (`:443` too) or one of more than 253 characters without its port." A message without a host is no
  // empty one where any host is good.
  const host = sent[0]?.replace(/:[0-9]{0,5}$/, '');
  if (host === '' || (host?.length ?? 0) > 253) return undefined;
  if (hosts === undefined) return { isKnown: true, accounts: [] };
  if (host === undefined || new Set(sent).size > 1 || host.endsWith('.')) return undefined;
  const [label = '', ...rest] = host.split('.');
  if (hosts.some(entry => asciiLower(entry) === asciiLower(host))) return { isKnown: true, accounts: [] };
  const parent = asciiLower(rest.join('.'));
  const prefix = `:${parameter}.`;
  const isOfAccount = hosts.some(each => each.startsWith(prefix) && asciiLower(each.slice(prefix.length)) === parent);
  if (!isOfAccount) return { isKnown: false, accounts: [] };
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(lower ? asciiLower(label) : label)
    ? { isKnown: true, accounts: [label] }
    : undefined;
}

function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, letter => letter.toLowerCase());
}

// "Connection: nominates no owned and no account header." "Charset: with `account.query` set, no `content-type` with a charset other than utf-8
// or us-ascii, twice, quoted or extended."
function hasAmbiguousHeader(headers: ReadonlyMap<string, readonly string[]>, settings: Settings): boolean {
  const nominated = (headers.get('connection') ?? []).flatMap(line => line.split(',')).map(withoutSpaceAround);
  const isOwned = (name: string): boolean =>
    name.startsWith(settings.identityPrefix) ||
    settings.accountHeaders.includes(name) ||
    settings.from.some(place => typeof place === 'object' && 'header' in place && place.header === name);
  if (nominated.length > 256 || nominated.some(name => isOwned(name.toLowerCase()))) return true;
  if (settings.accountQuery.length === 0) return false;
  const [contentType = '', ...others] = [...new Set(headers.get('content-type'))];
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
