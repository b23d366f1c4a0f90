// No flip without a row, none that covers what did not change, and each example is what `test` answers: for random pairs of configurations.
import { expect } from 'chai';
import fc from 'fast-check';
import { coversTemplate, toRouteTemplate } from '../../../src/authz/route-template.ts';
import type { Config } from '../../../src/config/schema.ts';
import { type Comparison, compareConfigs } from '../../../src/toolkit/compare/comparison.ts';
import { createAnswerer } from '../../../src/toolkit/compare/example.ts';
import { type Row, toText } from '../../../src/toolkit/compare/row.ts';
import { parseCases } from '../../../src/toolkit/policy-test/cases.ts';
import { runCases } from '../../../src/toolkit/policy-test/run-cases.ts';
import { createRandom, type Random } from '../../assurance/generator/random.ts';
import { type Asked, drawRequest, pairs } from './random-configs.ts';

// One pair for each 250 requests: `npm run compare-samples` asks a million.
const requestsOfPair = 250;
const numRuns = Math.ceil(Number(process.env.COMPARE_SAMPLES ?? 5000) / requestsOfPair);

const compared = (configs: readonly [Config, Config]): Comparison => {
  const [before, after] = configs.map(config => ({ config, written: { config } }));
  if (before === undefined || after === undefined) throw new Error('two configurations');
  return compareConfigs([before, after]);
};

function toCase({ method, segments, headers, query, host, accounts, roles, scopes, app }: Asked) {
  const [only] = accounts;
  const acc = accounts.length === 1 ? only : accounts;
  const claims = { uid: 'alice', app, acc, role: roles, scope: scopes.join(' ') };
  const path = `/${segments.join('/')}${query === undefined ? '' : `?account=${query}`}`;
  return { claims, request: { method, path, host, headers } };
}

const listOf = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : [value].flat();

function matches(template: string, segments: readonly string[]): boolean {
  const path = { segments: segments.map(value => ({ kind: 'literal', value }) as const), subtree: false };
  return coversTemplate(toRouteTemplate(template), path);
}

/** As servers may read it: lower case, decoded, without a format. */
const loosely = (segment: string): string => decodeURIComponent(segment).toLowerCase();
function matchesLoosely(template: string, segments: readonly string[]): boolean {
  const { segments: own, subtree } = toRouteTemplate(template);
  return (
    (subtree ? segments.length >= own.length : segments.length === own.length) &&
    own.every(
      (each, i) =>
        each.kind !== 'literal' ||
        loosely(segments[i] ?? '') === each.value.toLowerCase() ||
        loosely(segments[i] ?? '').startsWith(`${each.value.toLowerCase()}.`),
    )
  );
}

function covers(row: Row, request: Asked): boolean {
  const { role, scope, methods, path, except = [], when = '', setting } = row;
  if (setting === 'account.headers') return Object.keys(request.headers).some(name => listOf(row.entry).includes(name));
  if (setting === 'account.query') return request.query !== undefined;
  if (setting === 'account.hosts') return true;
  if (setting === 'apps') return listOf(row.entry).some(app => app === '*' || app === request.app);
  if (path === undefined || (methods !== undefined && !methods.includes(request.method))) return false;
  if (role !== undefined && !listOf(role).some(name => request.roles.includes(name))) return false;
  const [first, ...others] = listOf(scope);
  const isNegative = first === '*';
  if (isNegative && others.some(name => request.scopes.includes(name.slice(1)))) return false;
  if (first !== undefined && !isNegative && !listOf(scope).some(name => request.scopes.includes(name))) return false;
  if (when.includes('several') && request.accounts.length === 1) return false;
  if (when.includes('rfc3986') && !request.segments.some(each => /[+%]/.test(each))) return false;
  const { segments } = request;
  if (when.includes('format')) return matchesLoosely(path, segments);
  return matches(path, segments) && !except.some(template => matches(template, segments));
}

/** A request that the row is about: its example with another path, role, scope and method of the row. */
function drawFrom(random: Random, { role, scope, methods, path = '', example }: Row) {
  if (example === undefined) return undefined;
  const account = random.pick(['acme', 'initech', ...path.split('/').filter(each => /^[a-z0-9]+$/i.test(each))]);
  const texts = ['acme', 'zzz', 'q', 'v1', 'a', 'b', 'users'];
  const segments = path
    .replace('/*', '')
    .split('/')
    .slice(1)
    .map(each => (each.startsWith(':') ? random.pick([account, account, random.pick(texts)]) : each));
  if (path.endsWith('/*') && random.chance(0.7)) segments.push(random.pick(texts), ...random.some(['zzz', 'a']));
  const [first] = listOf(scope);
  const scopes = first === '*' ? {} : scope === undefined ? {} : { scope: random.pick(listOf(scope)) };
  const { scope: _, ...claims } = example.claims;
  return {
    segments,
    asked: {
      claims: { ...claims, acc: account, ...(role !== undefined && { role: random.pick(listOf(role)) }), ...scopes },
      request: {
        ...example.request,
        path: `/${segments.join('/')}`,
        method: methods === undefined ? example.request.method : random.pick(methods),
      },
    },
  };
}

