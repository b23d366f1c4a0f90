// `explain` and the service agree on the answer and on the failed check of each request.
import { expect } from 'chai';
import type { TokenParts } from '../../../lab/token.ts';
import { type CheckName, checkNames } from '../../../src/authz/checks.ts';
import { type ExplainedCase, type ExplainLab, explanationOf, failedCheck, startExplainLab } from './explain-lab.ts';

/** A request or token that differs from the good one. `authorization` replaces `Bearer` and a token; '' for none. */
type Change = Omit<ExplainedCase, 'authorization'> & TokenParts & { readonly authorization?: string };

const now = Math.floor(Date.now() / 1000);
const expired = { iat: now - 900, exp: now - 300 };
/** Counted from the request: on a busy machine it comes long after the start. */
const justExpired = {
  iat: now - 60,
  get exp() {
    return Math.floor(Date.now() / 1000) - 5;
  },
};
const accountIn = (value: string, name = 'x-account-id'): Change => ({ headers: [[name, value]] });

/** `check` is the one that fails; `passed` for an allow. One or two of each check: refused-checks.test.ts finds every detail. */
const rows: readonly (readonly [name: string, reason: string, check: string, change: Change])[] = [
  ['a valid request', 'allowed', 'passed', {}],
  [
    'the account in every place',
    'allowed',
    'passed',
    { path: '/api/subscriptions/accounts/acct1?account_id=acct1', ...accountIn('acct1') },
  ],
  ['a lower-case method', 'request_invalid', 'method', { method: 'get' }],
  ['a long target', 'request_invalid', 'path', { path: `/a?${'b'.repeat(8192)}` }],
  ['an empty segment', 'request_invalid', 'path', { path: '/api//subscriptions' }],
  ['a percent sign', 'request_invalid', 'route', { path: '/api/%61' }],
  ['an empty account header', 'request_invalid', 'account-places', accountIn('')],
  ['a look-alike with dots', 'request_invalid', 'account-places', accountIn('acct1', 'X.Account.Id')],
  ['an unknown path', 'route_unknown', 'route', { path: '/api/other' }],
  ['another account in the path', 'account_mismatch', 'account', { path: '/api/subscriptions/accounts/acct2' }],
  ['another account in a header', 'account_mismatch', 'account-named', accountIn('acct2')],
  ['an account in the query', 'account_mismatch', 'account', { path: '/api/subscriptions/plans?account_id=acct2' }],
  ['a method of no role', 'role_forbidden', 'role', { method: 'TRACE' }],
  [
    'a route for other roles',
    'role_forbidden',
    'role',
    { path: '/api/subscriptions/teams/acct1/members', claims: { role: 'member' } },
  ],
  ['no token', 'token_missing', 'token-present', { authorization: '' }],
  ['Bearer alone', 'token_missing', 'token-present', { authorization: 'Bearer' }],
  ['a comma in Authorization', 'request_invalid', 'authorization', { authorization: 'Bearer a,b' }],
  ['two spaces after Bearer', 'token_invalid', 'token-format', { authorization: 'Bearer  a.b.c' }],
  ['a long token', 'token_invalid', 'token-length', { authorization: `Bearer ${'a'.repeat(4097)}` }],
  ['a header that is not JSON', 'token_invalid', 'token-format', { headerText: 'no' }],
  ['no kid', 'allowed', 'passed', { header: { kid: undefined } }],
  ['a duplicate member', 'token_invalid', 'token-format', { payloadText: '{"a":1,"a":2}' }],
  ['another issuer', 'token_invalid', 'issuer', { claims: { iss: 'https://forger.test' } }],
  ['alg none', 'token_invalid', 'algorithm', { header: { alg: 'none' } }],
  ['the typ of an ID token', 'token_invalid', 'token-type', { header: { typ: 'id+jwt' } }],
  ['an unknown kid', 'token_invalid', 'key', { header: { kid: 'nobody' } }],
  ['a key for another algorithm', 'token_invalid', 'key', { header: { kid: 'r1' } }],
  ['a forged signature', 'token_invalid', 'signature', { signature: 'AAAA' }],
  ['another audience', 'token_invalid', 'audience', { claims: { aud: 'x' } }],
  ['a cnf claim', 'token_invalid', 'binding', { claims: { cnf: {} } }],
  ['exp as text', 'token_invalid', 'claims', { claims: { exp: '1' } }],
  ['iat in the future', 'token_invalid', 'times', { claims: { iat: now + 900 } }],
  ['a long lifetime', 'token_invalid', 'times', { claims: { exp: now + 1e6 } }],
  ['an expired token', 'token_expired', 'expiry', { claims: expired }],
  ['a token that expired within the clock tolerance', 'allowed', 'passed', { claims: justExpired }],
  ['a revoked token', 'token_revoked', 'revocation', { claims: { jti: 'stolen' } }],
  ['a revoked token of another application', 'app_forbidden', 'app', { claims: { jti: 'stolen', app: 'cli' } }],
  ['an unknown role', 'role_forbidden', 'role', { claims: { role: 'guest' } }],
  ['a list with one known role', 'allowed', 'passed', { claims: { role: ['guest', 'a b', 'member'] } }],
  ['roles without the method', 'role_forbidden', 'role', { method: 'POST', claims: { role: ['member', 'guest'] } }],
  ['another account in the token', 'account_mismatch', 'account', { claims: { acc: 'acct9' } }],
];

