// Scenario `memory`: the peak memory of account-authz under load with one known token, and with 10,000 of them.
import { peakResidentMegabytes } from '../measure/resident-memory.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { measureCalls } from './loops.ts';
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
