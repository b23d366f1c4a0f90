// The search for a protected path that an Envoy route takes, compared with a brute-force search over all pairs.
import { expect } from 'chai';
import fc from 'fast-check';
import { parseRouteTemplate, type RouteTemplate } from '../../../src/authz/route-template.ts';
import { ProtoValue } from '../../../src/toolkit/lint/proto-value.ts';
import { type EnvoyRouteMatch, readRouteMatch } from '../../../src/toolkit/lint/route-match.ts';
import { findRouted, indexMatches, indexProtectedRoutes } from '../../../src/toolkit/lint/routed-path.ts';
import { runs } from '../../support/foreign-bytes.ts';

const segment = fc.constantFrom('a', 'A', 'ab', 'b', 'x1');
const pathOf = (parts: readonly string[]): string => `/${parts.join('/')}`;

const template = fc
  .tuple(fc.array(fc.oneof(segment, fc.constant(':account_id')), { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([parts, subtree]) => toTemplate(pathOf(parts) + (subtree ? '/*' : '')));

const literalMatch = fc
  .record({
    field: fc.constantFrom('prefix', 'path', 'path_separated_prefix'),
    text: fc.array(segment, { maxLength: 3 }).map(pathOf),
    isExact: fc.boolean(),
    isSure: fc.boolean(),
  })
  .map(({ field, text, isExact, isSure }) => ({
    [field]: text,
    ...(isExact ? {} : { case_sensitive: false }),
    ...(isSure ? {} : { headers: [{ name: 'x-a', present_match: true }] }),
  }));
const templateMatch = fc
  .tuple(fc.array(fc.oneof(segment, fc.constant('*')), { maxLength: 3 }), fc.boolean())
  .map(([parts, rest]) => ({
    path_match_policy: {
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig',
        path_template: pathOf(rest ? [...parts, '**'] : parts),
      },
    },
  }));
const otherMatch = fc.constant({ safe_regex: { regex: '.*' } });
const match = fc.oneof({ arbitrary: literalMatch, weight: 6 }, { arbitrary: templateMatch, weight: 3 }, otherMatch);

describe('findRouted', () => {
  const seed = fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 31;
  it(`agrees with a brute-force search in random bootstraps (seed ${seed})`, () => {
    const counts = { found: 0, none: 0 };
    fc.assert(
      fc.property(
        fc.array(template, { minLength: 1, maxLength: 4 }),
        fc.array(match, { minLength: 1, maxLength: 5 }),
        fc.constantFrom('exact', 'other case'),
        (templates, values, spelling) => {
          const matches = values.map(toMatch);
          const routed = matches.at(-1) ?? toMatch({ prefix: '/' });
          const before = matches.slice(0, -1);
          const index = indexMatches(matches.map(each => ({ match: each, isAnswered: false })));
          const isTaken = (path: string) => before.some(each => each.isSure && each.takes(path));
          const all = { beginningWith: () => templates };
          const found = findRouted(indexProtectedRoutes(templates), spelling, routed, index, before.length);
          const tried = findRouted(all, spelling, routed, { ...index, isTaken }, before.length);
          expect(found === undefined).to.equal(tried === undefined);
          counts[found === undefined ? 'none' : 'found'] += 1;
          if (found === undefined) return;
          expect(routed.takes(found)).to.equal(true);
          expect(before.some(each => each.isSure && each.takes(found))).to.equal(false);
        },
      ),
      { ...runs(1000), seed },
    );
    expect(Math.min(counts.found, counts.none)).to.be.above(50);
  });
});

function toTemplate(text: string): RouteTemplate {
  const parsed = parseRouteTemplate(text);
  if (parsed.kind === 'problem') throw new Error(parsed.problem);
  return parsed;
}

function toMatch(value: unknown): EnvoyRouteMatch {
  const read = readRouteMatch(
    new ProtoValue(value, ({ path }, message) => {
      throw new Error(`${path.join('.')} ${message}`);
    }),
  );
  if (read === undefined) throw new Error('a match without a path');
  return read;
}
