// The facts that an explanation may print, and how lists, times and ages are written. Of an unverified token these are its length, what its
// header says of the key, and its iss: nothing else.
import type { SignedIdentity } from '../../authz/principal.ts';
import type { Config, IssuerConfig } from '../../config/schema.ts';
import type { KeyRingStatus } from '../../keys/key-ring.ts';
import type { FetchedListStatus } from '../../revocation/fetched-list.ts';
import { listWords, quotedPrintable } from '../../text/printable.ts';
import type { SimulatedRequest } from '../offline/check-request.ts';

export interface Known {
  /** As in the record of the check. */
  readonly found: string | undefined;
  /** As the client sent it. */
  readonly method: string;
  /** The template that the path matched. */
  readonly route: string | undefined;
  /** Only of a token whose signature is verified. */
  readonly principal: SignedIdentity | undefined;
  readonly config: Config;
  readonly request: SimulatedRequest;
  /** Wall time that the token was judged at, in seconds since the epoch. */
  readonly now: number;
  /** The key ring that was asked for the token's key; undefined if none was. */
  readonly keys: KeyRingStatus | undefined;
  /** Of a list by URL; undefined without one. */
  readonly list: FetchedListStatus | undefined;
  /** With --without-files. */
  readonly leavesOutList: boolean;
  readonly tokenLength: number;
  /** Only of a token with a valid signature. */
  readonly times: VerifiedTimes | undefined;
  /** Its role, or the strings of its list of roles, for the addressed account; undefined if it has neither. */
  readonly roles: string | readonly string[] | undefined;
  /** Those of its scopes likewise; undefined without scopes in the configuration. */
  readonly scopes: readonly string[] | undefined;
  /** What these have in it, as it stands: a string, or a list of strings, for the addressed account. */
  readonly texts: Readonly<Partial<Record<'acc' | 'role' | 'scope', string | readonly string[] | undefined>>>;
  /** Names under claims of its issuer that lead to nothing in it, each with the pointer to a member of an object that they may mean. */
  readonly missingClaims: readonly MissingClaim[];
  /** All that is wrong with it, and not only what was found first. */
  readonly wrongClaims: readonly string[];
  /** `alg is "RS256"`: of its header and its iss, verified or not. */
  readonly header: Readonly<Record<'alg' | 'typ' | 'kid' | 'iss', string>> | undefined;
  /** Name and place of an internal error, without its message. */
  readonly fault: string | undefined;
}

export interface MissingClaim {
  readonly name: string;
  readonly pointer: string | undefined;
}

/** Seconds since the epoch; undefined if the token has none or the value is not a number. */
interface VerifiedTimes {
  readonly exp: number | undefined;
  readonly nbf: number | undefined;
  readonly iat: number | undefined;
}

/** The issuer of the token: the one whose keys were asked; before that, the one that the token names, or the only one there is. */
export function issuerIn({ config: { issuers }, keys, header }: Known): IssuerConfig | undefined {
  if (keys !== undefined) return issuers.find(({ issuer }) => issuer === keys.issuer);
  const named = issuers.find(({ issuer }) => header?.iss === `iss is ${quotedPrintable(issuer, 256)}`);
  return named ?? (issuers.length === 1 ? issuers[0] : undefined);
}

export const maxListed = 8;

/** The first eight, and the number of the others. */
export function formatList(items: readonly string[]): string {
  return listWords(items, maxListed);
}

/** RFC 3339 in UTC; the number itself beyond the range of Date. */
export function instant(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `${seconds} s since 1970` : date.toISOString();
}

/** Whole seconds; never `0 s` for a fraction of one. */
export function duration(seconds: number): string {
  return seconds > 0 && seconds < 1 ? 'less than 1 s' : `${Math.floor(seconds)} s`;
}

/** The age of the keys in use, the problem of the last refresh, and the keys that are not used. */
export function keyAge({ state, ageSeconds, lastResult, lastProblem, skipped }: KeyRingStatus): string {
  const age = ageSeconds === undefined ? 'no key set yet' : `confirmed ${duration(ageSeconds)} ago`;
  const stale = state === 'stale' ? ', too old to be used' : '';
  const problem = lastResult === 'failure' ? `; the last refresh failed: ${lastProblem ?? 'unknown problem'}` : '';
  const notUsed = skipped.map(({ key, reason }) => `${key} (${reason})`).join(', ');
  // The problem of a set without a usable key names them.
  const isNamed = notUsed === '' || lastProblem?.includes('no usable key') === true;
  return `${age}${stale}${problem}${isNamed ? '' : `; not used: ${notUsed}`}`;
}

/** The age of the list by URL, and the problem of the last fetch. */
export function listAge({ url, entries, ageSeconds, lastProblem }: FetchedListStatus): string {
  const age = ageSeconds === undefined ? 'never fetched' : `${entries} entries, confirmed ${duration(ageSeconds)} ago`;
  return `${url}: ${age}${lastProblem === undefined ? '' : `; the last fetch failed: ${lastProblem}`}`;
}
