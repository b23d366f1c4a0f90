// Compares an answer with a decision, by the tables of the contract. The differences contain no part of a token.
import type { Decision, Reason, Refused } from './decision.ts';
import type { Settings } from './settings.ts';

/** A decoded CheckResponse. */
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
  account_required: { http: 400, code: 3, decision: 'deny' },
  scope_forbidden: { http: 403, code: 7, challenge: `${bearer}, error="insufficient_scope"`, decision: 'deny' },
  role_forbidden: { http: 403, code: 7, decision: 'deny' },
  app_forbidden: { http: 403, code: 7, decision: 'deny' },
  origin_forbidden: { http: 403, code: 7, decision: 'deny' },
  account_mismatch: { http: 403, code: 7, decision: 'deny' },
  route_unknown: { http: 404, code: 5, decision: 'deny' },
  keys_unavailable: { http: 503, code: 14, decision: 'unavailable' },
  revocation_unavailable: { http: 503, code: 14, decision: 'unavailable' },
};

/** Reasons of requests whose token is verified. */
const afterToken: readonly Refused[] = [
  ...(['token_revoked', 'revocation_unavailable', 'app_forbidden', 'account_required', 'account_mismatch'] as const),
  ...(['role_forbidden', 'scope_forbidden'] as const),
];

const identityFields = ['uid', 'app', 'acc', 'role', 'iss', 'actor'] as const;

/** Headers that name another host to some upstreams. */
const hostHeaders = [
  'x-forwarded-host',
  'forwarded',
  'x-original-host',
  'x-host',
  'x-forwarded-server',
  'x-http-host-override',
];
const overwriteIfExistsOrAdd = 2;

/** Whether Envoy would allow the request: it reads only the code, and an absent one is 0. */
export function isAllow(answer: Answer): boolean {
  return (answer.status?.code ?? 0) === 0;
}

/** The reason in the answer. */
export function reasonIn(answer: Answer): string | undefined {
  return answer.dynamic_metadata?.fields.reason?.stringValue;
}

/** The differences from the decision. */
export function differences(answer: Answer, decision: Decision, settings: Settings): string[] {
  const reasons: readonly Reason[] = [decision.reason, ...decision.alsoPermitted];
  const given = reasonIn(answer);
  const reason = reasons.find(each => each === given);
  if (reason === undefined) return [`answers ${String(given)}, the oracle ${reasons.join(' or ')}`];
  const wrong =
    reason === 'allowed'
      ? allowDifferences(answer, decision, settings)
      : refusalDifferences(answer, reason, decision, settings);
  if (answer.error_response !== null)
    wrong.push('an error_response, which failure_mode_allow could turn into an allow');
  return wrong;
}

function allowDifferences(
  answer: Answer,
  { identity, forwarded = [], cookie, subprotocols, headers }: Decision,
  settings: Settings,
): string[] {
  const wrong: string[] = [];
  const { ok_response: ok } = answer;
  if (answer.status?.code !== 0) wrong.push('an allow without an explicit code 0');
  if (ok === null || answer.denied_response !== null || identity === undefined)
    return [...wrong, 'an allow without ok_response, or with more'];
  const { identityPrefix: prefix } = settings;
  const names = ownNames(settings);

  const set = ok.headers.map(option => `${option.header?.key}: ${option.header?.value}`).sort();
  const known = identityFields.filter(field => identity[field] !== undefined);
  const ofIdentity = known.map(field => `${prefix}${field}: ${identity[field]}`);
  const ofClaims = forwarded.map(([name, value]) => `${prefix}${name}: ${value}`);
  const ofSocket = subprotocols === undefined ? [] : [`sec-websocket-protocol: ${subprotocols}`];
  const expected = [...ofIdentity, ...ofClaims, ...ofSocket, ...(cookie ? [`cookie: ${cookie}`] : [])].sort();
  if (!isSameList(set, expected)) wrong.push('other headers than those of the identity');
  if (!ok.headers.every(isOverwrite)) wrong.push('a header set that does not overwrite');

  const removed = new Set(ok.headers_to_remove.map(name => name.toLowerCase()));
  const shown = [...headers.keys()].filter(name => !names.includes(name));
  const required = new Set([
    ...(settings.forward ? [] : ['authorization', ...tokenHeaders(settings).flatMap(mixtures)]),
    ...(cookie === '' ? ['cookie'] : []),
    ...lookAlikes(settings),
    ...names.filter(name => !expected.some(line => line.startsWith(`${name}: `))),
    ...shown.filter(name => name.startsWith(prefix) && isHeaderName(name)),
    // "With `hosts`, no x-forwarded-host … of a client, and no underscore look-alike of them, reaches the upstream."
    ...(settings.hosts === undefined ? [] : hostHeaders.flatMap(mixtures)),
  ]);
  // The contract names only the look-alikes of these; those of other names under the prefix may be removed too.
  const permitted = new Set([...required, ...shown.filter(name => name.replaceAll('_', '-').startsWith(prefix))]);
  if (![...required].every(name => removed.has(name))) wrong.push('a header that must be removed is not removed');
  if (![...removed].every(name => permitted.has(name))) wrong.push('a removed header that account-authz does not own');

  const others = [ok.response_headers_to_add, ok.query_parameters_to_set, ok.query_parameters_to_remove];
  if (others.some(list => list.length > 0) || ok.dynamic_metadata !== null)
    wrong.push('an allow that changes something else');
  return [
    ...wrong,
    ...metadataDifferences(answer, { decision: 'allow', reason: 'allowed', 'account-authz': 'allow', ...identity }),
  ];
}

