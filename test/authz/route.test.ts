import { expect } from 'chai';
import { matchRoutes } from '../../src/authz/route.ts';
import { route } from '../support/facts.ts';

describe('matching routes', () => {
  it('gives all accounts and all narrowing roles of every route that fits', () => {
    const routes = [route('/a/:account_id/*', ['owner']), route('/:any/x/:account_id'), route('/b')];
    expect(matchRoutes(routes, ['a', 'x', 'y'])).to.deep.equal({
      kind: 'match',
      route: '/:any/x/:account_id',
      accounts: ['x', 'y'],
      roleSets: [new Set(['owner'])],
    });
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
