// A campaign in a worker thread: the current input is in shared memory, so that an input that hangs or kills the thread is known.
import { parentPort, workerData } from 'node:worker_threads';
import { keepInput, loadCorpus } from '../../test/assurance/fuzz/corpus.ts';
import { createTargets } from '../../test/assurance/fuzz/targets.ts';
import { type CampaignReport, startCampaign } from './fuzz-campaign.ts';

export interface FuzzOrder {
  readonly target: string;
  readonly seed: number;
  readonly milliseconds: number;
  /** Whether inputs with new coverage are written to the corpus. */
  readonly keep: boolean;
  /** Two integers, the number of runs and the length of the input, then the input. */
  readonly shared: SharedArrayBuffer;
}

export type FuzzNews =
  | { readonly kind: 'progress'; readonly report: CampaignReport }
  | { readonly kind: 'broken'; readonly problem: string; readonly file: string }
  | { readonly kind: 'done' };

const reportEveryMs = 5000;

async function work({ target: name, seed, milliseconds, keep, shared }: FuzzOrder): Promise<void> {
  const target = (await createTargets()).find(each => each.name === name);
  if (target === undefined) throw new Error(`no target ${name}`);
  const tell = (news: FuzzNews): void => parentPort?.postMessage(news);
  const [counter, current] = [new Int32Array(shared, 0, 2), Buffer.from(shared, 8)];
  const campaign = startCampaign(target, {
    seed,
    kept: loadCorpus(target).map(({ input }) => input),
    events: {
      onRun(input) {
        const length = input.copy(current);
        Atomics.store(counter, 1, length);
        Atomics.add(counter, 0, 1);
      },
      onNew(input) {
        if (keep) keepInput(target, 'new', input);
      },
      onBroken: (input, problem) => tell({ kind: 'broken', problem, file: keepInput(target, 'broken', input) }),
    },
  });
  for (let left = milliseconds; left > 0; left -= reportEveryMs) {
    tell({ kind: 'progress', report: await campaign.advance(Math.min(left, reportEveryMs)) });
  }
  campaign.stop();
  tell({ kind: 'done' });
}

await work(workerData as FuzzOrder);
