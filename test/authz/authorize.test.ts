// The policy: which requests are allowed, which reason and detail a refusal has, and the order of the checks.
import { expect } from 'chai';
import fc from 'fast-check';
import { admit } from '../../src/authz/authorize.ts';
import type { Identity } from '../../src/authz/principal.ts';
import { facts, identity, policy, principal, route } from '../support/facts.ts';
import { decide, expected, reasonOf } from './decide.ts';

describe('admit and authorize', () => {
  it('allow a request for the account of the token', () => {
    expect(decide(policy(), facts())).to.deep.equal({ kind: 'allow', principal: principal(), forwarded: [] });
  });

  describe('path', () => {
    const paths: readonly (readonly [target: string, reason: string])[] = [
      ['/api/subscriptions/acct1', 'allowed'],
      ['/api/subscriptions/acct2', 'account_mismatch'],
      ['/api/subscriptions', 'route_unknown'],
      ['/api/subscriptions/ACCT1', 'account_mismatch'],
      ['/api/subscriptions/acct10', 'account_mismatch'],
      ['/api/subscriptions/...', 'request_invalid'],
      ['/api/subscriptions/acct1.json', 'request_invalid'],
    ];
    for (const [target, reason] of paths) {
      it(`${target} ${expected(reason)}`, () => {
        expect(reasonOf(decide(policy(), facts({ target })))).to.equal(reason);
      });
    }

    it('P-055 an account that begins like another one is another account', () => {
      expect(
        reasonOf(decide(policy(), facts({ target: '/api/subscriptions/acct1' }), identity({ acc: 'acct10' }))),
      ).to.equal('account_mismatch');
    });
  });

  describe('application', () => {
    it('is refused if apps does not list it', () => {
      expect(reasonOf(decide(policy({ apps: ['web'] }), facts(), identity({ app: 'cli' })))).to.equal('app_forbidden');
    });
    it('is allowed if apps lists it', () => {
      expect(reasonOf(decide(policy({ apps: ['web'] }), facts()))).to.equal('allowed');
    });
  });

  describe('account headers and query parameters', () => {
    const places = policy({ headers: ['x-account-id'], query: ['account_id'] });
    const rows: readonly (readonly [name: string, request: Parameters<typeof facts>[0], reason: string])[] = [
      ['a request with neither', {}, 'allowed'],
      ['a header with the account of the token', { headers: { 'x-account-id': 'acct1' } }, 'allowed'],
      ['a header with another account', { headers: { 'x-account-id': 'acct2' } }, 'account_mismatch'],
      ['an empty header', { headers: { 'x-account-id': '' } }, 'request_invalid'],
      ['a header of spaces', { headers: { 'x-account-id': ' \t' } }, 'request_invalid'],
      ['a list in one header', { headers: { 'x-account-id': 'acct1,acct1' } }, 'request_invalid'],
      ['a header with two values', { headers: { 'x-account-id': ['acct1', 'acct1'] } }, 'request_invalid'],
      ['an underscore look-alike header', { headers: { x_account_id: 'acct1' } }, 'request_invalid'],
      ['a look-alike header with one underscore', { headers: { 'x-account_id': 'acct1' } }, 'request_invalid'],
      ...Array.from("!#$%&'*+.^_`|~", (character): [string, Parameters<typeof facts>[0], string] => [
        `a look-alike header with ${character}`,
        { headers: { 'x-account-id': 'acct1', [`x${character}account-id`]: 'acct1' } },
        'request_invalid',
      ]),
      ['a look-alike header with two other separators', { headers: { 'x.account~id': 'acct1' } }, 'request_invalid'],
      ['a header with a longer name', { headers: { 'x.account.ids': 'acct2' } }, 'allowed'],
      ['a header name without one of the separators', { headers: { 'x.accountid': 'acct2' } }, 'allowed'],
      ['a header name with a doubled separator', { headers: { 'x..account.id': 'acct2' } }, 'allowed'],
      ['a parameter with the account of the token', { target: '/api/subscriptions/acct1?account_id=acct1' }, 'allowed'],
      ['a parameter with another account', { target: '/api/subscriptions/acct1?account_id=acct2' }, 'account_mismatch'],
      [
        'a second one with another',
        { target: '/api/subscriptions/acct1?account_id=acct1&account_id=acct2' },
        'account_mismatch',
      ],
      ['a look-alike parameter', { target: '/api/subscriptions/acct1?Account_Id=acct1' }, 'request_invalid'],
    ];
    for (const [name, request, reason] of rows) {
      it(`${name} ${expected(reason)}`, () => {
        expect(reasonOf(decide(places, facts(request)))).to.equal(reason);
      });
    }
    for (const header of ['x_org', 'x.account.id', 'x-tenant~id']) {
      it(`a look-alike of one of several headers, ${header}, ${expected('request_invalid')}`, () => {
        const several = policy({ headers: ['x-tenant-id', 'x-org', 'x-account-id'] });
        expect(reasonOf(decide(several, facts({ headers: { [header]: 'acct1' } })))).to.equal('request_invalid');
      });
    }
  });

  describe('Authorization header', () => {
    const rows: readonly (readonly [name: string, authorization: string | string[], reason: string])[] = [
      ['H-001 an absent header', [], 'token_missing'],
      ['H-002 an empty value', '', 'token_missing'],
      ['a value of white space', ' \t ', 'token_missing'],
      ['H-003 a scheme without a token', 'Bearer', 'token_missing'],
      ['H-003 a scheme and a space without a token', 'Bearer ', 'token_missing'],
      ['H-007 white space around the value', ' \tBearer h.p.s \t', 'allowed'],
      ['a scheme in another case', 'bEARER h.p.s', 'allowed'],
      ['H-006 a tab after the scheme', 'Bearer\th.p.s', 'token_missing'],
      ['H-009 the Basic scheme', 'Basic aDpw', 'token_missing'],
      ['H-009 a token without a scheme', 'h.p.s', 'token_missing'],
      ['a scheme that begins with Bearer', 'BearerX h.p.s', 'token_missing'],
      ['H-010 a comma-separated list', 'Bearer a,Bearer b', 'request_invalid'],
      ['H-011 a pair of different values', ['Bearer a', 'Bearer b'], 'request_invalid'],
      ['H-013 a repeated value', ['Bearer a', 'Bearer a'], 'request_invalid'],
      ['an empty value before a token', ['', 'Bearer h.p.s'], 'allowed'],
      ['a comma in a value of another scheme', 'Digest a,b', 'request_invalid'],
    ];
    for (const [name, authorization, reason] of rows) {
      it(`${name} ${expected(reason)}`, () => {
        expect(reasonOf(decide(policy(), facts({ headers: { authorization } })))).to.equal(reason);
      });
    }
    it('H-005 more spaces than one may separate the token from the scheme', () => {
      const { outcome } = admit(policy(), facts({ headers: { authorization: 'Bearer   h.p.s' } }));
      expect(outcome).to.include({ kind: 'admitted', token: 'h.p.s' });
    });
  });

  it('refuse a contradictory message even if the rest is valid', () => {
    expect(reasonOf(decide(policy(), facts({ contradiction: 'two values in one header' })))).to.equal(
      'request_invalid',
    );
  });

  describe('order of the checks', () => {
    const worst = { method: 'get', target: '/nothing/here', headers: { authorization: '' } };
    type Request = Parameters<typeof facts>[0];
    const rows: readonly (readonly [name: string, request: Request, who: Identity, reason: string])[] = [
      [
        'a contradiction before the method',
        { ...worst, contradiction: 'a fragment beside the path' },
        identity(),
        'request_invalid',
      ],
      ['the grammar before the route', worst, identity(), 'request_invalid'],
      ['a token before the route', { target: '/x', headers: { authorization: 'a,b' } }, identity(), 'request_invalid'],
      ['the route before the token', { ...worst, method: 'GET' }, identity(), 'route_unknown'],
      ['a host before the route', { ...worst, method: 'GET', host: 'Acct1.api.test' }, identity(), 'request_invalid'],
      ['the application before the role', {}, identity({ app: 'no', role: 'no', acc: 'acct2' }), 'app_forbidden'],
      ['the application before the account', {}, identity({ app: 'no', acc: 'acct2' }), 'app_forbidden'],
      ['the account before the role', {}, identity({ role: 'no', acc: 'acct2' }), 'account_mismatch'],
    ];
    for (const [name, request, who, reason] of rows) {
      it(`reports ${name}`, () => {
        const hosts = request?.host === undefined ? {} : { hosts: [':account_id.api.test'] };
        const under = policy({ apps: ['web'], ...hosts });
        expect(reasonOf(decide(under, facts(request), who))).to.equal(reason);
      });
    }

    it('is the host before the path, where both are invalid', () => {
      const under = policy({ hosts: [':account_id.api.test'] });
      const request = facts({ host: 'Acct1.api.test', target: '/API/subscriptions/acct1' });
      expect(decide(under, request)).to.include({ detail: 'an account label outside the grammar' });
    });
  });

  describe('detail for the log', () => {
    const strict = policy({
      routes: [route('/api/subscriptions/:account_id/*'), route('/owners', ['owner'])],
      apps: ['web'],
      headers: ['x-account-id'],
    });
    const rows: readonly (readonly [detail: string, request: Parameters<typeof facts>[0], who?: Identity])[] = [
      ['two values in one header', { contradiction: 'two values in one header' }],
      ...['get', 'xGET', 'GETx', 'GET ', ''].map(method => ['method outside the grammar', { method }] as const),
      ['connection nominates a header that the upstream needs', { headers: { connection: 'x-account-id' } }],
      ['an account outside the grammar', { headers: { 'x-account-id': 'a/b' } }],
      ['the segment of an account is outside its grammar', { target: '/api/subscriptions/a:b' }],
      ['the request names different accounts', { headers: { 'x-account-id': 'acct2' } }],
      [
        'the token has several accounts and the request names none',
        { target: '/owners' },
        identity({ accounts: ['acct1', 'acct2'] }),
      ],
      ['more than one Authorization', { headers: { authorization: ['Bearer a', 'Bearer b'] } }],
      ['a comma in Authorization', { headers: { authorization: 'Bearer a,b' } }],
      ['an account header twice', { headers: { 'x-account-id': ['acct1', 'acct1'] } }],
      ['an empty account header', { headers: { 'x-account-id': ' ' } }],
      ['a list in an account header', { headers: { 'x-account-id': 'acct1,acct2' } }],
      ['a look-alike of an account header', { headers: { x_account_id: 'acct1' } }],
      [
        'the path matches a route only if case is ignored or segments are decoded',
        { target: '/API/subscriptions/acct1' },
      ],
      ['no route matches', { target: '/x' }],
      ['no Authorization', { headers: { authorization: [] } }],
      ['Authorization has another scheme', { headers: { authorization: 'Basic a' } }],
      ['no token after the scheme', { headers: { authorization: 'Bearer' } }],
      ['the application is not one of apps', {}, identity({ app: 'cli' })],
      ['the role is not one of roles', {}, identity({ role: 'guest' })],
      ['the role may not use this method', { method: 'POST' }, identity({ role: 'member' })],
      ['the route is narrowed to other roles', { target: '/owners' }, identity({ role: 'member' })],
      ['the request names another account than the token', {}, identity({ acc: 'acct2' })],
    ];
    it('is "no Authorization" if Envoy sends no headers', () => {
      expect(decide(strict, { ...facts(), headers: new Map() })).to.include({ detail: 'no Authorization' });
    });
    for (const [detail, request, who] of rows) {
      it(`is "${detail}"`, () => {
        expect(decide(strict, facts(request), who)).to.include({ kind: 'refusal', detail });
      });
    }
  });

  it('never allow a request whose path, header or query names another account', () => {
    const acc = fc.constantFrom('acct1', 'acct2', 'ACCT1', 'acct', '.', '');
    fc.assert(
      fc.property(acc, acc, acc, (inPath, inHeader, inQuery) => {
        const places = policy({ headers: ['x-account-id'], query: ['account_id'] });
        const target = `/api/subscriptions/${inPath}?account_id=${inQuery}`;
        const decision = decide(places, facts({ target, headers: { 'x-account-id': inHeader } }));
        const allEqual = [inPath, inHeader, inQuery].every(each => each === 'acct1');
        expect(decision.kind === 'allow').to.equal(allEqual);
      }),
    );
  });
});
