// `explain`, the service and `explain --from-log` agree on the answer and on the failed check of each request.
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { type CheckName, checkNames } from '../../src/authz/checks.ts';
import { signingKey } from '../support/signing-key.ts';
import { base64url, type TokenParts } from '../support/token.ts';
import {
  type ExplainedCase,
  type ExplainLab,
  explanationOf,
  failedCheck,
  runExplain,
  startExplainLab,
} from './explain-lab.ts';

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

interface Row {
  readonly name: string;
  readonly reason: string;
  /** The check that fails; `passed` for an allow. */
  readonly check: string;
  readonly request?: Omit<ExplainedCase, 'authorization'>;
  readonly token?: () => TokenParts | Promise<TokenParts>;
  /** Replaces `Bearer` and a token; '' for none. */
  readonly authorization?: string;
}

const requests: readonly Row[] = [
  { name: 'a valid request', reason: 'allowed', check: 'passed' },
  { name: 'a trailing slash', reason: 'allowed', check: 'passed', request: { path: '/api/subscriptions/plans/' } },
  {
    name: 'the account in every place',
    reason: 'allowed',
    check: 'passed',
    request: { path: '/api/subscriptions/accounts/acct1?account_id=acct1', headers: [['x-account-id', 'acct1']] },
  },
  { name: 'a lower-case method', reason: 'request_invalid', check: 'method', request: { method: 'get' } },
  { name: 'a long target', reason: 'request_invalid', check: 'path', request: { path: `/a?${'b'.repeat(8192)}` } },
  { name: 'a long path', reason: 'request_invalid', check: 'path', request: { path: `/${'a'.repeat(2048)}` } },
  { name: 'a fragment', reason: 'request_invalid', check: 'path', request: { path: '/a#b' } },
  { name: 'a percent sign', reason: 'request_invalid', check: 'route', request: { path: '/api/%61' } },
  { name: 'an empty segment', reason: 'request_invalid', check: 'path', request: { path: '/api//subscriptions' } },
  { name: 'an empty path', reason: 'request_invalid', check: 'path', request: { path: '' } },
  { name: 'non-ASCII letters', reason: 'request_invalid', check: 'path', request: { path: '/api/é' } },
  { name: 'a dot segment', reason: 'request_invalid', check: 'path', request: { path: '/api/../b' } },
  {
    name: 'a path in another case',
    reason: 'request_invalid',
    check: 'route',
    request: { path: '/API/subscriptions/plans' },
  },
  {
    name: 'an account header twice',
    reason: 'request_invalid',
    check: 'account-places',
    request: {
      headers: [
        ['x-account-id', 'acct1'],
        ['x-account-id', 'acct1'],
      ],
    },
  },
  {
    name: 'an empty account header',
    reason: 'request_invalid',
    check: 'account-places',
    request: { headers: [['x-account-id', '']] },
  },
  {
    name: 'a list in an account header',
    reason: 'request_invalid',
    check: 'account-places',
    request: { headers: [['x-account-id', 'acct1,acct2']] },
  },
  {
    name: 'an underscore look-alike',
    reason: 'request_invalid',
    check: 'account-places',
    request: { headers: [['x_account_id', 'acct1']] },
  },
  {
    name: 'a look-alike with dots',
    reason: 'request_invalid',
    check: 'account-places',
    request: { headers: [['X.Account.Id', 'acct1']] },
  },
  {
    name: 'an ambiguous account parameter',
    reason: 'request_invalid',
    check: 'account-places',
    request: { path: '/api/subscriptions/plans?account_id=%61' },
  },
  {
    name: 'a look-alike of an account parameter',
    reason: 'request_invalid',
    check: 'account-places',
    request: { path: '/api/subscriptions/plans?Account_Id=acct1' },
  },
  { name: 'an unknown path', reason: 'route_unknown', check: 'route', request: { path: '/api/other' } },
  { name: 'the root', reason: 'route_unknown', check: 'route', request: { path: '/' } },
  {
    name: 'another account in the path',
    reason: 'account_mismatch',
    check: 'account',
    request: { path: '/api/subscriptions/accounts/acct2' },
  },
  {
    name: 'another account in a header',
    reason: 'account_mismatch',
    check: 'account-named',
    request: { headers: [['x-account-id', 'acct2']] },
  },
  {
    name: 'another account in the query',
    reason: 'account_mismatch',
    check: 'account',
    request: { path: '/api/subscriptions/plans?account_id=acct2' },
  },
  { name: 'a method of no role', reason: 'role_forbidden', check: 'role', request: { method: 'TRACE' } },
  {
    name: 'a route for other roles',
    reason: 'role_forbidden',
    check: 'role',
    request: { path: '/api/subscriptions/teams/acct1/members' },
    token: () => ({ claims: { role: 'member' } }),
  },
];

