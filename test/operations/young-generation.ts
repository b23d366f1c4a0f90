// A process of its own for v8-flags.test.ts: tells the sizes that its young generation takes one after the other, in bytes.
import '../../src/operations/v8-flags.ts';
import { getHeapSpaceStatistics } from 'node:v8';

const sizes: (number | undefined)[] = [];
const kept: object[] = [];
for (let i = 0; i < 400_000; i += 1) {
  kept.push({ i });
  if (kept.length > 60_000) kept.length = 0;
  if (i % 500 > 0) continue;
  const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size;
  if (size !== sizes.at(-1)) sizes.push(size);
}
process.stdout.write(JSON.stringify(sizes));
