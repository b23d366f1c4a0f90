import { expect } from 'chai';
import { everyAccountSegmentIs, matchRoutes, permitsRole, type Route, type RouteMatch } from '../../src/authz/route.ts';
import { route } from '../support/facts.ts';

describe('matching routes', () => {
  it('gives every route that fits', () => {
    const [one, other, third] = [route('/a/:account_id/*', ['owner']), route('/:any/x/:account_id'), route('/b')];
    const segments = ['a', 'x', 'y'];
    expect(matchRoutes([one, other, third], segments)).to.deep.equal({
      kind: 'match',
      route: '/:any/x/:account_id',
      routes: [one, other],
      segments,
    });
  });

  const matched = (routes: readonly Route[], ...segments: string[]): RouteMatch => {
    const match = matchRoutes(routes, segments);
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
    it(`by ${templates.join(' and ')}, /${path.join('/')} ${only ? 'addresses' : 'does not address'} ${account} alone`, () => {
      const routes = templates.map(each => route(each));
      expect(everyAccountSegmentIs(matched(routes, ...path), account)).to.equal(only);
    });
  }

  it('leaves the roles that every route leaves which fits', () => {
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

  const rows: readonly (readonly [name: string, templates: readonly string[], shown: string])[] = [
    ['the longest, where it comes first', ['/a/b', '/a/*'], '/a/b'],
    ['the longest, where it comes last', ['/a/*', '/a/b'], '/a/b'],
    ['the first of two that are as long', ['/a/:one', '/a/:two'], '/a/:one'],
  ];
  for (const [name, templates, shown] of rows) {
    it(`names ${name}`, () => {
      expect(
        matchRoutes(
          templates.map(each => route(each)),
          ['a', 'b'],
        ),
      ).to.include({ route: shown });
    });
  }

  const shorter: readonly (readonly [template: string, segments: readonly string[]])[] = [
    ['/a/b', ['a']],
    ['/a/b/*', ['a']],
    ['/a/b/*', ['A']],
    ['/a/:any', ['a']],
    ['/a/:any/*', ['a']],
    ['/a/:account_id/*', ['a']],
    ['/:account_id/:any', ['a']],
    ['/a/*', []],
  ];
  for (const [template, segments] of shorter) {
    it(`does not match ${template} with the shorter /${segments.join('/')}`, () => {
      expect(matchRoutes([route(template)], segments)).to.include({ kind: 'refusal', reason: 'route_unknown' });
    });
  }
});
