// Where a request carries its token, by the contract, "Places of the token".
import { isUtf8 } from 'node:buffer';
import type { Settings } from './settings.ts';
import { isSameButForSigns, withoutSpaceAround } from './text.ts';

export type Place =
  | 'authorization'
  | { readonly header: string }
  | { readonly cookie: string }
  | { readonly subprotocol: string };

export interface PlaceFinding {
  /** The Authorization value, or what a header or a cookie has; undefined: the request has no place of a token. */
  readonly token:
    | { readonly authorization: string }
    | { readonly text: string; readonly isOfPage: boolean }
    | undefined;
  /** What the upstream gets as `cookie` in place of what was sent; undefined: what was sent. */
  readonly cookie: string | undefined;
  /** As `sec-websocket-protocol`, likewise. */
  readonly subprotocols?: string | undefined;
}

/** Undefined: `request_invalid`. */
export function readPlaces(
  headers: ReadonlyMap<string, readonly string[]>,
  authorization: string,
  { from, forward }: Settings,
): PlaceFinding | undefined {
  const pairs = (headers.get('cookie') ?? []).join('; ').split(';');
  // Section 5: no list is longer than an honest request needs. Read only where a cookie is a place.
  const readsCookies = from.some(place => typeof place === 'object' && 'cookie' in place);
  if (readsCookies && pairs.length > 256) return undefined;
  const nameOf = (pair: string): string => withoutSpaceAround(pair.split('=', 1)[0] ?? '');
  const found: PlaceFinding['token'][] = [];
  const offered = listOf(headers, 'sec-websocket-protocol');
  const sockets: string[] = [];
  for (const place of from) {
    if (place === 'authorization') {
      // "A request where it is empty or has another scheme does not have this place."
      if (/^bearer(?: |$)/i.test(authorization)) found.push({ authorization });
    } else if ('header' in place) {
      // "It has no underscore look-alike." "A token header in two lines, empty or with a comma."
      if ([...headers.keys()].some(name => name !== place.header && isSameButForSigns(name, place.header)))
        return undefined;
      const lines = headers.get(place.header);
      if (lines === undefined) continue;
      const text = withoutSpaceAround(lines[0] ?? '');
      if (lines.length > 1 || text === '' || text.includes(',')) return undefined;
      found.push({ text, isOfPage: false });
    } else if ('subprotocol' in place) {
      // "On an upgrade to websocket the items, lines joined, are read as a list; the item after NAME is the token."
      if (!isWebSocket(headers) || !offered.includes(place.subprotocol)) continue;
      const at = offered.indexOf(place.subprotocol);
      const text = offered[at + 1];
      if (offered.lastIndexOf(place.subprotocol) !== at || text === undefined) return undefined;
      found.push({ text, isOfPage: true });
      sockets.push(offered.filter(item => item !== text).join(', '));
    } else {
      // "A cookie whose name occurs twice or whose value is empty or quoted."
      const [pair, ...others] = pairs.filter(each => nameOf(each) === place.cookie);
      if (pair === undefined) continue;
      const text = withoutSpaceAround(pair.includes('=') ? pair.slice(pair.indexOf('=') + 1) : '');
      if (others.length > 0 || text === '' || text.startsWith('"')) return undefined;
      found.push({ text, isOfPage: true });
    }
  }
  const cookies = from.flatMap(place => (typeof place === 'object' && 'cookie' in place ? place.cookie : []));
  const kept = pairs.filter(pair => !cookies.includes(nameOf(pair)));
  // "Beside a token in another of those places."
  const isToken = (each: PlaceFinding['token']): boolean =>
    each !== undefined && ('text' in each || /^bearer /i.test(each.authorization));
  if (sockets.length > 0 && found.filter(isToken).length > 1) return undefined;
  const [subprotocols] = forward ? [] : sockets;
  if (subprotocols !== undefined && !isUtf8(Buffer.from(subprotocols, 'latin1'))) return undefined;
  if (forward || kept.length === pairs.length) return { token: found[0], cookie: undefined, subprotocols };
  const rest = kept.join(';').replace(/^[ \t]+/, '');
  const bytes = Buffer.from(rest, 'latin1');
  const isBytes = bytes.toString('latin1') === rest;
  const text = isBytes ? bytes.toString('utf8') : rest;
  // "Other cookies that are not UTF-8 make the request request_invalid."
  if (isBytes && !Buffer.from(text).equals(bytes)) return undefined;
  return { token: found[0], cookie: text, subprotocols };
}

// RFC 9110 section 5.6.1: an empty item is none.
function listOf(headers: ReadonlyMap<string, readonly string[]>, name: string): readonly string[] {
  const items = (headers.get(name) ?? []).flatMap(line => line.split(','));
  return items.map(withoutSpaceAround).filter(item => item !== '');
}

function isWebSocket(headers: ReadonlyMap<string, readonly string[]>): boolean {
  const lower = (name: string): readonly string[] => listOf(headers, name).map(item => item.toLowerCase());
  return (
    lower('upgrade').includes('websocket') && lower('connection').some(each => each.split(/\s+/).includes('upgrade'))
  );
}

/** A page may not send it: "no GET, HEAD or OPTIONS, or an upgrade … must have exactly one origin that equals one of them". */
export function isForeignPage(
  method: string,
  headers: ReadonlyMap<string, readonly string[]>,
  origins: readonly string[],
): boolean {
  const nominated = (headers.get('connection') ?? []).flatMap(line => line.toLowerCase().split(/[,\s]+/));
  if (['GET', 'HEAD', 'OPTIONS'].includes(method) && !nominated.includes('upgrade')) return false;
  const sent = headers.get('origin') ?? [];
  return sent.length !== 1 || !origins.includes(sent[0] ?? '');
}
