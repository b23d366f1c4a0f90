// The tree of routes: what matches, what is refused, what is logged, and what a match costs.
import { expect } from 'chai';
import fc from 'fast-check';
import type { Route } from '../../src/authz/route.ts';
import { parseRouteTemplate } from '../../src/authz/route-template.ts';
import { compileRoutes, matchRoutes } from '../../src/authz/route-tree.ts';
import { walkRoutes } from './route-walk.ts';

const match = (paths: readonly string[], segments: readonly string[]) =>
  matchRoutes(compileRoutes(paths.map(path => ({ path }))), segments);

describe('route tree', () => {
  it('finds every route that matches, in the order of the configuration', () => {
    const segments = ['a', 'x', 'y'];
    const found = match(['/:any/x/:account_id', '/a/*', '/b', '/a/:account_id/*', '/a/x'], segments);
    expect(found).to.include({ kind: 'match', route: '/:any/x/:account_id', segments });
    expect(found.kind === 'match' && found.routes.map(({ template }) => template.text)).to.deep.equal([
      '/:any/x/:account_id',
      '/a/*',
      '/a/:account_id/*',
    ]);
  });

  it('keeps the roles to which a route is narrowed', () => {
    const found = matchRoutes(compileRoutes([{ path: '/a', roles: ['owner', 'admin'] }]), ['a']);
    expect(found.kind === 'match' && found.routes.map(({ roles }) => [...(roles ?? [])])).to.deep.equal([
      ['owner', 'admin'],
    ]);
  });

  it('is not made of an invalid template', () => {
    expect(() => compileRoutes([{ path: '/a' }, { path: '/a/' }])).to.throw('invalid route: must not have an empty');
  });

  const logged: readonly (readonly [name: string, paths: readonly string[], route: string])[] = [
    ['the longest, where it comes first', ['/a/b', '/a/*'], '/a/b'],
    ['the longest, where it comes last', ['/a/*', '/a/b'], '/a/b'],
    ['the first of two that are as long', ['/a/:one', '/a/:two'], '/a/:one'],
    ['a parameter before a literal where it comes first', ['/a/:one', '/a/b'], '/a/:one'],
    ['a literal before a parameter where it comes first', ['/a/b', '/a/:one'], '/a/b'],
    ['a subtree before a path where it comes first', ['/a/b/*', '/a/b'], '/a/b/*'],
  ];
  for (const [name, paths, route] of logged) {
    it(`names ${name}`, () => {
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
    ['the only template', ['/a/b'], ['a', 'B']],
    ['the literal above a subtree', ['/a/*'], ['A', 'b', 'c']],
    ['a template of another case beside the one that matches', ['/a/b', '/a/B'], ['a', 'b']],
    ['a subtree of another case above the one that matches', ['/A/*', '/a/b'], ['a', 'b']],
    ['a literal behind a parameter that matches', ['/:any/b', '/a/:any'], ['a', 'B']],
  ];
  for (const [name, paths, segments] of otherCase) {
    it(`refuses a path that matches but for case: ${name}`, () => {
      expect(match(paths, segments)).to.include({ kind: 'refusal', reason: 'request_invalid' });
    });
  }

  const seed = fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 31;
  it(`answers 20,000 random configurations and paths as a walk over all routes does (seed ${seed})`, () => {
    const literal = fc.constantFrom('a', 'A', 'b', 'B', 'aB', 'AB');
    const template = fc
      .record({
        segments: fc.array(fc.oneof({ arbitrary: literal, weight: 3 }, fc.constantFrom(':account_id', ':x', ':y')), {
          minLength: 1,
          maxLength: 5,
        }),
        subtree: fc.boolean(),
      })
      .map(({ segments, subtree }) => `/${segments.join('/')}${subtree ? '/*' : ''}`);
    const outcomes = new Map<string, number>();
    fc.assert(
      fc.property(
        fc.array(fc.record({ path: template, roles: fc.option(fc.constant(['owner']), { nil: undefined }) }), {
          minLength: 1,
          maxLength: 12,
        }),
        fc.array(fc.oneof(literal, fc.constant('c')), { maxLength: 6 }),
        (definitions, segments) => {
          const walked = walkRoutes(definitions.map(toRoute), segments);
          const outcome = walked.kind === 'match' ? walked.kind : walked.reason;
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          expect(matchRoutes(compileRoutes(definitions), segments)).to.deep.equal(walked);
        },
      ),
      { numRuns: 20_000, seed },
    );
    expect([...outcomes.keys()]).to.have.members(['match', 'request_invalid', 'route_unknown']);
    // None of the three is so rare that the comparison says nothing about it.
    for (const count of outcomes.values()) expect(count).to.be.above(1_000);
  });

  // A walk over all routes takes a thousand times as long for ten thousand as for ten.
  it('takes about as long with 10,000 routes as with 10', () => {
    const elapsed = (count: number): number => {
      const tree = compileRoutes(Array.from({ length: count }, (_, i) => ({ path: `/api/r${i}/:account_id/*` })));
      const paths = Array.from({ length: 10 }, (_, i) => ['api', `r${count - 1 - i}`, 'acct1', 'items']);
      const rounds = Array.from({ length: 5 }, () => {
        const begin = performance.now();
        for (let i = 0; i < 500; i += 1) for (const segments of paths) matchRoutes(tree, segments);
        return performance.now() - begin;
      });
      return Math.min(...rounds);
    };
    const few = elapsed(10);
    expect(elapsed(10_000)).to.be.below(30 * few);
  });

  it('takes no longer than the number of its nodes, however many templates begin like a path', () => {
    const prefixes = Array.from({ length: 12 }).reduce<string[]>(
      so => so.flatMap(each => [`${each}/a`, `${each}/:any`]),
      [''],
    );
    const tree = compileRoutes(prefixes.map(each => ({ path: `${each}/b` })));
    const begin = performance.now();
    for (let i = 0; i < 10; i += 1) {
      expect(matchRoutes(tree, Array<string>(1_000).fill('a'))).to.include({ reason: 'route_unknown' });
    }
    expect(performance.now() - begin).to.be.below(2_000);
  });
});

function toRoute({ path, roles }: { readonly path: string; readonly roles: readonly string[] | undefined }): Route {
  const template = parseRouteTemplate(path);
  if (template.kind === 'problem') throw new Error(template.problem);
  return { template, roles: roles && new Set(roles) };
}
