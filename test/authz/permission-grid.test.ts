// Who may do what, by route: the same that the policy decides for paths of the route.
import { expect } from 'chai';
import fc from 'fast-check';
import { choosePermission, compilePermissions, grantTemplates, parseGrant } from '../../src/authz/permission.ts';
import { type GridPolicy, permissionGrid } from '../../src/authz/permission-grid.ts';
import { compileRoutes, matchRoutes } from '../../src/authz/route-tree.ts';

const account = { parameter: 'account_id' };

describe('permission grid', () => {
  it('has the methods of each name on a route, and grants of a part of its paths as they are written', () => {
    const policy: GridPolicy = {
      account,
      routes: [{ path: '/a/*' }, { path: '/a/b/*', roles: ['owner', 'member'] }, { path: '/a/b/:account_id' }],
      roles: new Map([
        ['owner', ['*']],
        ['member', ['GET', 'POST /a/b/*', 'PUT /a/b/c', 'DELETE /c/*']],
        ['guest', { methods: ['GET /a/:x/*', 'GET /a'], names: ['Visitor'] }],
      ]),
    };
    const cellsOf = permissionGrid(policy, 'roles');
    const rows = policy.routes.map((_, i) => cellsOf(i).map(({ name, grants }) => `${name}: ${grants.join(', ')}`));
    expect(rows).to.deep.equal([
      ['owner: *', 'member: GET, POST /a/b/*, PUT /a/b/c', 'guest: GET /a/:x/*, GET /a'],
      ['owner: *', 'member: GET, POST, PUT /a/b/c', 'guest: '],
      ['owner: *', 'member: GET, POST, PUT /a/b/c', 'guest: '],
    ]);
    expect(permissionGrid(policy, 'scopes')(0)).to.deep.equal([]);
  });

  it('never promises a method that the policy refuses on the path of the route itself', () => {
    const segment = fc.constantFrom('a', 'b', ':account_id', ':x');
    const template = fc
      .tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '/*'))
      .map(([segments, end]) => `/${segments.join('/')}${end}`);
    const grant = fc.oneof(
      fc.constantFrom('GET', 'POST'),
      template.map(text => `GET ${text}`),
    );
    const route = fc.record({ path: template, roles: fc.constantFrom(undefined, ['r'], ['s']) });
    fc.assert(
      fc.property(fc.array(route, { minLength: 1, maxLength: 4 }), fc.array(grant), (routes, grants) => {
        const policy = {
          account,
          routes,
          roles: new Map([
            ['r', grants],
            ['s', []],
          ]),
        };
        const table = compilePermissions(policy.roles);
        const tree = compileRoutes(routes, 'account_id', grantTemplates(policy.roles));
        for (const [i, { path }] of routes.entries()) {
          const segments = path.replace('/*', '').slice(1).split('/');
          const match = matchRoutes(tree, { segments, decoded: undefined });
          if (match.kind !== 'match') throw new Error(match.detail);
          for (const text of permissionGrid(policy, 'roles')(i)[0]?.grants ?? []) {
            const { method, template: part } = parseGrant(text);
            if (part !== undefined) continue;
            const { obstacle } = choosePermission(table, 'roles', ['r'], method, match);
            // A route that matches some of its paths alone is a row of its own.
            expect(obstacle).to.be.oneOf([undefined, 'route']);
            if (obstacle === 'route') expect(match.routes.length).to.be.above(1);
          }
        }
      }),
    );
  });
});
