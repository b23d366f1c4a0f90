// Correctness checks before any timing: each working contender must give the right answer to each kind of request, and
// each do-nothing contender must answer the same bytes as the product. A wrong contender ends the bench.
import { isDeepStrictEqual } from 'node:util';
import type { WireRequest } from '../load/wire-client.ts';
import { decodeAnswer, headerOf, httpStatusOf } from './check-response.ts';
import type { Contender, RunningContender } from './contender.ts';
import { knownToken } from './request-sets.ts';
import { type CheckCallOptions, checkCall, checkCallBlocks, pathOf } from './requests.ts';
import { ask } from './server-process.ts';
import { audience, type BenchToken, type TokenChanges, type Tokens } from './tokens.ts';

export interface PreflightCase {
  readonly name: string;
  readonly request: WireRequest;
  readonly status: number;
  /** The headers that the allow must remove besides the usual ones; absent: not checked. */
  readonly alsoRemoved?: readonly string[];
}

/** An account's path that does not end in `/invoices`. */
const accounts = '/api/subscriptions/accounts';

/** Generated for each contender, because some tokens are valid or invalid for some seconds only. */
export async function preflightCases(tokens: Tokens): Promise<readonly PreflightCase[]> {
  const known = await knownToken(tokens);
  const first = (of: readonly BenchToken[]): BenchToken => of[0] ?? known;
  const now = Math.floor(Date.now() / 1000);
  const own = `${accounts}/${known.account}`;
  const other = 'acct-other1';

  type Row = PreflightCase | Promise<PreflightCase>;
  const of = (name: string, status: number, options: CheckCallOptions, token = known): PreflightCase => ({
    name,
    status,
    request: checkCall(token, { ...options, atSeconds: now }),
  });
  const path = (name: string, status: number, path: string): Row => of(name, status, { path });
  const query = (name: string, status: number, query: string): Row =>
    of(name, status, { path: `${pathOf(known.account)}?${query}` });
  const headers = (name: string, status: number, headers: CheckCallOptions['headers'] = {}): Row =>
    of(name, status, { headers });
  const made = async (name: string, status: number, changes: TokenChanges, options: CheckCallOptions = {}) =>
    of(name, status, options, await tokens.changed(changes));
  const header = (name: string, status: number, header: object, signature?: TokenChanges['signature']): Row =>
    made(name, status, { header: { ...header }, ...(signature === undefined ? {} : { signature }) });
  const claims = (name: string, status: number, claims: object, options?: CheckCallOptions): Row =>
    made(name, status, { claims: { ...claims } }, options);
  const bearer = `Bearer ${known.text}`;

  return Promise.all<Row>([
    { ...of('a good token', 200, {}), alsoRemoved: [] },
    of('the same token again', 200, {}),
    of('another account', 403, { account: other }),
    of('a forged signature', 401, {}, first(tokens.forged(1))),
    of('no token at all', 401, {}, first(tokens.garbage(1))),

    of('a method in lower case', 400, { method: 'get' }),
    of('a method with a digit', 400, { method: 'GET2' }),
    path('the path of no account', 200, '/api/subscriptions'),
    path('one slash at the end', 200, `${own}/`),
    path('all characters of a segment', 200, `${own}/Az09._~:@-`),
    path('a segment that begins with a dot', 200, `${own}/.well-known`),
    path('a path of 2,048 bytes', 200, `${own}/`.padEnd(2048, 'a')),
    path('a path of 2,049 bytes', 400, `${own}/`.padEnd(2049, 'a')),
    path('a target of 8,193 bytes', 400, `${own}?q=`.padEnd(8193, 'a')),
    path('an empty segment', 400, `${accounts}//${known.account}`),
    path('a dot segment', 400, `${own}/./invoices`),
    path('two dots at the end', 400, `${own}/..`),
    path('an encoded dot', 400, `${own}/%2e%2e/${other}`),
    path('a semicolon in the path', 400, `${own};v=1/invoices`),
    path('a backslash', 400, `${own}\\invoices`),
    path('a fragment', 400, `${own}#top`),
    path('a path that does not begin with a slash', 400, own.slice(1)),
    headers('a :path that contradicts', 400, { ':path': pathOf(other) }),
    headers('a :method that contradicts', 400, { ':method': 'POST' }),

    path('no route', 404, '/api/invoices'),
    path('a longer first segment', 404, `/api/subscriptions2/accounts/${known.account}`),
    path('the root', 404, '/'),
    path('a route but for case', 400, `/api/Subscriptions/accounts/${other}`),
    path('an account route but for case', 400, `/api/subscriptions/Accounts/${other}`),
    path('a narrowed route but for case', 400, `${own}/Billing`),

    headers('no Authorization', 401, { authorization: undefined }),
    headers('another scheme', 401, { authorization: 'Basic dXNlcjpwYXNz' }),
    headers('the scheme alone', 401, { authorization: 'Bearer' }),
    headers('two spaces', 401, { authorization: `Bearer  ${known.text}` }),
    headers('two Authorization values', 400, { authorization: `${bearer},${bearer}` }),

    headers('the account in its header', 200, { 'x-account-id': known.account }),
    headers('another account in its header', 403, { 'x-account-id': other }),
    headers('an empty account header', 400, { 'x-account-id': '' }),
    headers('a list in the account header', 400, { 'x-account-id': `${known.account},${known.account}` }),
    headers('an underscore look-alike of the account header', 400, { x_account_id: known.account }),
    query('the account in the query', 200, `page=2&account_id=${known.account}`),
    query('other parameters', 200, 'page=2&account_ids=7&my_account_id=8'),
    query('another account in the query', 403, `account_id=${other}`),
    query('two accounts in the query', 403, `account_id=${known.account}&account_id=${other}`),

    claims('a token of more than 8,192 bytes', 401, { filling: 'a'.repeat(8192) }),
    header('crit', 401, { crit: ['exp'] }),
    header('b64', 401, { b64: true }),
    header('zip', 401, { zip: 'DEF' }),
    header('jwk', 401, { jwk: tokens.publicJwk }),
    header('jku', 401, { jku: 'https://keys.example.com/jwks.json' }),
    header('x5u', 401, { x5u: 'https://keys.example.com/cert.pem' }),
    header('members of the header that mean nothing here', 200, { x5t: 'YQ', note: 'a' }),
    header('no kid', 401, { kid: undefined }),
    header('a kid that is empty', 401, { kid: '' }),
    header('a kid that is a number', 401, { kid: 7 }),
    header('the kid of no key', 401, { kid: 'none' }),
    header('no typ', 401, { typ: undefined }),
    header('another typ', 401, { typ: 'dpop+jwt' }),
    header('the other typ that is taken', 200, { typ: 'application/AT+jwt' }),
    header(
      'an algorithm that is not taken',
      401,
      { alg: tokens.algorithm.replace('256', '512') },
      'right key, SHA-512',
    ),
    header('HS256 with the public key', 401, { alg: 'HS256' }, 'HMAC with the public key'),
    header('the algorithm none', 401, { alg: 'none' }, 'none'),

    claims('another issuer', 401, { iss: 'https://other.example.com' }),
    claims('no issuer', 401, { iss: undefined }),
    claims('another audience', 401, { aud: 'https://other.example.com' }),
    claims('no audience', 401, { aud: undefined }),
    claims('an audience among others', 200, { aud: ['https://other.example.com', audience] }),
    claims('an audience beside a number', 401, { aud: [7, audience] }),
    claims('a token that is bound to a key', 401, { cnf: { jkt: 'a' } }),
    of('an expired token', 401, {}, await tokens.expired()),
    claims('no exp', 401, { exp: undefined }),
    claims('an exp that is a text', 401, { exp: String(now + 3600) }),
    claims('an exp with a fraction', 200, { exp: now + 3600.5 }),
    claims('an nbf in the future', 401, { nbf: now + 600 }),
    claims('an nbf within the tolerance', 200, { nbf: now + 10 }),
    claims('an nbf that is a text', 401, { nbf: String(now - 60) }),
    claims('no iat', 200, { iat: undefined }),
    claims('an iat in the future', 401, { iat: now + 600 }),
    claims('an iat within the tolerance', 200, { iat: now + 10 }),
    claims('an iat after exp', 401, { iat: now + 20, exp: now + 15 }),
    claims('an iat that is a text', 401, { iat: String(now) }),
    claims('a lifetime of more than a day', 401, { iat: now - 60, exp: now + 86_400 }),
    claims('more than a day to live, without iat', 401, { iat: undefined, exp: now + 90_000 }),

    claims('no uid', 401, { uid: undefined }),
    claims('an empty uid', 401, { uid: '' }),
    claims('a uid of 128 characters', 200, { uid: 'u'.repeat(128) }),
    claims('a uid of 129 characters', 401, { uid: 'u'.repeat(129) }),
    claims('a uid with a space', 401, { uid: 'user 0' }),
    claims('a uid beyond ASCII', 401, { uid: 'usér' }),
    claims('a uid that is a number', 401, { uid: 7 }),
    claims('all characters of a uid', 200, { uid: "!#$%&'()*+-./:<=>?@[\\]^_`{|}~" }),
    claims('no app', 401, { app: undefined }),
    claims('an app with a comma', 401, { app: 'web,admin' }),
    claims('no role', 401, { role: undefined }),
    claims('no acc', 401, { acc: undefined }),
    claims('an acc by another case of its name', 401, { acc: undefined, Acc: known.account }),
    claims('an acc of two dots', 401, { acc: '..' }, { path: '/api/subscriptions' }),

    of('a method that a member may not use', 403, { method: 'POST' }),
    claims('a method that an owner may use', 200, { role: 'owner' }, { method: 'OPTIONS' }),
    claims('a method that no role has', 403, { role: 'owner' }, { method: 'TRACE' }),
    claims('a method that an admin may not use', 403, { role: 'admin' }, { method: 'OPTIONS' }),
    claims('an unknown role', 403, { role: 'auditor' }),
    path('a route narrowed to other roles', 403, `${own}/billing/cards`),
    claims('a route narrowed to this role', 200, { role: 'admin' }, { path: `${own}/billing` }),
    path('a longer segment than that of the narrowed route', 200, `${own}/billings`),

    claims('a bad token on no route', 404, { exp: undefined }, { path: '/api/invoices' }),
    headers('no token, and a bad account header', 400, { authorization: undefined, 'x-account-id': '' }),
    claims('a bad token for another account', 401, { exp: undefined }, { account: other }),
    {
      ...of('headers that are ours to set', 200, {
        headers: { 'x-auth-uid': 'root', x_auth_uid: 'root', 'x-auth-scope': 'all', 'x_auth-scope': 'all' },
      }),
      alsoRemoved: ['x-auth-scope', 'x_auth-scope'],
    },
  ]);
}

