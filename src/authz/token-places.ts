// The places where a request may carry its token: Authorization (RFC 6750 section 2.1), a header, a cookie, a subprotocol. One object for each.
import type { DetailOf } from './checks.ts';
import { hasLookAlike } from './places/header-place.ts';
import { type Refusal, refusal } from './refusal.ts';
import { nominatedNames, type RequestHeaders } from './request-facts.ts';

/** The text of a token, not parsed yet. */
export type BearerToken = string & { readonly brand: 'BearerToken' };

/** An item of `token.from`. */
export type TokenPlaceSetting =
  | 'authorization'
  | { readonly header: string }
  | { readonly cookie: string }
  | { readonly subprotocol: string };

/** The part of `token` in the configuration that decides where a token may be. */
export interface TokenSettings {
  readonly from: readonly TokenPlaceSetting[];
  readonly origins?: readonly string[] | undefined;
  /** Whether the upstream gets the token too. */
  readonly forward: boolean;
}

export interface TokenPlace {
  /** Undefined where the request does not have this place. */
  readonly read: (headers: RequestHeaders, cookies: readonly Cookie[]) => BearerToken | Refusal | undefined;
  readonly absent: (headers: RequestHeaders) => DetailOf<'token_missing'>;
  /** The header that `connection` must not nominate. */
  readonly headers?: readonly string[];
  readonly cookie?: string;
  /** Of a WebSocket: what the upstream gets of `sec-websocket-protocol` in place of the list with the token. */
  readonly otherSubprotocols?: (headers: RequestHeaders) => string | Refusal;
}

/** What the upstream gets in place of these headers of the request. Empty: not the header at all. */
export type Rewrites = readonly (readonly [name: string, value: string])[];

/** One of the texts between semicolons. */
interface Cookie {
  readonly name: string;
  /** As it was sent. */
  readonly pair: string;
}

export interface TokenPlaces {
  readonly places: readonly TokenPlace[];
  /** The pages whose requests may bring a token in a cookie or a subprotocol. */
  readonly origins: ReadonlySet<string>;
  /** Whether the upstream gets the token too. */
  readonly forward: boolean;
  /** Names of cookies that the upstream does not get. */
  readonly removedCookies: ReadonlySet<string>;
}

export function compileTokenPlaces({ from, origins = [], forward }: TokenSettings): TokenPlaces {
  const places = from.map(toTokenPlace);
  const cookies = places.flatMap(({ cookie }) => cookie ?? []);
  return { places, origins: new Set(origins), forward, removedCookies: new Set(forward ? [] : cookies) };
}

export interface TokenReading {
  readonly kind: 'token';
  /** A refusal is `token_missing`. */
  readonly token: BearerToken | Refusal;
  /** Whether only a page of `origins` may send it. */
  readonly isOfPage: boolean;
  readonly rewrites: Rewrites;
}

/** The token of the first place that the request has. What is ambiguous makes the request invalid, in whichever place. */
export function readToken(
  { places, removedCookies, forward }: TokenPlaces,
  headers: RequestHeaders,
): TokenReading | Refusal {
  const ambiguity = refuseAmbiguousAuthorization(headers);
  if (ambiguity !== undefined) return ambiguity;
  const cookies = places.some(({ cookie }) => cookie !== undefined) ? parseCookies(headers) : [];
  if ('kind' in cookies) return cookies;
  let token: BearerToken | Refusal | undefined;
  let place: TokenPlace | undefined;
  let tokens = 0;
  let socket: TokenPlace | undefined;
  for (const each of places) {
    const found = each.read(headers, cookies);
    if (typeof found === 'object' && found.reason === 'request_invalid') return found;
    if (typeof found === 'string') tokens += 1;
    if (found !== undefined && each.otherSubprotocols !== undefined) socket = each;
    if (token !== undefined || found === undefined) continue;
    token = found;
    place = each;
  }
  if (socket !== undefined && tokens > 1) return refusal('request_invalid', 'a token beside that of a subprotocol');
  token ??= refusal('token_missing', expectedPlace(places, headers)?.absent(headers) ?? 'no Authorization');
  const otherCookies = removedCookies.size === 0 ? undefined : cookiesWithout(removedCookies, cookies);
  if (typeof otherCookies === 'object') return otherCookies;
  const otherSubprotocols = forward ? undefined : socket?.otherSubprotocols?.(headers);
  if (typeof otherSubprotocols === 'object') return otherSubprotocols;
  const rewrites: [string, string][] = [];
  if (otherCookies !== undefined) rewrites.push(['cookie', otherCookies]);
  if (otherSubprotocols !== undefined) rewrites.push([subprotocolHeader, otherSubprotocols]);
  const isOfPage = place?.cookie !== undefined || place?.otherSubprotocols !== undefined;
  return { kind: 'token', token, isOfPage, rewrites };
}

