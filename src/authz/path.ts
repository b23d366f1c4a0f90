// Parses a request target. A path outside the strict grammar is decoded too, so that the routes can be compared with what a server may read
// in it: only routes with `characters: rfc3986` permit such a path. Paths that servers read differently are refused.
import { type Refusal, refusal } from './refusal.ts';

/** A target with a valid path, split into segments. */
interface RequestTarget extends RequestPath {
  readonly kind: 'target';
  /** The text after the first `?`, undecoded; empty without one. */
  readonly query: string;
}

export interface RequestPath {
  /** As sent, without the empty segment of a trailing slash, which matching ignores. */
  readonly segments: readonly string[];
  /** Each segment percent-decoded; undefined if all of them are in the strict grammar, where nothing is encoded. */
  readonly decoded: readonly string[] | undefined;
}

const maxTargetBytes = 8192;
const maxPathBytes = 2048;
const maxParameters = 256;
const strictPath = /^\/(?:[A-Za-z0-9._~:@-]+(?:\/[A-Za-z0-9._~:@-]+)*\/?)?$/;
const strictSegment = /^[A-Za-z0-9._~:@-]+$/;
// `pchar` of RFC 3986 section 3.3 without `;`. Servers disagree about encoded / \ % . ; ? and control characters:
// nginx makes a query of an encoded question mark (`proxy_pass http://app$uri`).
const widePath = /^\/(?:[A-Za-z0-9._~:@!$&'()*+,=/-]|%(?!2[EFef]|3[BbFf]|5[Cc]|25|[01]|7[Ff])[0-9A-Fa-f]{2})*$/;

export function parseRequestTarget(target: string): RequestTarget | Refusal {
  if (Buffer.byteLength(target) > maxTargetBytes)
    return refusal('request_invalid', `target longer than ${maxTargetBytes} bytes`);
  // A fragment never reaches a server (RFC 9112 section 3.2.1): one that is sent is an attempt to make readers disagree (CVE-2021-32779).
  if (target.includes('#')) return refusal('request_invalid', 'a fragment in the target');
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  if (path.length > maxPathBytes) return refusal('request_invalid', `path longer than ${maxPathBytes} bytes`);
  const isStrict = strictPath.test(path);
  const decodedPath = isStrict ? path : decodeWidePath(path);
  if (decodedPath === undefined) return refusal('request_invalid', 'path outside the grammar');
  const segments = segmentsOf(path);
  const decoded = isStrict ? undefined : segmentsOf(decodedPath);
  if (segments.includes('.') || segments.includes('..')) return refusal('request_invalid', 'a dot segment in the path');
  // Windows and some servers drop spaces and dots at the end of a name, Spring's AntPathMatcher 4 a whole segment of spaces.
  if (decoded?.some((text, i) => text !== segments[i] && /^[\s.]+$/.test(text)))
    return refusal('request_invalid', 'a segment of nothing but dots and white space');
  const query = mark === -1 ? '' : target.slice(mark + 1);
  if (query.length >= maxParameters && query.split('&', maxParameters + 1).length > maxParameters)
    return refusal('request_invalid', `more than ${maxParameters} query parameters`);
  return { kind: 'target', segments, decoded, query };
}

/** Whether every route may match the segment, whatever its `characters`. */
export function isStrictSegment(segment: string): boolean {
  return strictSegment.test(segment);
}

/** Undefined if the path is outside the grammar. */
function decodeWidePath(path: string): string | undefined {
  if (!widePath.test(path) || path.includes('//')) return undefined;
  try {
    const decoded = decodeURIComponent(path);
    // The C1 control characters.
    return /[\x80-\x9f]/.test(decoded) ? undefined : decoded;
  } catch {
    // The bytes are not UTF-8.
    return undefined;
  }
}

// A decoded path has the slashes that were sent: an encoded one is outside the grammar.
function segmentsOf(path: string): string[] {
  const segments = path.slice(1).split('/');
  if (segments.at(-1) === '') segments.pop();
  return segments;
}

/** Lower case; the characters that a case mapping turns into ASCII letters (U+017F, U+212A, U+00DF, U+0130, U+0131) become these letters. */
export function foldCase(text: string): string {
  // Java's and the Turkish mapping turn İ into i; JavaScript keeps its dot as a combining mark.
  return text.replaceAll('\u0130', 'i').toLowerCase().toUpperCase().toLowerCase();
}