const tokens: readonly Row[] = [
  { name: 'no token', reason: 'token_missing', check: 'token-present', authorization: '' },
  { name: 'Bearer alone', reason: 'token_missing', check: 'token-present', authorization: 'Bearer' },
  { name: 'a comma in Authorization', reason: 'request_invalid', check: 'authorization', authorization: 'Bearer a,b' },
  { name: 'two spaces after Bearer', reason: 'token_invalid', check: 'token-format', authorization: 'Bearer  a.b.c' },
  { name: 'another case of Bearer', reason: 'token_invalid', check: 'token-format', authorization: 'bEARER a.b.c' },
  {
    name: 'non-ASCII bytes',
    reason: 'token_invalid',
    check: 'token-format',
    authorization: 'Bearer a.b.\xe9',
  },
  {
    name: 'a long token',
    reason: 'token_invalid',
    check: 'token-length',
    authorization: `Bearer ${'a'.repeat(4097)}`,
  },
  { name: 'two segments', reason: 'token_invalid', check: 'token-format', authorization: 'Bearer a.b' },
  {
    name: 'nonzero unused base64url bits',
    reason: 'token_invalid',
    check: 'token-format',
    authorization: 'Bearer ab.ab.ab',
  },
  {
    name: 'a header that is not JSON',
    reason: 'token_invalid',
    check: 'token-format',
    token: () => ({ headerText: 'no' }),
  },
  { name: 'a crit header', reason: 'token_invalid', check: 'token-format', token: () => ({ header: { crit: ['x'] } }) },
  { name: 'no kid', reason: 'token_invalid', check: 'token-format', token: () => ({ header: { kid: undefined } }) },
  {
    name: 'a duplicate member',
    reason: 'token_invalid',
    check: 'token-format',
    token: () => ({ payloadText: '{"a":1,"a":2}' }),
  },
  {
    name: 'another issuer',
    reason: 'token_invalid',
    check: 'issuer',
    token: () => ({ claims: { iss: 'https://forger.test' } }),
  },
  { name: 'alg none', reason: 'token_invalid', check: 'algorithm', token: () => ({ header: { alg: 'none' } }) },
  {
    name: 'the typ of an ID token',
    reason: 'token_invalid',
    check: 'token-type',
    token: () => ({ header: { typ: 'id+jwt' } }),
  },
  { name: 'an unknown kid', reason: 'token_invalid', check: 'key', token: () => ({ header: { kid: 'nobody' } }) },
  {
    name: 'a key for another algorithm',
    reason: 'token_invalid',
    check: 'key',
    token: () => ({ header: { kid: 'r1' } }),
  },
  {
    name: 'another key under a known kid',
    reason: 'token_invalid',
    check: 'signature',
    token: async () => ({ key: { ...(await signingKey('forger')), kid: 'k1' } }),
  },
  { name: 'another audience', reason: 'token_invalid', check: 'audience', token: () => ({ claims: { aud: 'x' } }) },
  { name: 'a cnf claim', reason: 'token_invalid', check: 'binding', token: () => ({ claims: { cnf: {} } }) },
  { name: 'exp as text', reason: 'token_invalid', check: 'claims', token: () => ({ claims: { exp: '1' } }) },
  { name: 'acc as a number', reason: 'token_invalid', check: 'claims', token: () => ({ claims: { acc: 1 } }) },
  { name: 'no uid', reason: 'token_invalid', check: 'claims', token: () => ({ claims: { uid: undefined } }) },
  { name: 'acc with a slash', reason: 'token_invalid', check: 'claims', token: () => ({ claims: { acc: 'a/b' } }) },
  {
    name: 'iat in the future',
    reason: 'token_invalid',
    check: 'times',
    token: () => ({ claims: { iat: nowSeconds() + 900 } }),
  },
  {
    name: 'nbf in the future',
    reason: 'token_invalid',
    check: 'times',
    token: () => ({ claims: { nbf: nowSeconds() + 900 } }),
  },
  {
    name: 'iat after exp',
    reason: 'token_invalid',
    check: 'times',
    token: () => ({ claims: { iat: nowSeconds() - 900, exp: nowSeconds() - 1000 } }),
  },
  {
    name: 'a long lifetime',
    reason: 'token_invalid',
    check: 'times',
    token: () => ({ claims: { exp: nowSeconds() + 1e6 } }),
  },
  {
    name: 'a long lifetime without iat',
    reason: 'token_invalid',
    check: 'times',
    token: () => ({ claims: { iat: undefined, exp: 1e300 } }),
  },
  {
    name: 'an expired token',
    reason: 'token_expired',
    check: 'expiry',
    token: () => ({ claims: { iat: nowSeconds() - 900, exp: nowSeconds() - 300 } }),
  },
  {
    name: 'a token that expired within the clock tolerance',
    reason: 'allowed',
    check: 'passed',
    token: () => ({ claims: { exp: nowSeconds() - 5 } }),
  },
  {
    name: 'a revoked token',
    reason: 'token_revoked',
    check: 'revocation',
    token: () => ({ claims: { jti: 'stolen' } }),
  },
  {
    name: 'the jti of a revoked token of another application',
    reason: 'app_forbidden',
    check: 'app',
    token: () => ({ claims: { jti: 'stolen', app: 'cli' } }),
  },
  { name: 'another application', reason: 'app_forbidden', check: 'app', token: () => ({ claims: { app: 'cli' } }) },
  { name: 'an unknown role', reason: 'role_forbidden', check: 'role', token: () => ({ claims: { role: 'guest' } }) },
  {
    name: 'a list with one known role',
    reason: 'allowed',
    check: 'passed',
    token: () => ({ claims: { role: ['guest', 'a b', 'member'] } }),
  },
  {
    name: 'a list without a known role',
    reason: 'role_forbidden',
    check: 'role',
    token: () => ({ claims: { role: ['guest', 'a b'] } }),
  },
  {
    name: 'a list with a number',
    reason: 'token_invalid',
    check: 'claims',
    token: () => ({ claims: { role: ['owner', 1] } }),
  },
  {
    name: 'a list without a role for the method',
    reason: 'role_forbidden',
    check: 'role',
    request: { method: 'POST' },
    token: () => ({ claims: { role: ['member', 'guest'] } }),
  },
  {
    name: 'a role named like a method',
    reason: 'role_forbidden',
    check: 'role',
    token: () => ({ claims: { role: 'toString' } }),
  },
  {
    name: 'a role without the method',
    reason: 'role_forbidden',
    check: 'role',
    request: { method: 'POST' },
    token: () => ({ claims: { role: 'member' } }),
  },
  {
    name: 'another account in the token',
    reason: 'account_mismatch',
    check: 'account',
    token: () => ({ claims: { acc: 'acct9' } }),
  },
];

