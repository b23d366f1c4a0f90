// Permission tables: which methods a name may use, which of several names decides, and which would be enough.
import { expect } from 'chai';
import { parseRequestTarget } from '../../src/authz/path.ts';
import {
  choosePermission,
  compilePermissions,
  namesIn,
  type PermissionEntry,
  permittedNames,
} from '../../src/authz/permission.ts';
import { compileRoutes, matchRoutes, type RouteMatch } from '../../src/authz/route-tree.ts';
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

  describe('grants', () => {
    const granted = compilePermissions(
      new Map<string, PermissionEntry>([
        ['member', ['GET', 'POST /a/:account_id/comments/*', 'PUT /a/:x/comments/:y']],
        ['Manager', { methods: ['* /a/*'], names: ['Site Manager', 'member'] }],
        ['bot', ['DELETE /a/settings.json', 'POST /a/Settings']],
      ]),
    );
    const templates = [...(granted.byName.values() ?? [])].flatMap(({ grants }) => [...(grants?.keys() ?? [])]);
    const routes = ['/a/*', '/a/:account_id/*', '/c/*'].map(path => ({ path, characters: 'rfc3986' as const }));
    const tree = compileRoutes([...routes, { path: '/a/settings/*', roles: ['bot'] }], 'account_id', templates);
    const cases: readonly (readonly [name: string, method: string, path: string, outcome: string | undefined])[] = [
      ['member', 'GET', '/c', undefined],
      ['member', 'POST', '/a/acme/comments', undefined],
      ['member', 'POST', '/a/acme/comments/7/x', undefined],
      ['member', 'PUT', '/a/acme/comments/7', undefined],
      ['member', 'PUT', '/a/acme/comments/a%20b', undefined],
      ['member', 'PUT', '/a/acme/comments', 'method'],
      ['member', 'PUT', '/a/acme/comments/7/x', 'method'],
      ['member', 'POST', '/a/acme/Comments', 'method'],
      ['member', 'POST', '/a/acme/comment%73/7', 'method'],
      ['member', 'POST', '/c/acme/comments', 'method'],
      ['member', 'DELETE', '/a/acme/comments', 'method'],
      ['Manager', 'OPTIONS', '/a', undefined],
      ['Manager', 'PROPFIND', '/a', 'method'],
      ['Manager', 'GET', '/c', 'method'],
    ];
    for (const [name, method, path, obstacle] of cases) {
      it(`${obstacle === undefined ? 'allow' : 'do not allow'} ${name} ${method} ${path}`, () => {
        const target = parseRequestTarget(path);
        const match = target.kind === 'target' ? matchRoutes(tree, target) : target;
        if (match.kind !== 'match') throw new Error(match.detail);
        expect(choosePermission(granted, 'roles', [name], method, match)).to.deep.equal({ name, obstacle });
      });
    }

    it('do not count where a path is read loosely: no template of theirs makes it invalid or saves it from a cut', () => {
      const outcome = (path: string) => {
        const target = parseRequestTarget(path);
        const match = target.kind === 'target' ? matchRoutes(tree, target) : target;
        return match.kind === 'match' ? 'match' : match.reason;
      };
      expect(outcome('/a/acme/COMMENTS/7')).to.equal('match');
      expect(outcome('/a/settings.json')).to.equal('request_invalid');
      expect(outcome('/a/acme/comments.json')).to.equal('match');
    });

    it('belong to a role by what tokens call it, and not by its key where it has names', () => {
      expect(namesIn(granted, ['Manager', 'bot'])).to.deep.equal(['bot']);
      expect(namesIn(granted, ['bot', 'Site Manager', 'member'])).to.deep.equal(['Manager', 'bot']);
    });
  });

  it('names what would be enough for a request, up to a limit and in its own order', () => {
    const narrowed = matchOf(route('/a/*', ['guest', 'owner']));
    expect(permittedNames(table, 'roles', 'GET', open, 10)).to.deep.equal(['owner', 'member', 'guest']);
    expect(permittedNames(table, 'roles', 'GET', open, 2)).to.deep.equal(['owner', 'member']);
    expect(permittedNames(table, 'roles', 'POST', narrowed, 10)).to.deep.equal(['owner', 'guest']);
    expect(permittedNames(table, 'roles', 'TRACE', narrowed, 10)).to.deep.equal([]);
  });
});
