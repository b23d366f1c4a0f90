// Reads the one bearer token from the Authorization values of a request (RFC 6750 section 2.1).
import { type Refusal, refusal } from './refusal.ts';

/** The text after `Bearer `, not parsed yet. */
export type BearerToken = string & { readonly brand: 'BearerToken' };

/** Refuses more than one value. Envoy joins several Authorization lines with a comma. */
export function refuseAmbiguousAuthorization(values: readonly string[]): Refusal | undefined {
  const present = values.filter(isPresent);
  if (present.length > 1) return refusal('request_invalid', 'more than one Authorization');
  if (present.some(value => value.includes(','))) return refusal('request_invalid', 'a comma in Authorization');
  return undefined;
}

/** One space or more separates token and scheme, which is case-insensitive (RFC 9110 sections 11.1 and 11.4). */
export function parseBearerToken(values: readonly string[]): BearerToken | Refusal {
  const value = trimmed(values.find(isPresent) ?? '');
  if (value === '') return refusal('token_missing', 'no Authorization');
  const space = value.indexOf(' ');
  const scheme = space === -1 ? value : value.slice(0, space);
  if (scheme.toLowerCase() !== 'bearer') return refusal('token_missing', 'Authorization has another scheme');
  if (space === -1) return refusal('token_missing', 'no token after the scheme');
  return value.slice(space).replace(/^ +/, '') as BearerToken;
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
