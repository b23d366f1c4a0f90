// Measures a match and a whole decision with few and with many routes, in turn in one process, so that only the routes differ.
// Arguments: the number of rounds and the numbers of routes. Prints the rounds as JSON.
import { compileRoutes, matchRoutes } from '../../src/authz/route-tree.ts';
import { authorizationService } from '../../src/envoy/proto-files.ts';
import { createQuietCheck } from '../../test/assurance/cost/quiet-check.ts';
import { createParts } from '../../test/assurance/fuzz/targets.ts';
import { checkRequest } from '../../test/support/check-request.ts';
import { token } from '../../test/support/token.ts';
import type { RouteRound } from './results.ts';
import { spreadOf } from './rounds.ts';

const batchCount = 40;
const batchSize = 200;
const depth = 20;

/** Each ten routes are a resource, eight parts of it with an account, and one deep path. */
function routesOf(count: number): readonly { readonly path: string }[] {
  return Array.from({ length: count }, (_, i) => {
    const resource = `/api/resource-${i - (i % 10)}`;
    if (i % 10 === 0) return { path: `${resource}/*` };
    if (i % 10 === 9) return { path: `${resource}${'/level'.repeat(depth)}/:account_id` };
    return { path: `${resource}/part-${i % 10}/:account_id/*` };
  });
}

/** Matches two routes. */
function pathAt(count: number, i: number): string {
  return `/api/resource-${count - 10}/part-${1 + (i % 8)}/acct1/invoices`;
}

const [rounds = 1, ...counts] = process.argv.slice(2).map(Number);
const authorization = `Bearer ${await token()}`;
const subjects = await Promise.all(
  counts.map(async count => {
    const routes = routesOf(count);
    const check = createQuietCheck((await createParts({ settings: { routes } })).engine);
    const messages = Array.from({ length: batchSize }, (_, i) => messageOf(pathAt(count, i)));
    return { count, tree: compileRoutes(routes), check, messages };
  }),
);
type Subject = (typeof subjects)[number];

function messageOf(path: string): Buffer {
  return Buffer.from(authorizationService.Check.requestSerialize(checkRequest({ path, headers: { authorization } })));
}

/** Segments are new strings in each batch, as in a request. */
function matchNanoseconds({ count, tree }: Subject): number {
  return medianNanoseconds(batch => {
    const all = Array.from({ length: batchSize }, (_, i) =>
      Buffer.from(pathAt(count, batch * batchSize + i))
        .toString('latin1')
        .slice(1)
        .split('/'),
    );
    return () => {
      for (const segments of all)
        if (matchRoutes(tree, { segments, decoded: undefined }).kind !== 'match')
          throw new Error('a path without a route');
    };
  });
}

/** From the bytes of a CheckRequest to the bytes of its answer, with log line and metrics. */
async function decisionNanoseconds({ check, messages }: Subject): Promise<number> {
  // Verifies the token, which is in the cache afterwards.
  for (const message of messages) await check(message);
  return medianNanoseconds(() => () => {
    for (const message of messages) if (!Buffer.isBuffer(check(message))) throw new Error('the token is not known');
  });
}

/** Per item, in the median batch, because garbage collection interrupts some batches. */
function medianNanoseconds(prepare: (batch: number) => () => void): number {
  const batches = Array.from({ length: batchCount }, (_, batch) => {
    const run = prepare(batch);
    const startMs = performance.now();
    run();
    return performance.now() - startMs;
  });
  return (spreadOf(batches).median * 1e6) / batchSize;
}

async function measure(subject: Subject): Promise<RouteRound> {
  return {
    matchNanoseconds: matchNanoseconds(subject),
    decisionMicroseconds: (await decisionNanoseconds(subject)) / 1e3,
  };
}

const results: Record<string, RouteRound[]> = Object.fromEntries(counts.map(count => [count, []]));
// Two warm-up rounds, for the JIT compiler.
for (let round = -2; round < rounds; round += 1) {
  for (const subject of subjects) {
    const figures = await measure(subject);
    if (round >= 0) results[subject.count]?.push(figures);
  }
}
process.stdout.write(JSON.stringify(results));
