// The accounts that a matched path names, and the roles that its routes permit.
import { expect } from 'chai';
import { everyAccountSegmentIs, permitsRole, type RouteDefinition, type RouteMatch } from '../../src/authz/route.ts';
import { compileRoutes, matchRoutes } from '../../src/authz/route-tree.ts';
import { route } from '../support/facts.ts';

describe('matching routes', () => {
  const matched = (routes: readonly RouteDefinition[], ...segments: string[]): RouteMatch => {
    const match = matchRoutes(compileRoutes(routes), { segments, decoded: undefined });
    if (match.kind !== 'match') throw new Error('no match');
    return match;
  };

  const addressed: readonly (readonly [templates: string[], path: string[], account: string, only: boolean])[] = [
    [['/a/:account_id/*', '/:any/x/:account_id'], ['a', 'x', 'y'], 'x', false],
    [['/a/:account_id/*', '/:any/x/:account_id'], ['a', 'x', 'y'], 'y', false],
    [['/a/:account_id/*', '/:any/x/:account_id'], ['a', 'x', 'x'], 'x', true],
    [['/:account_id/:account_id'], ['x', 'y'], 'x', false],
    [['/:account_id/:account_id'], ['x', 'y'], 'y', false],
    [['/a/:any', '/a/b'], ['a', 'b'], 'x', true],
    [['/a/:account_id'], ['a', 'X'], 'x', false],
  ];
  for (const [templates, path, account, only] of addressed) {
    it(`with ${templates.join(' and ')}, /${path.join('/')} ${only ? 'names no account except' : 'names an account other than'} ${account}`, () => {
      const routes = templates.map(each => route(each));
      expect(everyAccountSegmentIs(matched(routes, ...path), account)).to.equal(only);
    });
  }

  it('permit only the roles that each of them permits', () => {
    const routes = [
      route('/a/*', ['owner', 'admin']),
      route('/a/b', ['owner', 'member']),
      route('/a/:any'),
      route('/b', []),
    ];
    const match = matched(routes, 'a', 'b');
    expect(['owner', 'admin', 'member', 'viewer'].filter(role => permitsRole(match, role))).to.deep.equal(['owner']);
    expect(permitsRole(matched([route('/a')], 'a'), 'viewer')).to.equal(true);
  });
});