/** A page that offers subprotocols can send no other header. */
function expectedPlace(places: readonly TokenPlace[], headers: RequestHeaders): TokenPlace | undefined {
  const isOffer = headers.get(subprotocolHeader) !== undefined && isWebSocket(headers);
  return places.find(({ otherSubprotocols }) => isOffer && otherSubprotocols !== undefined) ?? places[0];
}

/** The header lines that carry a token in this place; with a subprotocol, those of its handshake. */
export function toTokenLines(
  place: TokenPlaceSetting | undefined,
  token: string,
): readonly (readonly [name: string, value: string])[] {
  if (typeof place !== 'object') return [['authorization', `Bearer ${token}`]];
  if ('header' in place) return [[place.header, token]];
  if ('cookie' in place) return [['cookie', `${place.cookie}=${token}`]];
  return [
    ['connection', 'upgrade'],
    ['upgrade', 'websocket'],
    [subprotocolHeader, `${place.subprotocol}, ${token}`],
  ];
}

export function hasPlace(from: readonly TokenPlaceSetting[], kind: 'cookie' | 'subprotocol'): boolean {
  return from.some(place => typeof place === 'object' && kind in place);
}

/** Whether a header line has such a place. */
export function isTokenLine(from: readonly TokenPlaceSetting[], name: string, value: string): boolean {
  return from.some(place => {
    if (typeof place !== 'object') return name === 'authorization';
    if ('header' in place) return name === place.header;
    if ('subprotocol' in place)
      return name === subprotocolHeader && value.split(',').some(item => trimmed(item) === place.subprotocol);
    return name === 'cookie' && value.split(';').some(pair => cookieName(pair) === place.cookie);
  });
}

function toTokenPlace(setting: TokenPlaceSetting): TokenPlace {
  if (setting === 'authorization') return authorizationPlace;
  if ('header' in setting) return headerPlace(setting.header);
  return 'cookie' in setting ? cookiePlace(setting.cookie) : subprotocolPlace(setting.subprotocol);
}

/** Refuses more than one value, whether a token may be there or not. Envoy joins several Authorization lines with a comma. */
function refuseAmbiguousAuthorization(headers: RequestHeaders): Refusal | undefined {
  let value: string | undefined;
  for (const line of headers.get('authorization') ?? []) {
    if (!isPresent(line)) continue;
    if (value !== undefined) return refusal('request_invalid', 'more than one Authorization');
    value = line;
  }
  return value?.includes(',') ? refusal('request_invalid', 'a comma in Authorization') : undefined;
}

// One space or more separates token and scheme, which is case-insensitive (RFC 9110 sections 11.1 and 11.4).
const authorizationPlace: TokenPlace = {
  absent: headers =>
    headers.get('authorization')?.some(isPresent) ? 'Authorization has another scheme' : 'no Authorization',
  read(headers) {
    const value = trimmed(headers.get('authorization')?.find(isPresent) ?? '');
    const space = value.indexOf(' ');
    const scheme = space === -1 ? value : value.slice(0, space);
    if (scheme.toLowerCase() !== 'bearer') return undefined;
    if (space === -1) return refusal('token_missing', 'no token after the scheme');
    return value.slice(space).replace(/^ +/, '') as BearerToken;
  },
};

/** The whole value is the token. `name` is lower case. */
function headerPlace(name: string): TokenPlace {
  const names = [name];
  return {
    absent: () => 'no token in its header',
    headers: names,
    read(headers) {
      if (hasLookAlike(names, headers)) return refusal('request_invalid', 'a look-alike of a token header');
      const values = headers.get(name);
      if (values === undefined) return undefined;
      const value = trimmed(values[0] ?? '');
      if (values.length !== 1) return refusal('request_invalid', 'a token header twice');
      if (value === '') return refusal('request_invalid', 'an empty token header');
      return value.includes(',') ? refusal('request_invalid', 'a list in a token header') : (value as BearerToken);
    },
  };
}

