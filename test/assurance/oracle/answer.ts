// How an answer has to look for a decision, by the tables of the contract; says what differs, and never with a word of a token.
import type { Decision, Reason, Refused } from './decision.ts';
import type { Settings } from './settings.ts';

/** A CheckResponse as it was read from the wire. */
export interface Answer {
  readonly status: { readonly code: number } | null;
  readonly denied_response: {
    readonly status: { readonly code: number } | null;
    readonly headers: readonly HeaderOption[];
    readonly body: string;
  } | null;
  readonly ok_response: {
    readonly headers: readonly HeaderOption[];
    readonly headers_to_remove: readonly string[];
    readonly response_headers_to_add: readonly unknown[];
    readonly query_parameters_to_set: readonly unknown[];
    readonly query_parameters_to_remove: readonly unknown[];
    readonly dynamic_metadata: unknown;
  } | null;
  readonly error_response: unknown;
  readonly dynamic_metadata: { readonly fields: Readonly<Record<string, { readonly stringValue?: string }>> } | null;
}

interface HeaderOption {
  readonly header: { readonly key: string; readonly value: string; readonly raw_value: Buffer } | null;
  readonly append: { readonly value: boolean } | null;
  readonly append_action: number;
}

const bearer = 'Bearer realm="account-authz"';
const table: Readonly<
  Record<
    Refused,
    { readonly http: number; readonly code: number; readonly challenge?: string; readonly decision: string }
  >
> = {
  request_invalid: { http: 400, code: 3, decision: 'deny' },
  token_missing: { http: 401, code: 16, challenge: bearer, decision: 'deny' },
  token_invalid: { http: 401, code: 16, challenge: `${bearer}, error="invalid_token"`, decision: 'deny' },
  token_expired: { http: 401, code: 16, challenge: `${bearer}, error="invalid_token"`, decision: 'deny' },
  token_revoked: { http: 401, code: 16, challenge: `${bearer}, error="invalid_token"`, decision: 'deny' },
  role_forbidden: { http: 403, code: 7, challenge: `${bearer}, error="insufficient_scope"`, decision: 'deny' },
  app_forbidden: { http: 403, code: 7, decision: 'deny' },
  account_mismatch: { http: 403, code: 7, decision: 'deny' },
  route_unknown: { http: 404, code: 5, decision: 'deny' },
  keys_unavailable: { http: 503, code: 14, decision: 'unavailable' },
};

/** Reasons of requests whose token is verified. */
const afterToken: readonly Refused[] = ['token_revoked', 'app_forbidden', 'role_forbidden', 'account_mismatch'];

const identityFields = ['uid', 'app', 'acc', 'role', 'iss'] as const;
const overwriteIfExistsOrAdd = 2;

/** Whether Envoy would let the request pass with this answer: it looks at the code alone, and an absent one is 0. */
export function lets(answer: Answer): boolean {
  return (answer.status?.code ?? 0) === 0;
}

/** The reason that the answer itself gives. */
export function reasonIn(answer: Answer): string | undefined {
  return answer.dynamic_metadata?.fields.reason?.stringValue;
}

/** What is not as the decision says; empty where all is. */
export function differences(answer: Answer, decision: Decision, settings: Settings): string[] {
  const reasons: readonly Reason[] = [decision.reason, ...decision.alsoFine];
  const given = reasonIn(answer);
  const reason = reasons.find(each => each === given);
  if (reason === undefined) return [`answers ${String(given)}, the oracle ${reasons.join(' or ')}`];
  const wrong =
    reason === 'allowed' ? allowDifferences(answer, decision, settings) : refusalDifferences(answer, reason, decision);
  if (answer.error_response !== null)
    wrong.push('an error_response, which failure_mode_allow could turn into an allow');
  return wrong;
}

function allowDifferences(answer: Answer, { identity, headers }: Decision, settings: Settings): string[] {
  const wrong: string[] = [];
  const { ok_response: ok } = answer;
  if (answer.status?.code !== 0) wrong.push('an allow without code 0 on purpose');
  if (ok === null || answer.denied_response !== null || identity === undefined)
    return [...wrong, 'an allow without ok_response alone'];
  const { identityPrefix: prefix } = settings;
  const names = identityFields.map(field => prefix + field);

  const set = ok.headers.map(option => `${option.header?.key}: ${option.header?.value}`).sort();
  const wanted = identityFields.map(field => `${prefix}${field}: ${identity[field]}`).sort();
  if (!isSameList(set, wanted)) wrong.push('other headers set than the five of the identity');
  if (!ok.headers.every(isOverwrite)) wrong.push('a header set that does not overwrite');

  const removed = new Set(ok.headers_to_remove.map(name => name.toLowerCase()));
  const shown = [...headers.keys()].filter(name => !names.includes(name));
  const due = new Set([
    ...(settings.forward ? [] : ['authorization']),
    ...lookAlikes(prefix),
    ...shown.filter(name => name.startsWith(prefix) && isHeaderName(name)),
  ]);
  // Beyond the letter, and in its spirit: what is shown and is under the prefix once its underscores are read as hyphens.
  const allowed = new Set([...due, ...shown.filter(name => name.replaceAll('_', '-').startsWith(prefix))]);
  if (![...due].every(name => removed.has(name))) wrong.push('a header that has to be removed is not');
  if (![...removed].every(name => allowed.has(name))) wrong.push('a header is removed that is not ours');

  const others = [ok.response_headers_to_add, ok.query_parameters_to_set, ok.query_parameters_to_remove];
  if (others.some(list => list.length > 0) || ok.dynamic_metadata !== null)
    wrong.push('an allow that changes something else');
  return [...wrong, ...metadataDifferences(answer, { decision: 'allow', reason: 'allowed', ...identity })];
}

