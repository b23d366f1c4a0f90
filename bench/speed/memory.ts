// Scenario `memory`: the peak memory of account-authz under load with one known token, and with 10,000 of them; and what a sidecar keeps.
import { anonymousMegabytes, peakResidentMegabytes } from '../measure/resident-memory.ts';
import type { Contender } from './contender.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { measureCalls, measureLatency } from './loops.ts';
import { startProduct } from './product.ts';
import { knownToken, rotationTokens } from './request-sets.ts';
import { checkCall } from './requests.ts';

export async function measureMemory(lab: BenchLab, form: BenchForm, set: 'known' | 'rotation'): Promise<number> {
  const { connections, inFlight, memoryMs: measureMs } = form;
  const product = await startProduct(lab, checkCall(await knownToken(lab.tokens)));
  try {
    // At least for that long, and until each token of the set was used.
    for (let calls = 0; calls < 2 * rotationTokens; ) {
      const round = await measureCalls(lab, product, set, { connections, inFlight, warmMs: 0, measureMs });
      calls += (round.perSecond * measureMs) / 1000;
    }
    return peakResidentMegabytes(product.pid) ?? NaN;
  } finally {
    await product.stop();
  }
}

/** A sidecar's rate, calls a second. */
const sidecarPerSecond = 200;

/** Anonymous memory of a new process after some seconds at the rate of a sidecar. */
export async function measureSidecar(lab: BenchLab, form: BenchForm, contender: Contender): Promise<number> {
  const server = await contender.start();
  try {
    const lanes = [{ set: contender.set, perSecond: sidecarPerSecond }];
    await measureLatency(lab, server, lanes, { connections: 1, warmMs: 0, measureMs: form.sidecarMs });
    return anonymousMegabytes(server.pid) ?? NaN;
  } finally {
    await server.stop();
  }
}
