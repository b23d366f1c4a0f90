// The addressed account: which one a request is about, what decides about it, and what a refused request is known by.
import { expect } from 'chai';
import { admit, authorize, type Policy } from '../../src/authz/authorize.ts';
import type { Account, Claimed, Identity } from '../../src/authz/principal.ts';
import { type Refusal, refusal } from '../../src/authz/refusal.ts';
import { account, facts, identity, policy, route } from '../support/facts.ts';

type Request = Parameters<typeof facts>[0];

function decide(
  under: Policy,
  request: Request,
  who: Identity,
  revokedBy: (acc: string | undefined) => string | undefined = () => undefined,
) {
  const { outcome } = admit(under, facts(request));
  if (outcome.kind === 'refusal')
    return { reason: outcome.reason, detail: outcome.detail, acc: undefined, role: undefined };
  const { decision, principal } = authorize(under, outcome, who, revokedBy);
  const { reason, detail } = decision.kind === 'allow' ? { reason: 'allowed', detail: undefined } : decision;
  return { reason, detail, acc: principal.acc, role: principal.role, scope: principal.scope };
}

const under = policy({
  routes: [route('/plans'), route('/a/:account_id/*'), route('/:account_id/b')],
  headers: ['x-account-id'],
  query: ['account_id'],
});
const both = identity({ accounts: ['acct1', 'acct2'] });
const none = identity({ accounts: [] });

describe('addressed account', () => {
  const header = (value: string): Request => ({ target: '/plans', headers: { 'x-account-id': value } });
  const rows: readonly (readonly [name: string, request: Request, who: Identity, reason: string, acc?: string])[] = [
    ['is the only one of the token where the request names none', { target: '/plans' }, identity(), 'allowed', 'acct1'],
    ['is required of a token with several', { target: '/plans' }, both, 'account_required'],
    ['is the one in the path', { target: '/a/acct2' }, both, 'allowed', 'acct2'],
    ['is the one in a header', header('acct2'), both, 'allowed', 'acct2'],
    ['is the one in the query', { target: '/plans?account_id=acct2' }, both, 'allowed', 'acct2'],
    ['must be one of the token', { target: '/a/acct3' }, both, 'account_mismatch'],
    ['must be the one of the token', { target: '/a/acct3' }, identity(), 'account_mismatch', 'acct1'],
    ['C-082 is never one of two of the token', { ...header('acct2'), target: '/a/acct1' }, both, 'account_mismatch'],
    ['is the same in each template', { target: '/a/b' }, identity({ acc: 'b' }), 'account_mismatch', 'b'],
    ['is none of a token without accounts', { target: '/plans' }, none, 'account_mismatch'],
    ['is none in the path of a token without accounts', { target: '/a/acct1' }, none, 'account_mismatch'],
    ['is compared as plain bytes', header('ACCT1'), both, 'account_mismatch'],
    ['is inside the grammar of accounts in a header', header('acct1.json'), both, 'request_invalid'],
    ['is inside the grammar of accounts in the query', { target: '/plans?account_id=a:b' }, both, 'request_invalid'],
    ['is inside the grammar of accounts in the path', { target: '/a/a@b' }, both, 'request_invalid'],
    ['is inside the grammar on an unknown route too', { ...header('a b'), target: '/x' }, both, 'request_invalid'],
  ];
  for (const [name, request, who, reason, acc] of rows) {
    it(name, () => {
      expect(decide(under, request, who)).to.include({ reason, acc });
    });
  }

  it('names the switch for accounts with dots, which are accounts with account.dots alone', () => {
    const dotted = identity({ accounts: ['acme.com', 'b'] });
    const request = { target: '/a/acme.com' };
    expect(decide(under, request, dotted).detail).to.contain('account.dots');
    expect(decide(under, header('acme.com'), dotted).detail).to.contain('account.dots');
    const withDots = policy({ routes: [route('/a/:account_id/*')], dots: true });
    expect(decide(withDots, request, dotted)).to.include({ reason: 'allowed', acc: 'acme.com' });
  });

  it('tells whether the issuer may not speak for it or the token does not have it', () => {
    const partner = identity({ acc: 'partner-1', issuerAccounts: ['partner-*', '!partner-9'] });
    const rows: readonly (readonly [target: string, who: Identity, detail: string])[] = [
      ['/a/acct1', partner, 'the issuer may not speak for the account that the request names'],
      ['/a/partner-9', partner, 'the issuer may not speak for the account that the request names'],
      ['/a/partner-2', partner, 'the request names another account than the token'],
      ['/a/acct1', none, 'the token has no account that its issuer may speak for'],
      ['/plans', none, 'the token has no account that its issuer may speak for'],
    ];
    for (const [target, who, detail] of rows)
      expect(decide(under, { target }, who)).to.include({ reason: 'account_mismatch', detail });
  });
});

