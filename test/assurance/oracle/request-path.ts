// Reads a path and finds its routes, by the contract, "Path" and "`characters: rfc3986`".
import { isUtf8 } from 'node:buffer';
import type { Settings } from './settings.ts';
import { asNamed } from './token.ts';

/** The segments of the path, without an empty last one; undefined if the target is outside the grammar. */
export function segmentsOf(target: string): string[] | undefined {
  if (Buffer.byteLength(target) > 8192 || target.includes('#')) return undefined;
  const [path = ''] = target.split('?', 1);
  if (Buffer.byteLength(path) > 2048 || !path.startsWith('/')) return undefined;
  if (target.slice(path.length + 1).split('&').length > 256) return undefined;
  const segments = path.slice(1).split('/');
  if (segments.at(-1) === '') segments.pop();
  // RFC 3986 section 3.3: pchar without `;`.
  const isPath = segments.every(
    segment =>
      /^(?:[A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2})+$/.test(segment) && segment !== '.' && segment !== '..',
  );
  return isPath ? segments : undefined;
}

/** Whether a segment is in the strict grammar. */
function isStrict(segment: string): boolean {
  return /^[A-Za-z0-9._~:@-]+$/.test(segment);
}

// "All of RFC 3986's pchar but `;`: sub-delims, and percent-encodings that decode to UTF-8, except those of / \ % . ; ? and of control
// characters (%00 to %1F, %7F, C1), and except a segment that decodes to nothing but dots and white space."
function isWide(segment: string): boolean {
  for (const [encoded] of segment.matchAll(/(?:%[0-9A-Fa-f]{2})+/g)) {
    const bytes = Buffer.from(encoded.replaceAll('%', ''), 'hex');
    if (!isUtf8(bytes) || /[/\\%.;?\p{Cc}]/u.test(bytes.toString())) return false;
  }
  return !/^[.\s]+$/.test(decodeURIComponent(segment));
}

/** Whether every segment is one that a route covers, and no other template matches loosely. */
export function isPathAccepted(segments: readonly string[], settings: Settings): boolean {
  const { routes, parameter } = settings;
  const isOdd = (segment: string): boolean => !isStrict(segment);
  if (segments.some(segment => isOdd(segment) && !isWide(segment))) return false;
  for (const route of routes) {
    const parts = templateParts(route.path);
    const readings = parts.map((part, i) => (part.startsWith(':') ? 'exact' : readingOf(part, i, segments, settings)));
    if (!hasLength(route.path, segments) || readings.includes('none')) continue;
    const namesAccount = parts.includes(`:${parameter}`);
    // "Where it takes a cut or a trim to match, only if that template has the account, roles or scopes."
    const counts = !readings.includes('cut') || namesAccount || route.roles !== undefined || route.scopes !== undefined;
    // "Invalid: a template that matches loosely and not exactly; one that matches loosely with such a segment as :account_id."
    if (counts && readings.some(reading => reading !== 'exact')) return false;
    if (counts && parts.some((part, i) => part === `:${parameter}` && isOdd(segments[i] ?? ''))) return false;
  }
  // "Such a segment that a matching `strict` route covers, or no `rfc3986` route covers."
  const matching = routes.filter(({ path }) => matchesExactly(path, segments));
  return segments.every((segment, i) => {
    if (!isOdd(segment)) return true;
    const covering = matching.filter(({ path }) => templateParts(path)[i]?.startsWith(':') ?? true);
    return covering.length > 0 && covering.every(({ characters }) => characters === 'rfc3986');
  });
}

type Reading = 'exact' | 'loose' | 'cut' | 'none';

// "Each literal equals the decoded segment, case ignored (upper, then lower), then white space at its ends left out, then what follows the
// literal left out where that begins with a character outside A-Z a-z 0-9 _ ~ -; a segment that some template has as its literal at that place
// is cut for no other."
function readingOf(literal: string, at: number, segments: readonly string[], { routes }: Settings): Reading {
  const segment = segments[at] ?? '';
  if (literal === segment) return 'exact';
  const folded = (text: string): string => text.toUpperCase().toLowerCase();
  const read = folded(decodeURIComponent(segment));
  if (read === folded(literal)) return 'loose';
  if (read.trim() === folded(literal)) return 'cut';
  const isLiteral = routes.some(({ path }) => {
    const parts = templateParts(path);
    return parts[at] === segment && parts.slice(0, at).every((part, i) => part.startsWith(':') || part === segments[i]);
  });
  const rest = read.trim().startsWith(folded(literal)) ? read.trim().slice(literal.length) : '';
  return !isLiteral && /^[^A-Za-z0-9_~-]/.test(rest) ? 'cut' : 'none';
}

function hasLength(template: string, segments: readonly string[]): boolean {
  const { length } = templateParts(template);
  return template.endsWith('/*') ? segments.length >= length : segments.length === length;
}

/** Literals byte for byte, parameters any one segment. */
export function matchesExactly(template: string, segments: readonly string[]): boolean {
  const parts = templateParts(template);
  return hasLength(template, segments) && parts.every((part, i) => part.startsWith(':') || part === segments[i]);
}

function templateParts(template: string): string[] {
  return template.replace(/\/\*$/, '').slice(1).split('/');
}

export interface Route {
  /** The path before the first parameter. */
  readonly start: string;
  readonly accounts: readonly string[];
  readonly roles: readonly string[] | undefined;
  readonly scopes: readonly string[] | undefined;
}

/** The routes that match the path. */
export function routesOf(segments: readonly string[], settings: Settings): readonly Route[] {
  return settings.routes
    .filter(({ path }) => matchesExactly(path, segments))
    .map(({ path, roles, scopes }) => ({
      start: path.replace(/\/(?:\*|:).*$/, ''),
      accounts: templateParts(path).flatMap((part, i) =>
        part === `:${settings.parameter}` ? [asNamed(segments[i] ?? '', settings)] : [],
      ),
      roles,
      scopes,
    }));
}