function cookiePlace(cookie: string): TokenPlace {
  return {
    absent: () => 'no token in its cookie',
    cookie,
    read(_, cookies) {
      const [first, ...others] = cookies.filter(({ name }) => name === cookie);
      if (first === undefined) return undefined;
      if (others.length > 0) return refusal('request_invalid', 'a token cookie twice');
      const { pair } = first;
      const value = trimmed(pair.slice(pair.indexOf('=') + 1));
      if (!pair.includes('=') || value === '') return refusal('request_invalid', 'an empty token cookie');
      return value.startsWith('"') ? refusal('request_invalid', 'a token cookie in quotes') : (value as BearerToken);
    },
  };
}

// Browsers keep 180 of a site. HTTP/2 allows several lines (RFC 9113 section 8.2.3).
const maxCookies = 256;

function parseCookies(headers: RequestHeaders): readonly Cookie[] | Refusal {
  const pairs =
    headers
      .get('cookie')
      ?.join('; ')
      .split(';', maxCookies + 1) ?? [];
  if (pairs.length > maxCookies) return refusal('request_invalid', `more than ${maxCookies} cookies`);
  return pairs.map(pair => ({ name: cookieName(pair), pair }));
}

function cookieName(pair: string): string {
  const equals = pair.indexOf('=');
  return trimmed(equals === -1 ? pair : pair.slice(0, equals));
}

function cookiesWithout(names: ReadonlySet<string>, cookies: readonly Cookie[]): string | Refusal | undefined {
  const others = cookies.filter(({ name }) => !names.has(name));
  if (others.length === cookies.length) return undefined;
  const text = utf8(
    others
      .map(({ pair }) => pair)
      .join(';')
      .replace(/^[ \t]+/, ''),
  );
  return text ?? refusal('request_invalid', 'a cookie that is not UTF-8 beside that of the token');
}

export const subprotocolHeader = 'sec-websocket-protocol';
const maxSubprotocols = 256;

/** A browser lets a page name nothing else of its handshake. The item after `name` is the token; the upstream gets the others, to choose from. */
function subprotocolPlace(name: string): TokenPlace {
  return {
    absent: () => 'no token in its subprotocol',
    read(headers) {
      const items = isWebSocket(headers) ? subprotocolsIn(headers) : [];
      if (items === undefined) return refusal('request_invalid', `more than ${maxSubprotocols} subprotocols`);
      const at = items.indexOf(name);
      if (at === -1) return undefined;
      if (items.includes(name, at + 1)) return refusal('request_invalid', 'a token subprotocol twice');
      return (items[at + 1] as BearerToken) ?? refusal('request_invalid', 'a token subprotocol without its token');
    },
    otherSubprotocols(headers) {
      const items = subprotocolsIn(headers) ?? [];
      const token = items[items.indexOf(name) + 1];
      // Wherever else it stands too: items are unique (RFC 6455 section 4.1).
      const others = items.filter(item => item !== token).join(', ');
      return utf8(others) ?? refusal('request_invalid', 'a subprotocol that is not UTF-8 beside that of the token');
    },
  };
}

// RFC 6455 section 4.1. Envoy shows the handshake of HTTP/2 (RFC 8441) in the words of HTTP/1.1.
function isWebSocket(headers: RequestHeaders): boolean {
  const upgrades = headers.get('upgrade')?.join().toLowerCase().split(',') ?? [];
  return upgrades.some(each => trimmed(each) === 'websocket') && nominatedNames(headers).includes('upgrade');
}

/** Of all lines, which make one list; an empty item is none (RFC 9110 section 5.6.1). Undefined: more than the bound, with those. */
function subprotocolsIn(headers: RequestHeaders): readonly string[] | undefined {
  const items =
    headers
      .get(subprotocolHeader)
      ?.join()
      .split(',', maxSubprotocols + 1) ?? [];
  return items.length > maxSubprotocols ? undefined : items.map(trimmed).filter(item => item !== '');
}

/** A header line has one character for each byte. Envoy takes back no bytes that are not UTF-8. */
function utf8(line: string): string | undefined {
  if (/^[\0-\x7f]*$/.test(line) || /[^\0-\xff]/.test(line)) return line;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(line, character => character.charCodeAt(0)),
    );
  } catch {
    return undefined;
  }
}

// Cheaper than trimming a long value.
function isPresent(value: string): boolean {
  return /[^ \t]/.test(value);
}

// Optional whitespace around a field value, space and tab only, is not part of it (RFC 9110 section 5.5).
function trimmed(value: string): string {
  let start = 0;
  let end = value.length;
  // Beyond either end the code is NaN, which ends the loop.
  while (isSpaceOrTab(value.charCodeAt(start))) start += 1;
  while (isSpaceOrTab(value.charCodeAt(end - 1))) end -= 1;
  return value.slice(start, end);
}

function isSpaceOrTab(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
