// The garbage collector of V8, and what its old generation takes, for tests of what must not stay.
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
/** Of both generations, or of the young one alone. */
export const collectGarbage: (options?: { readonly type: 'minor' }) => void = runInNewContext('gc');

/**
 * Bytes by which it grows over the rounds, the young generation being collected after each; a first round is not counted. The least of
 * three times: a major collection that is under way, in a process that runs other tests too, moves there what does not stay.
 */
export async function oldGenerationGrowth(rounds: number, act: () => Promise<unknown>): Promise<number> {
  await act();
  let least = Infinity;
  for (let time = 0; time < 3; time += 1) least = Math.min(least, await growthOnce(rounds, act));
  return least;
}

async function growthOnce(rounds: number, act: () => Promise<unknown>): Promise<number> {
  collectGarbage();
  const before = oldGenerationBytes();
  for (let round = 0; round < rounds; round += 1) {
    await act();
    collectGarbage({ type: 'minor' });
    collectGarbage({ type: 'minor' });
  }
  return oldGenerationBytes() - before;
}

function oldGenerationBytes(): number {
  return getHeapSpaceStatistics()
    .filter(({ space_name }) => !space_name.startsWith('new_'))
    .reduce((sum, { space_used_size }) => sum + space_used_size, 0);
}
