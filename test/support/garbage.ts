// The garbage collector of V8, and what its old generation takes, for tests of what must not stay.
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
// As the product runs (src/operations/v8-flags.ts): one round that meets a collection in its middle would have V8 create the objects of
// all others in the old generation.
setFlagsFromString('--no-allocation-site-pretenuring');
/** Of both generations, or of the young one alone. */
export const collectGarbage: (options?: { readonly type: 'minor' }) => void = runInNewContext('gc');

/**
 * Bytes by which it grows over the rounds, the young generation being collected after each; a first round is not counted. A round has to
 * make less than the young generation holds (.mocharc.yaml), or what waits in the middle of it goes to the old one for good.
 */
export async function oldGenerationGrowth(rounds: number, act: () => Promise<unknown>): Promise<number> {
  await act();
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
