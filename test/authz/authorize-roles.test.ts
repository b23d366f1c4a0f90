// What a policy decides about routes, methods and lists of roles.
import { expect } from 'chai';
import fc from 'fast-check';
import { admit, authorize } from '../../src/authz/authorize.ts';
import { namesIn } from '../../src/authz/permission.ts';
import type { Claimed, Identity } from '../../src/authz/principal.ts';
import { facts, identity, policy, principal, route } from '../support/facts.ts';
import { decide, expected, reasonOf } from './decide.ts';

describe('roles and routes', () => {
  describe('several matching routes', () => {
    const several = policy({
      routes: [
        route('/api/subscriptions/*'),
        route('/api/subscriptions/accounts/:account_id/*', ['owner']),
        route('/api/subscriptions/:kind/:account_id/members'),
      ],
    });
    const [accounts, member] = ['/api/subscriptions/accounts', identity({ role: 'member' })];
    const rows: readonly (readonly [name: string, target: string, who: Identity, reason: string])[] = [
      ['a path without an account', '/api/subscriptions/plans', identity(), 'allowed'],
      ['the account of the token in one of two matching routes', `${accounts}/acct1/items`, identity(), 'allowed'],
      ['another account in one of two matching routes', `${accounts}/acct2/items`, identity(), 'account_mismatch'],
      ['a role that one matching route does not list', `${accounts}/acct1`, member, 'role_forbidden'],
      ['a role that the only matching route allows', '/api/subscriptions/plans', member, 'allowed'],
      ['another account in another template', '/api/subscriptions/teams/acct2/members', identity(), 'account_mismatch'],
      ['a path in another case than its template', '/api/subscriptions/Accounts/acct2', identity(), 'request_invalid'],
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
    const keys = `${audits}/keys`;
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
      ['selects the first role that the routes permit', ['reader', 'writer', 'auditor'], { target: audits }, 'auditor'],
      ['selects the one that every route permits', ['writer', 'auditor', 'reader'], { target: keys }, 'auditor'],
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
        { method: 'POST', target: keys },
        'writer',
        'the route is narrowed to other roles',
      ],
      [
        'is refused if each route permits another role',
        ['reader', 'writer'],
        { target: keys },
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
            ? { kind: 'allow', principal: { ...principal(), role }, forwarded: [] }
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
      const target = fc.constantFrom('/api/subscriptions/acct1', audits, keys);
      const method = fc.constantFrom('GET', 'HEAD', 'POST', 'DELETE');
      fc.assert(
        fc.property(fc.array(role), target, method, (roles, to, by) => {
          const { outcome } = admit(under, facts({ target: to, method: by }));
          if (outcome.kind === 'refusal') throw new Error('not admitted');
          const of = (claimed: Claimed) =>
            authorize(under, outcome, identity({ role: namesIn(under.roles, claimed) }), () => undefined);
          const sufficient = (['reader', 'auditor', 'writer'] as const).filter(
            each => roles.includes(each) && of([each]).decision.kind === 'allow',
          );
          const { decision, principal: who } = of(roles);
          expect(decision.kind === 'allow').to.equal(sufficient.length > 0);
          if (decision.kind === 'allow') expect(who.role).to.equal(sufficient[0]);
        }),
      );
    });
  });
});