export async function preflight(
  contender: Contender,
  running: RunningContender,
  tokens: Tokens,
  allow: Buffer,
): Promise<void> {
  const { target } = running;
  const { account } = await knownToken(tokens);
  const cases = await preflightCases(tokens);
  for (const each of contender.family === 'floor' ? cases.slice(0, 1) : cases) {
    const { message } = await ask({ target, shared: checkCallBlocks, request: each.request });
    const problem = problemOf(contender, message?.subarray(5) ?? Buffer.alloc(0), each, allow, account);
    if (problem !== undefined) throw new Error(`${contender.name} answers ${each.name} wrongly: ${problem}`);
  }
}

/** undefined if the answer is right. */
export function problemOf(
  { family, isCoarse }: Pick<Contender, 'family' | 'isCoarse'>,
  bytes: Buffer,
  { status, alsoRemoved }: Pick<PreflightCase, 'status' | 'alsoRemoved'>,
  allow: Buffer,
  account: string,
): string | undefined {
  const answer = decodeAnswer(bytes);
  // Go encodes maps in random order and omits defaults, so equal messages may differ in bytes.
  if (family === 'floor')
    return isDeepStrictEqual(answer, decodeAnswer(allow)) ? undefined : 'not the message of the product';
  const answered = httpStatusOf(answer);
  const isRight = isCoarse && status !== 200 ? answered === 401 || answered === 403 : answered === status;
  if (!isRight) return `${answered} instead of ${status}`;
  if (status !== 200) return undefined;
  const named = headerOf(answer, 'x-auth-acc');
  if (named !== account) return `x-auth-acc is ${named ?? 'missing'}`;
  if (alsoRemoved === undefined || isCoarse) return undefined;
  const removed = new Set(answer.ok_response?.headers_to_remove);
  const due = new Set([...(decodeAnswer(allow).ok_response?.headers_to_remove ?? []), ...alsoRemoved]);
  return isDeepStrictEqual(removed, due) ? undefined : `removes ${[...removed].sort().join(' ')}`;
}