describe('what the addressed account decides', () => {
  const byAccount = (names: Readonly<Record<string, readonly string[]>>): Identity['role'] => ({
    kind: 'byAccount',
    claimed: new Map(Object.entries(names).map(([name, roles]) => [account(name), roles])),
  });
  const role = byAccount({ acct1: ['owner'], acct2: ['member'] });
  const who = identity({ accounts: ['acct1', 'acct2', 'acct3'], role });

  it('C-081 is the role: never the one of another account', () => {
    const of = (acc: string) => decide(under, { method: 'POST', target: `/a/${acc}` }, who);
    expect(of('acct1')).to.include({ reason: 'allowed', role: 'owner' });
    expect(of('acct2')).to.include({ reason: 'role_forbidden', role: 'member', acc: 'acct2' });
    expect(of('acct3')).to.include({ reason: 'role_forbidden', role: undefined, acc: 'acct3' });
  });

  it('is the token itself, where its scopes are wrong for this account alone', () => {
    const detail = 'scope is a number and allowIntegerClaims is off, for the addressed account';
    const scope: Identity['scope'] = {
      kind: 'byAccount',
      claimed: new Map([[account('acct1'), refusal('token_invalid', detail)]]),
    };
    const scoped = policy({ routes: [route('/a/:account_id/*')], scopes: { read: ['GET'] } });
    expect(decide(scoped, { target: '/a/acct1' }, identity({ scope }))).to.include({ reason: 'token_invalid', detail });
  });

  it('is the token itself, where its role is wrong for this account alone', () => {
    const claimed = new Map<Account, Claimed | Refusal>([
      [account('acct1'), refusal('token_invalid', 'role has a member that is not a string, for the addressed account')],
      [account('acct2'), ['owner']],
    ]);
    const wrong: Identity['role'] = { kind: 'byAccount', claimed };
    const token = identity({ accounts: ['acct1', 'acct2'], role: wrong });
    expect(decide(under, { target: '/a/acct1' }, token)).to.include({ reason: 'token_invalid', acc: 'acct1' });
    expect(decide(under, { target: '/a/acct2' }, token)).to.include({ reason: 'allowed' });
  });

  it('is the revocation, which stands before the application and the account', () => {
    const revoked = (acc: string | undefined) => (acc === 'acct2' ? 'acc' : undefined);
    const strict = policy({ routes: [route('/plans'), route('/a/:account_id/*')], apps: ['none'] });
    expect(decide(strict, { target: '/a/acct2' }, both, revoked)).to.include({ reason: 'token_revoked', acc: 'acct2' });
    expect(decide(strict, { target: '/a/acct1' }, both, revoked).reason).to.equal('app_forbidden');
    expect(decide(strict, { target: '/a/acct3' }, both, acc => acc ?? 'uid').detail).to.contain('for uid');
    expect(decide(strict, { target: '/plans' }, both, () => 'uid').reason).to.equal('token_revoked');
  });
});

describe('scopes', () => {
  const scoped = policy({
    routes: [route('/a/:account_id/*'), route('/a/:account_id/bills', undefined, ['billing', 'all'])],
    roles: { owner: ['*', 'TRACE'] },
    scopes: { read: ['GET'], billing: ['GET', 'POST'], all: ['*'] },
  });
  const rows: readonly (readonly [scope: string[], request: Request, reason: string, chosen: string | undefined])[] = [
    [['read'], { target: '/a/acct1' }, 'allowed', 'read'],
    [['read', 'all'], { target: '/a/acct1', method: 'DELETE' }, 'allowed', 'all'],
    [['read', 'billing'], { target: '/a/acct1/bills' }, 'allowed', 'billing'],
    [['read'], { target: '/a/acct1/bills' }, 'scope_forbidden', 'read'],
    [['billing'], { target: '/a/acct1', method: 'DELETE' }, 'scope_forbidden', 'billing'],
    [[], { target: '/a/acct1' }, 'scope_forbidden', undefined],
  ];
  for (const [scope, request, reason, chosen] of rows) {
    it(`${JSON.stringify(scope)} for ${request?.method ?? 'GET'} ${request?.target}: ${reason}`, () => {
      expect(decide(scoped, request, identity({ scope }))).to.include({ reason, scope: chosen });
    });
  }

  it('are named in the log where the configuration has none of them', () => {
    const { outcome } = admit(scoped, facts({ target: '/a/acct1' }));
    if (outcome.kind === 'refusal') throw new Error('not admitted');
    const who = { ...identity(), otherScopes: 'scope is openid' };
    const decisionOf = (scope: readonly string[]) =>
      authorize(scoped, outcome, { ...who, scope }, () => undefined).decision;
    expect(decisionOf([])).to.include({ reason: 'scope_forbidden', found: 'scope is openid' });
    expect(decisionOf(['read'])).to.include({ kind: 'allow' });
  });

  it('are judged after the role', () => {
    expect(decide(scoped, { target: '/a/acct1' }, identity({ role: 'x' })).reason).to.equal('role_forbidden');
  });

  it('are not looked at without scopes', () => {
    expect(decide(under, { target: '/plans' }, identity()).reason).to.equal('allowed');
  });
});
