// The unit of cost: the processor time of an allowed request with a new token, as in a client's first request.

import { checkRequest } from '../../../lab/check-request.ts';
import { token } from '../../../lab/token.ts';
import { authorizationService } from '../../../src/envoy/proto-files.ts';
import type { QuietCheck } from './quiet-check.ts';

const batches = 12;
const batchSize = 20;

export async function allowedRequestMicroseconds(check: QuietCheck): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < batches; batch += 1) {
    const messages = await Promise.all(Array.from({ length: batchSize }, freshRequest));
    const before = process.cpuUsage();
    const results: (Buffer | 'unreadable')[] = [];
    for (const message of messages) results.push(await check(message));
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / batchSize);
    for (const result of results) {
      const answer = result === 'unreadable' ? undefined : authorizationService.Check.responseDeserialize(result);
      if (answer?.status.code !== 0) throw new Error('the request of the unit is not allowed');
    }
  }
  return least;
}

async function freshRequest(): Promise<Buffer> {
  const headers = { authorization: `Bearer ${await token()}` };
  return Buffer.from(authorizationService.Check.requestSerialize(checkRequest({ headers })));
}
