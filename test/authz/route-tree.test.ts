// The route tree: which routes match, which path is refused, which route is logged, and the cost of a match.
import { expect } from 'chai';
import fc from 'fast-check';
import { parseRequestTarget, type RequestPath } from '../../src/authz/path.ts';
import { parseRouteTemplate } from '../../src/authz/route-template.ts';
import { compileRoutes, matchRoutes, type Route, type RouteDefinition } from '../../src/authz/route-tree.ts';
import { runs } from '../support/foreign-bytes.ts';
import { searchRoutes } from './route-search.ts';

const match = (paths: readonly string[], segments: readonly string[]) =>
  matchRoutes(compileRoutes(paths.map(path => ({ path }))), { segments, decoded: undefined });

/** The path of a request, as it is sent. */
const pathOf = (path: string): RequestPath => {
  const target = parseRequestTarget(path);
  if (target.kind === 'refusal') throw new Error(target.detail);
  return target;
};

describe('route tree', () => {
  it('finds every matching route, in the order of the configuration', () => {
    const segments = ['a', 'x', 'y'];
    const found = match(['/:any/x/:account_id', '/a/*', '/b', '/a/:account_id/*', '/a/x'], segments);
    expect(found).to.include({ kind: 'match', route: '/:any/x/:account_id', segments });
    expect(found.kind === 'match' && found.routes.map(({ template }) => template.text)).to.deep.equal([
      '/:any/x/:account_id',
      '/a/*',
      '/a/:account_id/*',
    ]);
  });

  it('keeps the roles of a route', () => {
    const found = matchRoutes(compileRoutes([{ path: '/a', roles: ['owner', 'admin'] }]), pathOf('/a'));
    expect(found.kind === 'match' && found.routes.map(({ roles }) => [...(roles ?? [])])).to.deep.equal([
      ['owner', 'admin'],
    ]);
  });

  it('takes the account parameter by its configured name', () => {
    const found = matchRoutes(compileRoutes([{ path: '/a/:tenant/:account_id' }], 'tenant'), pathOf('/a/b/c'));
    expect(found.kind === 'match' && found.routes.map(({ template }) => template.segments)).to.deep.equal([
      [{ kind: 'literal', value: 'a' }, { kind: 'account' }, { kind: 'any', name: 'account_id' }],
    ]);
  });

  it('throws on an invalid template', () => {
    expect(() => compileRoutes([{ path: '/a' }, { path: '/a/' }])).to.throw('invalid route: it must not have an empty');
  });

  const logged: readonly (readonly [name: string, paths: readonly string[], route: string])[] = [
    ['the longest template, configured first', ['/a/b', '/a/*'], '/a/b'],
    ['the longest template, configured last', ['/a/*', '/a/b'], '/a/b'],
    ['the first of two templates of equal length', ['/a/:one', '/a/:two'], '/a/:one'],
    ['a parameter configured before a literal', ['/a/:one', '/a/b'], '/a/:one'],
    ['a literal configured before a parameter', ['/a/b', '/a/:one'], '/a/b'],
    ['a subtree configured before a path', ['/a/b/*', '/a/b'], '/a/b/*'],
  ];
  for (const [name, paths, route] of logged) {
    it(`logs ${name}`, () => {
      expect(match(paths, ['a', 'b'])).to.include({ route });
    });
  }

  const unknown: readonly (readonly [path: string, segments: readonly string[]])[] = [
    ['/a/b', ['a']],
    ['/a/b', ['a', 'b', 'c']],
    ['/a/b/*', ['a']],
    ['/a/b/*', ['A']],
    ['/a/:any', ['a']],
    ['/a/:any', ['a', 'b', 'c']],
    ['/a/:any/*', ['a']],
    ['/a/:account_id/*', ['a']],
    ['/:account_id/:any', ['a']],
    ['/a/*', []],
    ['/a', ['toString']],
    ['/a', ['__proto__']],
  ];
  for (const [path, segments] of unknown) {
    it(`does not match ${path} with /${segments.join('/')}`, () => {
      expect(match([path], segments)).to.include({ kind: 'refusal', reason: 'route_unknown' });
    });
  }

  const otherCase: readonly (readonly [name: string, paths: readonly string[], segments: readonly string[]])[] = [
    ['in the only template', ['/a/b'], ['a', 'B']],
    ['in the literal above a subtree', ['/a/*'], ['A', 'b', 'c']],
    ['in a template next to the matching one', ['/a/b', '/a/B'], ['a', 'b']],
    ['in a subtree above the matching template', ['/A/*', '/a/b'], ['a', 'b']],
    ['in a literal after a matching parameter', ['/:any/b', '/a/:any'], ['a', 'B']],
  ];
  for (const [name, paths, segments] of otherCase) {
    it(`refuses a path that differs only by case ${name}`, () => {
      expect(match(paths, segments)).to.include({ kind: 'refusal', reason: 'request_invalid' });
    });
  }

  const notPermitted = 'a character that not every matching route permits';
  const notLiteral = 'the path matches a route only if case is ignored or segments are decoded';
  type Row = readonly [name: string, routes: readonly string[], path: string, detail: string | undefined];
  const wide: readonly Row[] = [
    ['in a subtree of an rfc3986 route', ['+/a/*'], '/a/%C3%9Cbersicht%20(1).pdf', undefined],
    ['in a parameter of an rfc3986 route', ['+/a/:x'], '/a/b+c', undefined],
    ['beside the account of an rfc3986 route', ['+/a/:account_id/:x'], '/a/acct1/b%20c', undefined],
    ['where two rfc3986 routes match', ['+/a/*', '+/a/:x'], '/a/b,c', undefined],
    ['beside a strict route that does not match', ['+/a/*', '/a/b/*'], '/a/b%20c', undefined],
    ['with a literal of a strict route deeper in the path', ['+/a/*', '/a/b'], '/a/c%20/b', undefined],
    ['where no route matches', ['+/a/*'], '/b/c%20d', notPermitted],
    ['where no rfc3986 route matches', ['+/a/b', '/a/*'], '/a/c%20d', notPermitted],
    ['where a strict route matches too', ['+/a/*', '/a/:x'], '/a/b%20c', notPermitted],
    ['behind a strict route that matches', ['+/a/*', '/a/:account_id/*'], '/a/acct1/b%20c', notPermitted],
    ['in the account', ['+/a/:account_id'], '/a/b%20c', notPermitted],
    ['in the account of another route', ['+/a/*', '+/a/:account_id'], '/a/b+c', notPermitted],
    ['that encodes one of the account', ['+/a/:account_id/*'], '/a/%61cct1/x', notPermitted],
    ['that encodes a letter of a literal', ['+/a/*', '+/a/admin'], '/a/%61dmin', notLiteral],
    ['that encodes a letter of a strict literal', ['+/a/*', '/a/admin/*'], '/a/adm%69n/x', notLiteral],
    ['that encodes a literal in another case', ['+/a/*', '+/a/admin'], '/a/%41DMIN', notLiteral],
    ['beside a literal in another case', ['+/a/*', '+/a/admin/:x'], '/a/Admin/b%20c', notLiteral],
    ['whose case folds to ASCII', ['+/a/*', '+/a/stats'], '/a/%C5%BFtat%C5%BF', notLiteral],
    ['that is a Kelvin sign', ['+/a/*', '+/a/kind'], '/a/%E2%84%AAind', notLiteral],
    ['that is a dotted I', ['+/a/*', '+/a/admin'], '/a/adm%C4%B0n', notLiteral],
    ['that encodes a letter of the only literal', ['+/a/:x'], '/%61/b', notLiteral],
    ['that encodes a colon before the name of a parameter', ['+/a/*', '+/a/:x'], '/a/%3Ax', undefined],
  ];
  for (const [name, routes, path, detail] of wide) {
    it(`${detail === undefined ? 'permits' : 'refuses'} a character ${name}`, () => {
      const found = matchRoutes(compileRoutes(routes.map(toDefinition)), pathOf(path));
      expect(found).to.include(detail === undefined ? { kind: 'match' } : { reason: 'request_invalid', detail });
    });
  }

  const notWhole = 'the path matches a route only if a segment is trimmed or cut at a sign';
  // Frameworks serve these as /a/settings: Django REST framework, Rails (.json), nginx with $uri (%20), Google's APIs (:).
  const settings = ['+/a/*', '/a/settings/* owner'];
  const formats: readonly Row[] = [
    ['a format', settings, '/a/settings.json', notWhole],
    ['a format of a format', settings, '/a/settings.tar.gz', notWhole],
    ['a format in upper case', settings, '/a/SETTINGS.JSON', notWhole],
    ['a format above the subtree', settings, '/a/settings.json/x', notWhole],
    ['a method', settings, '/a/settings:reset', notWhole],
    ['an at sign', settings, '/a/settings@2', notWhole],
    ['a space at its end', settings, '/a/settings%20', notWhole],
    ['spaces at both ends and a format', settings, '/a/%C2%A0settings.json%20', notWhole],
    ['a matrix', settings, '/a/settings,x', notWhole],
    ['a letter outside ASCII', settings, '/a/settings%C3%A9', notWhole],
    ['a key in parentheses', settings, "/a/settings('x')", notWhole],
    ['a format in the literal before the account', ['/a/*', '/a/accounts/:account_id'], '/a/accounts.json/b', notWhole],
    ['a format, without an open route', ['/a/settings owner'], '/a/settings.json', notWhole],
    ['a format, where scopes narrow', ['/a/*', '/a/settings  billing'], '/a/settings.xml', notWhole],
    ['a format at two literals', ['/a/*', '/a/b/c owner'], '/a/b.x/c.y', notWhole],
    ['a format of a literal that has signs itself', ['/a/*', '/a/b.c owner'], '/a/b.c.json', notWhole],
    ['a method of a literal that has signs itself', ['/a/*', '/a/b:c.d owner'], '/a/B:C.d:e', notWhole],
    ['signs of its literal alone', ['/a/*', '/a/b.c owner'], '/a/b.d', undefined],
    ['a longer name than its literal with signs', ['/a/*', '/a/b.c owner'], '/a/b.cd', undefined],
    ['a format of a name with signs that has one', ['/a/*', '/a/b.c owner', '/a/b.c.json'], '/a/b.c.json', undefined],
    ['a format of a literal with signs before the account', ['/a.b/:account_id'], '/a.b.json/acct1', notWhole],
    ['a format in another case', ['/a/*', '/a/b.json owner'], '/a/b.JSON', notLiteral],
    ['a space behind a literal that has signs itself', ['+/a/*', '+/a/b.c owner'], '/a/b.c%20', notWhole],
    ['a format that another template has', [...settings, '/a/settings.json'], '/a/settings.json', undefined],
    ['a format that a longer template has', [...settings, '/a/settings.json/x/y'], '/a/settings.json', undefined],
    ['a format that a parameter leads to', ['/:x/*', '/a/b/* owner', '/:x/b.c'], '/a/b.c', undefined],
    ['a format that a template has in another case', [...settings, '/a/Settings.json/x'], '/a/settings.json', notWhole],
    ['a format that a template has elsewhere', [...settings, '/b/settings.json'], '/a/settings.json', notWhole],
    ['a format that a path has only if cut', ['/:x/*', '/:x/b owner', '/a/b.c'], '/a.v2/b.c', notWhole],
    ['a format that a template without rules has', ['/a/*', '/a/files'], '/a/files.zip', undefined],
    ['a format below a template without rules', ['/files/*', '/files/archive/*'], '/files/archive.zip/x', undefined],
    ['a sign at its start', settings, '/a/.settings', undefined],
    ['a longer name', settings, '/a/settings-x_y~z', undefined],
    ['a format in the place of a parameter', ['/a/:x', '/a/:x/b owner'], '/a/x.json', undefined],
    ['an encoded letter', settings, '/a/setting%73', notLiteral],
  ];
  for (const [name, routes, path, detail] of formats) {
    it(`${detail === undefined ? 'serves' : 'refuses'} a segment with ${name}`, () => {
      const found = matchRoutes(compileRoutes(routes.map(toDefinition)), pathOf(path));
      expect(found).to.include(detail === undefined ? { kind: 'match' } : { reason: 'request_invalid', detail });
    });
  }

  const seed = fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 31;
  it(`agrees with a linear search on random configurations and paths (seed ${seed})`, () => {
    const literal = fc.constantFrom('a', 'A', 'b', 'B', 'aB', 'AB', 'a.b', 'b:a');
    const template = fc
      .record({
        segments: fc.array(fc.oneof({ arbitrary: literal, weight: 3 }, fc.constantFrom(':account_id', ':x', ':y')), {
          minLength: 1,
          maxLength: 5,
        }),
        subtree: fc.boolean(),
      })
      .map(({ segments, subtree }) => `/${segments.join('/')}${subtree ? '/*' : ''}`);
    const definition = fc.record({
      path: template,
      roles: fc.option(fc.constant(['owner']), { nil: undefined }),
      characters: fc.constantFrom('strict' as const, 'rfc3986' as const, 'rfc3986' as const),
    });
    const segment = fc.oneof(
      { arbitrary: literal, weight: 8 },
      fc.constantFrom(
        'c',
        '%61',
        '%41b',
        'a%42',
        'b+',
        '%C3%9C',
        'a%20',
        '%20b',
        'a.x',
        'aB:c',
        'a.b.c',
        'b:a,%20',
        'A.B:c',
      ),
    );
    const outcomes = new Map<string, number>();
    fc.assert(
      fc.property(
        fc.array(definition, { minLength: 1, maxLength: 12 }),
        fc.array(segment, { maxLength: 6 }),
        (definitions, segments) => {
          const found = searchRoutes(definitions.map(toRoute), segments);
          const outcome = found.kind === 'match' ? found.kind : found.detail;
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          expect(matchRoutes(compileRoutes(definitions), pathOf(`/${segments.join('/')}`))).to.deep.equal(found);
        },
      ),
      { ...runs(1000), seed },
    );
    expect([...outcomes.keys()]).to.have.members(['match', notLiteral, notWhole, notPermitted, 'no route matches']);
    // Each outcome is frequent enough to be compared.
    for (const count of outcomes.values()) expect(count).to.be.above(20);
  });

  // A linear search would take a thousand times as long.
  it('matches among 10,000 routes in about the time of 10', () => {
    const elapsed = (count: number): number => {
      const tree = compileRoutes(Array.from({ length: count }, (_, i) => ({ path: `/api/r${i}/:account_id/*` })));
      const paths = Array.from({ length: 10 }, (_, i) => pathOf(`/api/r${count - 1 - i}/acct1/items`));
      const rounds = Array.from({ length: 5 }, () => {
        const begin = performance.now();
        for (let i = 0; i < 500; i += 1) for (const path of paths) matchRoutes(tree, path);
        return performance.now() - begin;
      });
      return Math.min(...rounds);
    };
    const few = elapsed(10);
    expect(elapsed(10_000)).to.be.below(30 * few);
  });

  it('bounds a match by its number of nodes when thousands of templates share a prefix', () => {
    const prefixes = Array.from({ length: 12 }).reduce<string[]>(
      shorter => shorter.flatMap(each => [`${each}/a`, `${each}/:any`]),
      [''],
    );
    const tree = compileRoutes(prefixes.map(each => ({ path: `${each}/b` })));
    const fastestMs = (segments: number): number =>
      Math.min(
        ...Array.from({ length: 5 }, () => {
          const begin = performance.now();
          expect(matchRoutes(tree, pathOf('/a'.repeat(segments)))).to.include({ reason: 'route_unknown' });
          return performance.now() - begin;
        }),
      );
    expect(fastestMs(1_000)).to.be.below(30 * fastestMs(14));
  });
});

/** The path, its role and its scope; `+` marks an rfc3986 route. */
function toDefinition(text: string): RouteDefinition {
  const [path = '', role = '', scope = ''] = text.replace('+', '').split(' ');
  const characters = text.startsWith('+') ? 'rfc3986' : 'strict';
  return { path, characters, roles: role === '' ? undefined : [role], scopes: scope === '' ? undefined : [scope] };
}

function toRoute({ path, roles, characters }: RouteDefinition): Route {
  const template = parseRouteTemplate(path);
  if (template.kind === 'problem') throw new Error(template.problem);
  const accountsAt = template.segments.flatMap(({ kind }, i) => (kind === 'account' ? i : []));
  return { template, accountsAt, roles: roles && new Set(roles), scopes: undefined, isWide: characters === 'rfc3986' };
}
