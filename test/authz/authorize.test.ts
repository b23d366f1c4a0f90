// The policy: which requests are allowed, which reason and detail a refusal has, and the order of the checks.
import { expect } from 'chai';
import fc from 'fast-check';
import { admit, authorize, type Policy } from '../../src/authz/authorize.ts';
import type { Decision } from '../../src/authz/decision.ts';
import { namesIn } from '../../src/authz/permission.ts';
import type { Claimed, Identity } from '../../src/authz/principal.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { facts, identity, policy, principal, route } from '../support/facts.ts';

function decide(under: Policy, request: RequestFacts, who: Identity = identity()): Decision {
  const { outcome } = admit(under, request);
  return outcome.kind === 'refusal' ? outcome : authorize(under, outcome, who, () => undefined).decision;
}

function reasonOf(decision: Decision): string {
  return decision.kind === 'allow' ? 'allowed' : decision.reason;
}

/** The end of a title. */
function expected(reason: string): string {
  return reason === 'allowed' ? 'is allowed' : `is refused as ${reason}`;
}

describe('admit and authorize', () => {
  it('allow a request for the account of the token', () => {
    expect(decide(policy(), facts())).to.deep.equal({ kind: 'allow', principal: principal() });
  });

  describe('path', () => {
    const paths: readonly (readonly [target: string, reason: string])[] = [
      ['/api/subscriptions/acct1', 'allowed'],
      ['/api/subscriptions/acct2', 'account_mismatch'],
      ['/api/subscriptions/acct1/items/9', 'allowed'],
      ['/api/subscriptions/acct1/', 'allowed'],
      ['/api/subscriptions/acct2/', 'account_mismatch'],
      ['/api/subscriptions/acct1//', 'request_invalid'],
      ['/api/subscriptions', 'route_unknown'],
      ['/api/subscriptionsX/acct1', 'route_unknown'],
      ['/api/subscriptions-old/acct1', 'route_unknown'],
      ['/API/subscriptions/acct1', 'request_invalid'],
      ['/api/Subscriptions/acct1', 'request_invalid'],
      ['/api/subscriptions/ACCT1', 'account_mismatch'],
      ['/api/subscriptions/acct1?account=acct2', 'allowed'],
      ['/api/subscriptions/acct1/api/subscriptions/acct2', 'allowed'],
      ['/x/api/subscriptions/acct1', 'route_unknown'],
      ['/api/subscriptions/acct10', 'account_mismatch'],
      ['/api/subscriptions/acct', 'account_mismatch'],
      ['/api/subscriptions/...', 'request_invalid'],
      ['/api/subscriptions/acct1.json', 'request_invalid'],
      ['/api/subscriptions/acct:1', 'request_invalid'],
      ['/', 'route_unknown'],
      ['/pkg.Svc/M', 'route_unknown'],
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

  describe('several matching routes', () => {
    const several = policy({
      routes: [
        route('/api/subscriptions/*'),
        route('/api/subscriptions/accounts/:account_id/*', ['owner']),
        route('/api/subscriptions/:kind/:account_id/members'),
      ],
    });
    const rows: readonly (readonly [name: string, target: string, who: Identity, reason: string])[] = [
      ['a path without an account', '/api/subscriptions/plans', identity(), 'allowed'],
      [
        'the account of the token in one of two matching routes',
        '/api/subscriptions/accounts/acct1/items',
        identity(),
        'allowed',
      ],
      [
        'another account in one of two matching routes',
        '/api/subscriptions/accounts/acct2/items',
        identity(),
        'account_mismatch',
      ],
      [
        'a role that one matching route does not list',
        '/api/subscriptions/accounts/acct1',
        identity({ role: 'member' }),
        'role_forbidden',
      ],
      [
        'a role that the only matching route allows',
        '/api/subscriptions/plans',
        identity({ role: 'member' }),
        'allowed',
      ],
      ['another account in another template', '/api/subscriptions/teams/acct2/members', identity(), 'account_mismatch'],
      [
        'a path that matches a template only if case is ignored',
        '/api/subscriptions/Accounts/acct2',
        identity(),
        'request_invalid',
      ],
    ];
    for (const [name, target, who, reason] of rows) {
      it(`${name} ${expected(reason)}`, () => {
        expect(reasonOf(decide(several, facts({ target }), who))).to.equal(reason);
      });
    }

    it('allow only the roles that every one of them lists', () => {
      const narrowed = policy({
        routes: [route('/api/*', ['owner', 'member']), route('/api/subscriptions/*', ['owner'])],
      });
      const target = '/api/subscriptions/x';
      expect(reasonOf(decide(narrowed, facts({ target }), identity({ role: 'member' })))).to.equal('role_forbidden');
      expect(reasonOf(decide(narrowed, facts({ target }), identity()))).to.equal('allowed');
    });

    it('do not include a template without /* for a longer path', () => {
      const exact = policy({ routes: [route('/api/subscriptions/:account_id'), route('/a/:any')] });
      expect(reasonOf(decide(exact, facts({ target: '/api/subscriptions/acct1/items' })))).to.equal('route_unknown');
      expect(reasonOf(decide(exact, facts({ target: '/api/subscriptions' })))).to.equal('route_unknown');
      expect(reasonOf(decide(exact, facts({ target: '/a/b/c' })))).to.equal('route_unknown');
    });

    it('are logged as the most specific one', () => {
      expect(admit(several, facts({ target: '/api/subscriptions/accounts/acct1/x' })).route).to.equal(
        '/api/subscriptions/accounts/:account_id/*',
      );
    });

    it('are checked at every :account_id of a template', () => {
      const twice = policy({ routes: [route('/a/:account_id/b/:account_id')] });
      expect(reasonOf(decide(twice, facts({ target: '/a/acct1/b/acct2' })))).to.equal('account_mismatch');
      expect(reasonOf(decide(twice, facts({ target: '/a/acct1/b/acct1' })))).to.equal('allowed');
    });
  });

  describe('method', () => {
    const methods: readonly (readonly [role: string, method: string, reason: string])[] = [
      ['owner', 'DELETE', 'allowed'],
      ['owner', 'OPTIONS', 'allowed'],
      ['owner', 'TRACE', 'role_forbidden'],
      ['owner', 'CONNECT', 'role_forbidden'],
      ['owner', 'PROPFIND', 'role_forbidden'],
      ['member', 'GET', 'allowed'],
      ['member', 'HEAD', 'allowed'],
      ['member', 'POST', 'role_forbidden'],
      ['member', 'OPTIONS', 'role_forbidden'],
      ['admin', 'GET', 'role_forbidden'],
      ['__proto__', 'GET', 'role_forbidden'],
      ['Owner', 'GET', 'role_forbidden'],
      ['owner', 'get', 'request_invalid'],
      ['owner', '', 'request_invalid'],
      ['owner', 'GE T', 'request_invalid'],
      ['owner', 'A'.repeat(10_000), 'request_invalid'],
    ];
    for (const [role, method, reason] of methods) {
      it(`${JSON.stringify(method.slice(0, 12))} by ${role} ${expected(reason)}`, () => {
        expect(reasonOf(decide(policy(), facts({ method }), identity({ role })))).to.equal(reason);
      });
    }
  });

  describe('list of roles', () => {
    const under = policy({
      routes: [
        route('/api/subscriptions/:account_id/*'),
        route('/api/subscriptions/:account_id/audits/*', ['auditor', 'writer']),
        route('/api/subscriptions/:account_id/audits/keys', ['auditor', 'reader']),
      ],
      roles: { reader: ['GET'], auditor: ['GET', 'HEAD'], writer: ['POST', 'GET'] },
    });
    const audits = '/api/subscriptions/acct1/audits';
    const rows: readonly (readonly [
      name: string,
      roles: readonly string[],
      request: Parameters<typeof facts>[0],
      role: string | undefined,
      detail?: string,
    ])[] = [
      ['selects the first role in the order of the configuration', ['writer', 'auditor', 'reader'], {}, 'reader'],
      ['selects the only configured role', ['x', 'a b', 'auditor', ''], {}, 'auditor'],
      ['selects a role that is listed twice', ['writer', 'writer'], {}, 'writer'],
      ['selects the first role that may use the method', ['reader', 'writer'], { method: 'POST' }, 'writer'],
      [
        'selects the first role that the matching routes permit',
        ['reader', 'writer', 'auditor'],
        { target: audits },
        'auditor',
      ],
      [
        'selects the one role that every matching route permits',
        ['writer', 'auditor', 'reader'],
        { target: `${audits}/keys` },
        'auditor',
      ],
      ['selects no role if none is configured', ['x', 'Reader'], {}, undefined, 'the role is not one of roles'],
      ['selects no role from an empty list', [], {}, undefined, 'the role is not one of roles'],
      [
        'is refused with the first role if none may use the method',
        ['auditor', 'reader'],
        { method: 'DELETE' },
        'reader',
        'the role may not use this method',
      ],
      [
        'is refused if one role may use the method and another the route',
        ['writer', 'auditor'],
        { method: 'POST', target: `${audits}/keys` },
        'writer',
        'the route is narrowed to other roles',
      ],
      [
        'is refused if each route permits another role',
        ['reader', 'writer'],
        { target: `${audits}/keys` },
        'reader',
        'the route is narrowed to other roles',
      ],
    ];
    for (const [name, roles, request, role, detail] of rows) {
      it(`C-044 ${name}`, () => {
        const { outcome } = admit(under, facts(request));
        if (outcome.kind === 'refusal') throw new Error('not admitted');
        const { decision, principal: who } = authorize(
          under,
          outcome,
          identity({ role: namesIn(under.roles, roles) }),
          () => undefined,
        );
        expect(who.role).to.equal(role);
        expect(decision).to.deep.equal(
          detail === undefined
            ? { kind: 'allow', principal: { ...principal(), role } }
            : { kind: 'refusal', reason: 'role_forbidden', detail },
        );
      });
    }

    it('selects a role even if another check refuses the request, but none without an addressed account', () => {
      const under = policy({ apps: ['cli'] });
      const { outcome } = admit(under, facts());
      if (outcome.kind === 'refusal') throw new Error('not admitted');
      const of = (acc: string) => authorize(under, outcome, identity({ acc, role: ['member'] }), () => undefined);
      expect(of('acct1')).to.deep.include({ principal: principal({ role: 'member' }) });
      expect(reasonOf(of('acct1').decision)).to.equal('app_forbidden');
      expect(of('acct2').principal).to.include({ acc: 'acct2', role: undefined });
    });

    it('is allowed if any one of its roles alone is, with the first such role', () => {
      const role = fc.constantFrom('reader', 'auditor', 'writer', 'x');
      const target = fc.constantFrom('/api/subscriptions/acct1', audits, `${audits}/keys`);
      const method = fc.constantFrom('GET', 'HEAD', 'POST', 'DELETE');
      fc.assert(
        fc.property(fc.array(role), target, method, (roles, to, by) => {
          const { outcome } = admit(under, facts({ target: to, method: by }));
          if (outcome.kind === 'refusal') throw new Error('not admitted');
          const of = (claimed: Claimed) =>
            authorize(
              under,
              outcome,
              identity({ role: typeof claimed === 'string' ? claimed : namesIn(under.roles, claimed) }),
              () => undefined,
            );
          const sufficient = (['reader', 'auditor', 'writer'] as const).filter(
            each => roles.includes(each) && of(each).decision.kind === 'allow',
          );
          const { decision, principal: who } = of(roles);
          expect(decision.kind === 'allow').to.equal(sufficient.length > 0);
          if (decision.kind === 'allow') expect(who.role).to.equal(sufficient[0]);
        }),
      );
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
        'a second parameter with another account',
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
    it('H-005 a second space becomes part of the token, which the verifier then refuses', () => {
      const { outcome } = admit(policy(), facts({ headers: { authorization: 'Bearer  h.p.s' } }));
      expect(outcome).to.include({ kind: 'admitted', token: ' h.p.s' });
    });
  });

  it('refuse a contradictory message even if the rest is valid', () => {
    expect(reasonOf(decide(policy(), facts({ contradiction: 'two values in one header' })))).to.equal(
      'request_invalid',
    );
  });

  describe('order of the checks', () => {
    const worst = { method: 'get', target: '/nothing/here', headers: { authorization: '' } };
    const rows: readonly (readonly [
      name: string,
      request: Parameters<typeof facts>[0],
      who: Identity,
      reason: string,
    ])[] = [
      [
        'a contradictory message before the method',
        { ...worst, contradiction: 'two values in one header' },
        identity(),
        'request_invalid',
      ],
      ['the grammar before the route', worst, identity(), 'request_invalid'],
      [
        'an ambiguous Authorization header before the route',
        { target: '/x', headers: { authorization: 'a,b' } },
        identity(),
        'request_invalid',
      ],
      ['the route before the token', { ...worst, method: 'GET' }, identity(), 'route_unknown'],
      ['the application before the role', {}, identity({ app: 'no', role: 'no', acc: 'acct2' }), 'app_forbidden'],
      ['the application before the account', {}, identity({ app: 'no', acc: 'acct2' }), 'app_forbidden'],
      ['the account before the role', {}, identity({ role: 'no', acc: 'acct2' }), 'account_mismatch'],
    ];
    for (const [name, request, who, reason] of rows) {
      it(`reports ${name}`, () => {
        expect(reasonOf(decide(policy({ apps: ['web'] }), facts(request), who))).to.equal(reason);
      });
    }
  });

  describe('detail for the log', () => {
    const strict = policy({
      routes: [route('/api/subscriptions/:account_id/*'), route('/owners', ['owner'])],
      apps: ['web'],
      headers: ['x-account-id'],
    });
    const rows: readonly (readonly [detail: string, request: Parameters<typeof facts>[0], who?: Identity])[] = [
      ['two values in one header', { contradiction: 'two values in one header' }],
      ['method outside the grammar', { method: 'get' }],
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