function refusalDifferences(answer: Answer, reason: Refused, decision: Decision, settings: Settings): string[] {
  const wrong: string[] = [];
  const row = table[reason];
  const { denied_response: denied } = answer;
  if (answer.status?.code !== row.code) wrong.push(`${reason} with code ${String(answer.status?.code)}`);
  if (denied === null || answer.ok_response !== null)
    return [...wrong, 'a refusal without denied_response, or with more'];
  if (denied.status?.code !== row.http) wrong.push(`${reason} with status ${String(denied.status?.code)}`);

  const given = denied.headers.map(option => `${option.header?.key}: ${option.header?.value}`);
  const expected = ['content-type: application/problem+json', 'cache-control: no-store'];
  const { scopes, isOfResource } = decision;
  // "None on `scope_forbidden` where no configured scope would allow the request."
  if (row.challenge !== undefined && (reason !== 'scope_forbidden' || scopes.length > 0)) {
    // "Where `protectedResource.scopes` names some of them only those. At most 10."
    const first = reason === 'scope_forbidden' ? [] : scopes.filter(name => settings.firstScopes.includes(name));
    const named = (first.length > 0 ? first : scopes).slice(0, 10);
    const scope = named.length > 0 ? `, scope="${named.join(' ')}"` : '';
    expected.push(`www-authenticate: ${row.challenge}${scope}${isOfResource ? metadataParameter(settings) : ''}`);
  }
  const retry = given.filter(line => /^retry-after: [1-9][0-9]*$/.test(line));
  if (retry.length !== (row.http === 503 ? 1 : 0)) wrong.push(`${reason} with ${retry.length} Retry-After`);
  if (!isSameList(given.filter(line => !retry.includes(line)).sort(), expected.sort()))
    wrong.push(`${reason} with other headers`);
  if (!denied.headers.every(isOverwrite)) wrong.push('a header of a refusal that does not overwrite');
  wrong.push(...bodyDifferences(denied.body, reason, row.http, decision.headers));

  const metadata = { decision: row.decision, reason };
  // A claim that is judged in the role or scope check may be wrong for the addressed account alone.
  const isVerified = afterToken.includes(reason) || (reason === 'token_invalid' && decision.reason === reason);
  return [...wrong, ...metadataDifferences(answer, isVerified ? { ...metadata, ...decision.identity } : metadata)];
}

// RFC 9728 section 3.1: the well-known part goes between the host and the path of the resource; section 5.1: the parameter.
function metadataParameter({ resource }: Settings): string {
  if (resource === undefined) return '';
  const [, origin = '', path = ''] = /^(https:\/\/[^/?]+)(.*)$/.exec(resource) ?? [];
  return `, resource_metadata="${origin}/.well-known/oauth-protected-resource${path.replace(/^\/(?=\?|$)/, '')}"`;
}

function bodyDifferences(
  body: string,
  reason: Refused,
  http: number,
  headers: ReadonlyMap<string, readonly string[]>,
): string[] {
  const problem: Readonly<Record<string, unknown>> = JSON.parse(body);
  const { type, title, status, reason: bodyReason, request_id: id, ...others } = problem;
  const wrong: string[] = [];
  if (typeof type !== 'string' || typeof title !== 'string' || Object.keys(others).length > 0)
    wrong.push('a body of another form');
  if (status !== http || bodyReason !== reason) wrong.push('a body that differs from the answer');
  const [sent = '', ...more] = headers.get('x-request-id') ?? [];
  const isKept = more.length === 0 && /^[A-Za-z0-9._-]{1,128}$/.test(sent);
  const isUuid = typeof id === 'string' && /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id);
  if (isKept ? id !== sent : !isUuid) wrong.push('another request_id');
  return wrong;
}

function metadataDifferences(answer: Answer, expected: Readonly<Record<string, string | undefined>>): string[] {
  const given = Object.entries(answer.dynamic_metadata?.fields ?? {}).map(
    ([name, { stringValue }]) => `${name}: ${stringValue}`,
  );
  const entries = Object.entries(expected).map(([name, value]) => `${name}: ${value}`);
  return isSameList(given.sort(), entries.sort()) ? [] : ['other dynamic metadata'];
}

function isOverwrite({ header, append, append_action: action }: HeaderOption): boolean {
  return append?.value === false && action === overwriteIfExistsOrAdd && header?.raw_value.length === 0;
}

function tokenHeaders({ from }: Settings): readonly string[] {
  return from.flatMap(place => (typeof place === 'object' && 'header' in place ? place.header : []));
}

/** The six identity headers, and "the names are owned like the six". */
function ownNames({ identityPrefix, forwardClaims }: Settings): readonly string[] {
  return [...identityFields, ...Object.keys(forwardClaims)].map(name => identityPrefix + name);
}

const knownLookAlikes = new WeakMap<Settings, readonly string[]>();

/** Their underscore look-alikes, in every mixture. */
function lookAlikes(settings: Settings): readonly string[] {
  const names = ownNames(settings);
  const alike = knownLookAlikes.get(settings) ?? names.flatMap(mixtures).filter(name => !names.includes(name));
  knownLookAlikes.set(settings, alike);
  return alike;
}

// Every mixture of `-` and `_` in place of the hyphens.
function mixtures(name: string): string[] {
  const at = name.indexOf('-');
  if (at === -1) return [name];
  return mixtures(name.slice(at + 1)).flatMap(rest => [`${name.slice(0, at)}-${rest}`, `${name.slice(0, at)}_${rest}`]);
}

// RFC 9110 section 5.1. Any other name cannot reach an upstream, and Envoy would reject an answer that contains it.
function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) && name.length <= 256;
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each, i) => each === other[i]);
}