function refusalDifferences(answer: Answer, reason: Refused, decision: Decision): string[] {
  const wrong: string[] = [];
  const row = table[reason];
  const { denied_response: denied } = answer;
  if (answer.status?.code !== row.code) wrong.push(`${reason} with code ${String(answer.status?.code)}`);
  if (denied === null || answer.ok_response !== null) return [...wrong, 'a refusal without denied_response alone'];
  if (denied.status?.code !== row.http) wrong.push(`${reason} with status ${String(denied.status?.code)}`);

  const given = denied.headers.map(option => `${option.header?.key}: ${option.header?.value}`);
  const wanted = ['content-type: application/problem+json', 'cache-control: no-store'];
  if (row.challenge !== undefined) wanted.push(`www-authenticate: ${row.challenge}`);
  const retry = given.filter(line => /^retry-after: [1-9][0-9]*$/.test(line));
  if (retry.length !== (row.http === 503 ? 1 : 0)) wrong.push(`${reason} with ${retry.length} Retry-After`);
  if (!isSameList(given.filter(line => !retry.includes(line)).sort(), wanted.sort()))
    wrong.push(`${reason} with other headers`);
  if (!denied.headers.every(isOverwrite)) wrong.push('a header of a refusal that does not overwrite');
  wrong.push(...bodyDifferences(denied.body, reason, row.http, decision.headers));

  const words = { decision: row.decision, reason };
  const isVerified = afterToken.includes(reason);
  return [...wrong, ...metadataDifferences(answer, isVerified ? { ...words, ...decision.identity } : words)];
}

function bodyDifferences(
  body: string,
  reason: Refused,
  http: number,
  headers: ReadonlyMap<string, readonly string[]>,
): string[] {
  const problem: Readonly<Record<string, unknown>> = JSON.parse(body);
  const { type, title, status, reason: word, request_id: id, ...others } = problem;
  const wrong: string[] = [];
  if (typeof type !== 'string' || typeof title !== 'string' || Object.keys(others).length > 0)
    wrong.push('a body of another form');
  if (status !== http || word !== reason) wrong.push('a body that says something else than the answer');
  const [sent = '', ...more] = headers.get('x-request-id') ?? [];
  const isKept = more.length === 0 && /^[A-Za-z0-9._-]{1,128}$/.test(sent);
  const isUuid = typeof id === 'string' && /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id);
  if (isKept ? id !== sent : !isUuid) wrong.push('another request_id');
  return wrong;
}

function metadataDifferences(answer: Answer, wanted: Readonly<Record<string, string | undefined>>): string[] {
  const given = Object.entries(answer.dynamic_metadata?.fields ?? {}).map(
    ([name, { stringValue }]) => `${name}: ${stringValue}`,
  );
  const due = Object.entries(wanted).map(([name, value]) => `${name}: ${value}`);
  return isSameList(given.sort(), due.sort()) ? [] : ['other dynamic metadata'];
}

function isOverwrite({ header, append, append_action: action }: HeaderOption): boolean {
  return append?.value === false && action === overwriteIfExistsOrAdd && header?.raw_value.length === 0;
}

const knownLookAlikes = new Map<string, readonly string[]>();

/** The underscore look-alikes of our five, every mixture. */
function lookAlikes(prefix: string): readonly string[] {
  const names = identityFields.map(field => prefix + field);
  const alike = knownLookAlikes.get(prefix) ?? names.flatMap(mixtures).filter(name => !names.includes(name));
  knownLookAlikes.set(prefix, alike);
  return alike;
}

// Every mixture of `-` and `_` in place of the hyphens.
function mixtures(name: string): string[] {
  const at = name.indexOf('-');
  if (at === -1) return [name];
  return mixtures(name.slice(at + 1)).flatMap(rest => [`${name.slice(0, at)}-${rest}`, `${name.slice(0, at)}_${rest}`]);
}

// RFC 9110 section 5.1. What is none cannot reach an upstream, and naming it would void the whole answer.
function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) && name.length <= 256;
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each, i) => each === other[i]);
}