// Each request fails two checks, and the first of them decides.
const pairs: readonly (Omit<Row, 'name' | 'reason' | 'check'> & {
  readonly first: CheckName;
  readonly second: CheckName;
})[] = [
  { first: 'method', second: 'path', request: { method: 'get', path: '/a//b' } },
  { first: 'path', second: 'authorization', request: { path: '/a//b' }, authorization: 'Bearer a,b' },
  {
    first: 'authorization',
    second: 'account-places',
    request: { headers: [['x-account-id', '']] },
    authorization: 'Bearer a,b',
  },
  { first: 'account-places', second: 'route', request: { path: '/a', headers: [['x-account-id', '']] } },
  { first: 'route', second: 'token-present', request: { path: '/a' }, authorization: '' },
  { first: 'token-length', second: 'token-format', authorization: `Bearer ${'a'.repeat(4097)}` },
  { first: 'token-format', second: 'issuer', token: () => ({ header: { crit: [] }, claims: { iss: 'x' } }) },
  { first: 'issuer', second: 'algorithm', token: () => ({ header: { alg: 'none' }, claims: { iss: 'x' } }) },
  { first: 'algorithm', second: 'token-type', token: () => ({ header: { alg: 'none', typ: 'x' } }) },
  { first: 'token-type', second: 'key', token: () => ({ header: { typ: 'x', kid: 'nobody' } }) },
  { first: 'key', second: 'signature', token: () => ({ header: { kid: 'nobody' }, signature: 'AAAA' }) },
  { first: 'signature', second: 'audience', token: () => ({ signature: 'AAAA', claims: { aud: 'x' } }) },
  { first: 'audience', second: 'binding', token: () => ({ claims: { aud: 'x', cnf: {} } }) },
  { first: 'binding', second: 'claims', token: () => ({ claims: { cnf: {}, uid: 1 } }) },
  { first: 'claims', second: 'times', token: () => ({ claims: { uid: 1, nbf: nowSeconds() + 900 } }) },
  {
    first: 'times',
    second: 'expiry',
    token: () => ({ claims: { iat: nowSeconds() - 90, exp: nowSeconds() - 900 } }),
  },
  {
    first: 'expiry',
    second: 'revocation',
    token: () => ({ claims: { iat: nowSeconds() - 900, exp: nowSeconds() - 300, uid: 'gone' } }),
  },
  { first: 'revocation', second: 'app', token: () => ({ claims: { uid: 'gone', app: 'cli' } }) },
  { first: 'app', second: 'account', token: () => ({ claims: { app: 'cli', acc: 'acct9' } }) },
  { first: 'account', second: 'role', token: () => ({ claims: { role: 'guest', acc: 'acct9' } }) },
];