const samples: Parameters<typeof fc.assert>[1] = {
  numRuns,
  ...(process.env.COMPARE_SEED && { seed: Number(process.env.COMPARE_SEED) }),
};

describe('compare', () => {
  it('has a row for every difference between two decisions', function () {
    this.timeout(0);
    let flips = 0;
    fc.assert(
      fc.property(pairs, fc.nat(), (configs, seed) => {
        const comparison = compared(configs);
        const [asOld, asNew] = configs.map(createAnswerer);
        const random = createRandom(seed);
        for (let i = 0; i < requestsOfPair; i += 1) {
          const request = drawRequest(random, configs);
          const [was, is] = [asOld?.(toCase(request)), asNew?.(toCase(request))];
          if ((was === 'allowed') === (is === 'allowed')) continue;
          flips += 1;
          const rows = comparison[is === 'allowed' ? 'more' : 'less'];
          if (!rows.some(row => covers(row, request)))
            throw new Error(`no row: ${JSON.stringify({ was, is, asked: toCase(request), rows }, undefined, 1)}`);
        }
      }),
      samples,
    );
    expect(flips).to.be.greaterThan(numRuns);
  });

  it('has no row that covers what did not change', function () {
    this.timeout(0);
    // Another check than that of the row may refuse a request that was drawn: the account, or a loose reading.
    const elsewhere = ['account_mismatch', 'request_invalid'];
    let decided = 0;
    fc.assert(
      fc.property(pairs, fc.nat(), (configs, seed) => {
        const { more, less } = compared(configs);
        const [asOld, asNew] = configs.map(createAnswerer);
        const random = createRandom(seed);
        for (const row of [...more, ...less].filter(({ path, when }) => path !== undefined && when === undefined))
          for (let i = 0; i < 5; i += 1) {
            const drawn = drawFrom(random, row);
            if (drawn === undefined || row.except?.some(template => matches(template, drawn.segments))) continue;
            const answers = [asOld?.(drawn.asked) ?? '', asNew?.(drawn.asked) ?? ''];
            if (row.kind === 'less') answers.reverse();
            const [refused = '', allowed = ''] = answers;
            if (elsewhere.includes(allowed) || (elsewhere.includes(refused) && allowed === 'allowed')) continue;
            decided += 1;
            if (refused === 'allowed' || allowed !== 'allowed')
              throw new Error(`not so: ${JSON.stringify({ answers, drawn, row }, undefined, 1)}`);
          }
      }),
      samples,
    );
    expect(decided).to.be.greaterThan(numRuns);
  });

  it('has examples that `test` answers as their rows say, and no row without one', async function () {
    this.timeout(0);
    await fc.assert(
      fc.asyncProperty(pairs, async configs => {
        const { more, less, other } = compared(configs);
        const rows = [...more, ...less, ...other].filter(({ path, entry }) => (path ?? entry) !== undefined);
        expect(rows.filter(({ example }) => example === undefined).map(toText)).to.deep.equal([]);
        if (rows.length === 0) return;
        const asCases = (outcome: (row: Row) => unknown) => {
          const cases = rows.map(row => ({ ...row.example, expect: outcome(row) }));
          const bytes = Buffer.from(JSON.stringify({ cases }));
          const parsed = parseCases({ kind: 'bytes', bytes }, { needsHost: false });
          if (parsed.kind !== 'cases') throw new Error(JSON.stringify(parsed.problems));
          return parsed.cases;
        };
        for (const [i, cases] of [asCases(({ before }) => before), asCases(({ after }) => after)].entries()) {
          const config = configs[i] ?? configs[0];
          const settings = { config, revocations: undefined, proxy: {}, onWarning: () => undefined };
          const results = await runCases(settings, cases, () => undefined);
          expect(results.filter(({ isAsExpected }) => !isAsExpected)).to.deep.equal([]);
        }
      }),
      { ...samples, numRuns: Math.ceil(numRuns / 4) },
    );
  });
});
