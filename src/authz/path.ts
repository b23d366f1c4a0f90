// Parses a request target by a strict grammar. Nothing is decoded: ambiguous paths are refused.
import { type Refusal, refusal } from './refusal.ts';

/** A target with a valid path, split into segments. */
export interface RequestTarget {
  readonly kind: 'target';
  /** Without the empty segment of a trailing slash, which matching ignores. */
  readonly segments: readonly string[];
  /** The text after the first `?`, undecoded; empty without one. */
  readonly query: string;
}

const maxTargetBytes = 8192;
const maxPathBytes = 2048;
const maxParameters = 256;
const pathGrammar = /^\/(?:[A-Za-z0-9._~:@-]+(?:\/[A-Za-z0-9._~:@-]+)*\/?)?$/;

export function parseRequestTarget(target: string): RequestTarget | Refusal {
  if (Buffer.byteLength(target) > maxTargetBytes)
    return refusal('request_invalid', `target longer than ${maxTargetBytes} bytes`);
  // A fragment never reaches a server (RFC 9112 section 3.2.1): one that is sent is an attempt to make readers disagree (CVE-2021-32779).
  if (target.includes('#')) return refusal('request_invalid', 'a fragment in the target');
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  if (path.length > maxPathBytes) return refusal('request_invalid', `path longer than ${maxPathBytes} bytes`);
  if (!pathGrammar.test(path)) return refusal('request_invalid', 'path outside the grammar');
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  if (segments.includes('.') || segments.includes('..')) return refusal('request_invalid', 'a dot segment in the path');
  const query = mark === -1 ? '' : target.slice(mark + 1);
  if (query.split('&', maxParameters + 1).length > maxParameters)
    return refusal('request_invalid', `more than ${maxParameters} query parameters`);
  return { kind: 'target', segments, query };
}
