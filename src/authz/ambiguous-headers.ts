// Refuses headers that change how an upstream reads what account-authz has checked: `connection`, which lets a proxy remove a header, and
// `content-type`, whose charset some servers use for the query too.
import type { AccountPlace } from './places/place.ts';
import { type Refusal, refusal } from './refusal.ts';
import { maxNominated, nominatedNames, type RequestHeaders } from './request-facts.ts';
import type { TokenPlaces } from './token-places.ts';

interface NeededHeaders {
  /** Lower case. */
  readonly identityPrefix: string;
  readonly places: readonly Pick<AccountPlace, 'headers' | 'hasCharset'>[];
  readonly tokenPlaces: Pick<TokenPlaces, 'places'>;
}

export function refuseAmbiguousHeaders(
  { identityPrefix, places, tokenPlaces }: NeededHeaders,
  headers: RequestHeaders,
): Refusal | undefined {
  const nominated = nominatedNames(headers);
  if (nominated.length > maxNominated)
    return refusal('request_invalid', `connection with more than ${maxNominated} names`);
  const isNeeded = (name: string): boolean =>
    name.startsWith(identityPrefix) ||
    [...places, ...tokenPlaces.places].some(({ headers: read }) => read?.includes(name));
  if (nominated.some(isNeeded))
    return refusal('request_invalid', 'connection nominates a header that the upstream needs');
  const contentType = places.some(({ hasCharset }) => hasCharset) ? headers.get('content-type') : undefined;
  if (contentType !== undefined && !hasPlainCharset(contentType))
    return refusal('request_invalid', 'content-type with an ambiguous charset');
  return undefined;
}

const charsets = /charset[^a-z=;]*=/g;
const plainCharset = /;[ \t]*charset=(?:utf-8|us-ascii)[ \t]*(?:;|$)/;

// Django reads the query in the charset of the body: `+AGE-ccount_id` is `account_id` in UTF-7. Every text that a lenient parser may take
// for the parameter counts, so the quoted and the extended form (`charset*=`, RFC 2231) are refused.
function hasPlainCharset(lines: readonly string[]): boolean {
  const [line = '', ...others] = [...new Set(lines.map(once))];
  const text = line.toLowerCase();
  const found = text.match(charsets)?.length ?? 0;
  return others.length === 0 && (found === 0 || (found === 1 && plainCharset.test(text)));
}

// A waypoint of Istio shows one line twice, joined by a comma (istio/istio#59781).
function once(line: string): string {
  const half = line.slice(0, line.length / 2);
  return line === `${half},${half}` ? half : line;
}
