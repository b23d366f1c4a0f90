// Processor time of checks. The unit is an allowed request with a new token, as in a client's first request.
import { checkRequest } from '../../../lab/check-request.ts';
import { token } from '../../../lab/token.ts';
import { authorizationService } from '../../../src/envoy/protocol.ts';
import { statusOf, type WholeCheck } from '../../support/whole-check.ts';

/** The most that one request may cost, in allowed requests with a new token: docs/dev/performance.md. */
export const maxMultiple = 50;

export async function allowedRequestMicroseconds(check: WholeCheck): Promise<number> {
  const batchSize = 20;
  let least = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < 12; batch += 1) {
    const messages = await Promise.all(Array.from({ length: batchSize }, newRequest));
    const before = process.cpuUsage();
    const results: (Buffer | 'unreadable')[] = [];
    for (const message of messages) results.push(await check(message));
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / batchSize);
    if (results.some(each => statusOf(each) !== 0)) throw new Error('the request of the unit is not allowed');
  }
  return least;
}

async function newRequest(): Promise<Buffer> {
  const headers = { authorization: `Bearer ${await token()}` };
  return Buffer.from(authorizationService.Check.requestSerialize(checkRequest({ headers })));
}

/**
 * Of one run each, from the operating system: other processes do not add to it, and the minimum of several runs excludes garbage collection and
 * JIT compilation. The runs take turns, so that all meet the same machine.
 */
export async function microsecondsOf(runs: readonly (() => unknown)[], attempts: number): Promise<readonly number[]> {
  const measured = runs.map(run => ({ run, least: Number.POSITIVE_INFINITY, times: 1 }));
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    for (const each of measured) {
      const before = process.cpuUsage();
      for (let i = 0; i < each.times; i += 1) {
        const result = each.run();
        if (result instanceof Promise) await result;
      }
      const { user, system } = process.cpuUsage(before);
      each.least = Math.min(each.least, Math.max((user + system) / each.times, 0.01));
      each.times = Math.min(Math.max(Math.round(200 / each.least), 1), 1000);
    }
  }
  return measured.map(({ least }) => least);
}
