// Permission tables: which methods a name may use, which of several names decides, and which would be enough.
import { expect } from 'chai';
import { choosePermission, namesIn, permittedNames } from '../../src/authz/permission.ts';
import type { RouteMatch } from '../../src/authz/route.ts';
import { compileRoutes, matchRoutes } from '../../src/authz/route-tree.ts';
import { policy, route } from '../support/facts.ts';

function matchOf(...routes: readonly ReturnType<typeof route>[]): RouteMatch {
  const match = matchRoutes(compileRoutes(routes), { segments: ['a', 'b'], decoded: undefined });
  if (match.kind !== 'match') throw new Error('no match');
  return match;
}

describe('permission table', () => {
  const table = policy({ roles: { owner: ['*', 'PROPFIND'], member: ['GET'], guest: ['GET', 'POST'] } }).roles;
  const open = matchOf(route('/a/*'));
  const rows: readonly (readonly [name: string, method: string, obstacle: string | undefined])[] = [
    ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map(
      method => ['owner', method, undefined] as const,
    ),
    ['owner', 'PROPFIND', undefined],
    ['owner', 'TRACE', 'method'],
    ['owner', '*', 'method'],
    ['member', 'GET', undefined],
    ['member', 'HEAD', 'method'],
    ['nobody', 'GET', 'unknown'],
    ['constructor', 'GET', 'unknown'],
  ];
  for (const [name, method, obstacle] of rows) {
    it(`${obstacle === undefined ? 'allows' : `has the obstacle ${obstacle} to`} ${method} for ${name}`, () => {
      expect(choosePermission(table, 'roles', [name], method, open)).to.deep.equal({
        name: obstacle === 'unknown' ? undefined : name,
        obstacle,
      });
    });
  }

  it('keeps the names that it has, once each and in its own order', () => {
    const claimed = ['nobody', 'member', 'constructor', 'owner', 'OWNER', '__proto__', 'member'];
    expect(namesIn(table, claimed)).to.deep.equal(['owner', 'member']);
    expect(namesIn(table, ['nobody'])).to.deep.equal([]);
  });

  it('chooses the first name that every matching route leaves, or else the one that comes nearest', () => {
    const narrowed = matchOf(route('/a/*', ['owner', 'guest']), route('/a/b', ['guest', 'member']), route('/:x/b'));
    const chosen = (method: string, ...names: string[]) => choosePermission(table, 'roles', names, method, narrowed);
    expect(chosen('GET', 'owner', 'member', 'guest')).to.deep.equal({ name: 'guest', obstacle: undefined });
    expect(chosen('GET', 'owner', 'member')).to.deep.equal({ name: 'owner', obstacle: 'route' });
    expect(chosen('POST', 'member', 'owner')).to.deep.equal({ name: 'owner', obstacle: 'route' });
    expect(chosen('POST', 'member')).to.deep.equal({ name: 'member', obstacle: 'method' });
    expect(chosen('GET')).to.deep.equal({ name: undefined, obstacle: 'unknown' });
  });

  it('is narrowed by the setting of its own kind', () => {
    const narrowed = matchOf(route('/a/*', ['owner'], ['member']));
    expect(choosePermission(table, 'scopes', ['member'], 'GET', narrowed).obstacle).to.equal(undefined);
    expect(choosePermission(table, 'roles', ['member'], 'GET', narrowed).obstacle).to.equal('route');
  });

  it('names what would be enough for a request, up to a limit and in its own order', () => {
    const narrowed = matchOf(route('/a/*', ['guest', 'owner']));
    expect(permittedNames(table, 'roles', 'GET', open, 10)).to.deep.equal(['owner', 'member', 'guest']);
    expect(permittedNames(table, 'roles', 'GET', open, 2)).to.deep.equal(['owner', 'member']);
    expect(permittedNames(table, 'roles', 'POST', narrowed, 10)).to.deep.equal(['owner', 'guest']);
    expect(permittedNames(table, 'roles', 'TRACE', narrowed, 10)).to.deep.equal([]);
  });
});
