// The accounts that a matched path names.
import { expect } from 'chai';
import { accountSegments } from '../../src/authz/route.ts';
import { compileRoutes, matchRoutes } from '../../src/authz/route-tree.ts';
import { route } from '../support/facts.ts';

describe('accountSegments', () => {
  const rows: readonly (readonly [templates: string[], path: string[], accounts: string[]])[] = [
    [
      ['/a/:account_id/*', '/:any/x/:account_id'],
      ['a', 'x', 'y'],
      ['x', 'y'],
    ],
    [['/:account_id/:account_id'], ['x', 'y'], ['x', 'y']],
    [['/a/:any', '/a/b'], ['a', 'b'], []],
    [['/a/:account_id'], ['a', 'X'], ['X']],
  ];
  for (const [templates, path, accounts] of rows) {
    it(`are ${JSON.stringify(accounts)} of /${path.join('/')} with ${templates.join(' and ')}`, () => {
      const match = matchRoutes(compileRoutes(templates.map(each => route(each))), {
        segments: path,
        decoded: undefined,
      });
      if (match.kind !== 'match') throw new Error('no match');
      expect(accountSegments(match)).to.deep.equal(accounts);
    });
  }
});
