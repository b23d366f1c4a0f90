// `compare` beside the naive way: two configurations of 200 routes, the bounds, the growth with the routes, and classes a second.
// Run: npx tsx bench/compare.ts
import { type Config, configSchema } from '../src/config/schema.ts';
import { compareConfigs } from '../src/toolkit/compare/comparison.ts';
import { runCases } from '../src/toolkit/policy-test/run-cases.ts';

interface Size {
  readonly routes: number;
  readonly roles: number;
  readonly scopes: number;
}

const verbs = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** `isChanged`: every tenth route is narrowed to other roles, and one role may do more under one path. */
function configOf({ routes, roles, scopes }: Size, isChanged: boolean): Config {
  const names = Array.from({ length: roles }, (_, i) => `role-${i}`);
  const scopeNames = Array.from({ length: scopes }, (_, i) => `scope-${i}`);
  const path = (i: number): string => `/v1/service-${i}/:account_id/items/*`;
  const few = (i: number): string[] => [...new Set([0, 1, 2].map(j => names[(i * 7 + j * 3) % roles] ?? ''))];
  return configSchema.parse({
    issuers: [
      {
        issuer: 'https://a.example.com',
        audiences: ['api'],
        jwksUrl: 'https://a.example.com/jwks',
        algorithms: ['ES256'],
      },
    ],
    routes: Array.from({ length: routes }, (_, i) => ({
      path: path(i),
      ...(i % 2 === 0 && { roles: few(isChanged && i % 10 === 0 ? i + 1 : i) }),
    })),
    roles: Object.fromEntries(
      names.map((name, i) => [
        name,
        [...verbs.slice(0, 1 + (i % 7)), `POST ${path((i + (isChanged && i === 1 ? 1 : 0)) % routes)}`],
      ]),
    ),
    scopes: Object.fromEntries(scopeNames.map((name, i) => [name, i % 2 === 0 ? ['*'] : ['GET', 'HEAD']])),
  });
}

function measure(size: Size): { readonly seconds: number; readonly questions: number; readonly rows: number } {
  const [old, now] = [false, true]
    .map(isChanged => configOf(size, isChanged))
    .map(config => ({ config, written: { config } }));
  if (old === undefined || now === undefined) throw new Error('two configurations');
  let questions = 0;
  const start = performance.now();
  const { more, less, other } = compareConfigs([old, now], {
    onQuestions: asked => {
      questions = asked;
    },
  });
  return { seconds: (performance.now() - start) / 1000, questions, rows: more.length + less.length + other.length };
}

/** Requests a second that `test` decides under both configurations. */
async function naive(size: Size): Promise<number> {
  const cases = Array.from({ length: 500 }, (_, i) => ({
    name: String(i),
    claims: { uid: 'alice', app: 'web', acc: 'acme', role: `role-${i % size.roles}`, scope: 'scope-0' },
    request: { method: verbs[i % 7] ?? 'GET', path: `/v1/service-${i % size.routes}/acme/items/1`, headers: [] },
    expect: { reason: 'allowed' },
  }));
  const start = performance.now();
  for (const isChanged of [false, true])
    await runCases(
      { config: configOf(size, isChanged), revocations: undefined, proxy: {}, onWarning: () => undefined },
      cases,
      () => undefined,
    );
  return cases.length / ((performance.now() - start) / 1000);
}

const usual = { routes: 200, roles: 20, scopes: 10 };
for (const size of [
  usual,
  { ...usual, routes: 500 },
  { ...usual, routes: 1000 },
  { routes: 2000, roles: 200, scopes: 10 },
]) {
  const { seconds, questions, rows } = measure(size);
  const memory = Math.round(process.resourceUsage().maxRSS / 1024);
  console.log(
    `${size.routes} routes, ${size.roles} roles: ${seconds.toFixed(2)} s, ${questions} questions, ${rows} rows, ${memory} MB at most so far`,
  );
}
const { seconds, questions } = measure(usual);
// A question answers every pair of a role and a scope; a request of `test` has one of each.
const perSecond = (questions * usual.roles * usual.scopes) / seconds;
const perSecondNaively = await naive(usual);
console.log(
  `${Math.round(perSecond)} classes of requests and tokens a second, ${Math.round(perSecondNaively)} requests a second through test: ${Math.round(perSecond / perSecondNaively)} times`,
);