const unavailable: Row = { name: 'an issuer without keys', reason: 'keys_unavailable', check: 'key' };

describe('explain and the service', () => {
  let lab: ExplainLab;
  before(async () => {
    lab = await startExplainLab();
  });
  after(() => lab.stop());

  const expectSame = async (row: Row, authorization: string | undefined): Promise<void> => {
    const request = { ...row.request, authorization };
    const { answer, line } = await lab.ask(request);
    expect(answer.reason).to.equal(row.reason);
    const outcome = await lab.explain(request, '--json');
    const { checks, ...explained } = JSON.parse(outcome.stdout);
    expect(explained).to.deep.equal(answer);
    expect(outcome.code).to.equal(exitCodes[answer.decision]);
    expectOneFailed(checks, row.check);
    const failedDetail = checks.find(({ verdict }: { verdict: string }) => verdict === 'fail')?.detail ?? '';
    expect(failedDetail.slice(0, String(line.detail ?? '').length)).to.equal(line.detail ?? '');

    const again = await runExplain(['--from-log', '--json'], { input: JSON.stringify(line) });
    const readBack = explanationOf(again);
    expect(again.code).to.equal(outcome.code);
    expect({ decision: readBack.decision, reason: readBack.reason, status: readBack.status }).to.deep.equal({
      decision: answer.decision,
      reason: answer.reason,
      status: answer.status,
    });
    expectOneFailed(readBack.checks, row.check);
  };

  for (const row of [...requests, ...tokens]) {
    it(`answer ${row.name} with ${row.reason} (${row.check})`, async () => {
      const bearer = async (): Promise<string> => `Bearer ${await lab.token(await row.token?.())}`;
      await expectSame(row, row.authorization ?? (await bearer()));
    });
  }

  for (const row of pairs) {
    it(`apply the check ${row.first} before ${row.second}`, async () => {
      const authorization = row.authorization ?? `Bearer ${await lab.token(await row.token?.())}`;
      const { answer } = await lab.ask({ ...row.request, authorization });
      const outcome = await lab.explain({ ...row.request, authorization }, '--json');
      const { checks, ...explained } = explanationOf(outcome);
      expect(explained).to.deep.equal(answer);
      expect(failedCheck({ checks })).to.equal(row.first);
      const at = checkNames.indexOf(row.first);
      expect(checkNames.indexOf(row.second)).to.be.above(at);
    });
  }

  it('answer an issuer whose keys cannot be fetched with keys_unavailable (key)', async () => {
    await expectSame(unavailable, `Bearer ${await lab.token({ claims: { iss: lab.unreachableIssuer } })}`);
  });

  it('answer an HMAC with the public key as secret with token_invalid (algorithm)', async () => {
    const { publicJwk } = await signingKey('k1');
    const input = `${base64url('{"alg":"HS256","typ":"JWT","kid":"k1"}')}.${(await lab.token()).split('.')[1]}`;
    const signature = createHmac('sha256', JSON.stringify(publicJwk)).update(input).digest('base64url');
    await expectSame({ ...unavailable, reason: 'token_invalid', check: 'algorithm' }, `Bearer ${input}.${signature}`);
  });
});

const exitCodes = { allow: 0, deny: 3, unavailable: 4 };

// All checks are listed in order: those before the failed one passed, those after it were not reached.
function expectOneFailed(checks: readonly { readonly name: string; readonly verdict: string }[], failed: string): void {
  expect(failedCheck({ checks: checks as never })).to.equal(failed);
  const at = checks.findIndex(({ name }) => name === failed);
  expect(checks.map(({ name }) => name)).to.deep.equal([...checkNames]);
  expect(checks.map(({ verdict }) => verdict)).to.deep.equal(
    checks.map((_, i) => verdictAt(i, at === -1 ? checks.length : at)),
  );
}

function verdictAt(place: number, failed: number): string {
  if (place === failed) return 'fail';
  return place < failed ? 'pass' : 'not reached';
}