// Each request fails two checks, and the first of them decides.
const pairs: readonly (readonly [first: CheckName, second: CheckName, change: Change])[] = [
  ['method', 'path', { method: 'get', path: '/a//b' }],
  ['path', 'authorization', { path: '/a//b', authorization: 'Bearer a,b' }],
  ['authorization', 'account-places', { ...accountIn(''), authorization: 'Bearer a,b' }],
  ['account-places', 'route', { path: '/a', ...accountIn('') }],
  ['route', 'token-present', { path: '/a', authorization: '' }],
  ['token-length', 'token-format', { authorization: `Bearer ${'a'.repeat(4097)}` }],
  ['token-format', 'issuer', { header: { crit: [] }, claims: { iss: 'x' } }],
  ['issuer', 'algorithm', { header: { alg: 'none' }, claims: { iss: 'x' } }],
  ['algorithm', 'token-type', { header: { alg: 'none', typ: 'x' } }],
  ['token-type', 'key', { header: { typ: 'x', kid: 'nobody' } }],
  ['key', 'signature', { header: { kid: 'nobody' }, signature: 'AAAA' }],
  ['signature', 'audience', { signature: 'AAAA', claims: { aud: 'x' } }],
  ['audience', 'claims', { claims: { aud: 'x', uid: 1 } }],
  ['claims', 'binding', { claims: { cnf: {}, uid: 1 } }],
  ['binding', 'times', { claims: { cnf: {}, nbf: now + 900 } }],
  ['times', 'expiry', { claims: { iat: now - 90, exp: now - 900 } }],
  ['expiry', 'revocation', { claims: { ...expired, uid: 'gone' } }],
  ['revocation', 'app', { claims: { uid: 'gone', app: 'cli' } }],
  ['app', 'account', { claims: { app: 'cli', acc: 'acct9' } }],
  ['account', 'role', { claims: { role: 'guest', acc: 'acct9' } }],
];

describe('explain and the service', () => {
  let lab: ExplainLab;
  before(async () => {
    lab = await startExplainLab();
  });
  after(() => lab.stop());

  const requestOf = async (change: Change): Promise<ExplainedCase> => {
    const authorization = change.authorization ?? `Bearer ${await lab.token(change)}`;
    return { ...change, authorization };
  };

  const expectSame = async (reason: string, check: string, change: Change): Promise<void> => {
    const request = await requestOf(change);
    const { answer, line } = await lab.ask(request);
    expect(answer.reason).to.equal(reason);
    const outcome = await lab.explain(request, '--json');
    const { checks, ...explained } = JSON.parse(outcome.stdout);
    expect(explained).to.deep.equal(answer);
    expect(outcome.code).to.equal(exitCodes[answer.decision]);
    expectOneFailed(checks, check);
    const failedDetail = checks.find(({ verdict }: { verdict: string }) => verdict === 'fail')?.detail ?? '';
    // A second may pass between the two.
    const withoutSeconds = (text: unknown): string => String(text ?? '').replaceAll(/\d+ s\b/g, 'N s');
    expect(withoutSeconds(failedDetail).startsWith(withoutSeconds(line.detail)), failedDetail).to.equal(true);
  };

  for (const [name, reason, check, change] of rows) {
    it(`answer ${name} with ${reason} (${check})`, () => expectSame(reason, check, change));
  }

  for (const [first, second, change] of pairs) {
    it(`apply the check ${first} before ${second}`, async () => {
      const request = await requestOf(change);
      const { answer } = await lab.ask(request);
      const { checks, ...explained } = explanationOf(await lab.explain(request, '--json'));
      expect(explained).to.deep.equal(answer);
      expect(failedCheck({ checks })).to.equal(first);
      expect(checkNames.indexOf(second)).to.be.above(checkNames.indexOf(first));
    });
  }

  it('answer an issuer whose keys cannot be fetched with keys_unavailable (key)', async () => {
    await expectSame('keys_unavailable', 'key', { claims: { iss: lab.unreachableIssuer } });
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
