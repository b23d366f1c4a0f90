// `npm run paths -- --paths N --seed S`: the comparison of targets, as long as wanted. Exits 1 on a difference.
import { parseArgs } from 'node:util';
import { comparePaths, layouts } from './path-comparison.ts';
import { startProductReader } from './product-reader.ts';

const { values } = parseArgs({
  options: {
    paths: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});
const seed = Number(values.seed);
const targets = Math.ceil(Number(values.paths) / layouts.length);
let found = 0;
for (const layout of layouts) {
  const started = performance.now();
  const product = await startProductReader(layout);
  const { differences, ...counts } = await comparePaths({ targets, seed, layout, allows: product.allows });
  await product.stop();
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  const words = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  console.log(`seed ${seed}, ${layout.name}: ${words.join(', ')}, differences ${differences.length}, ${seconds} s`);
  for (const difference of differences.slice(0, 10)) console.log(`  ${JSON.stringify(difference)}`);
  found += differences.length;
}
process.exit(found === 0 ? 0 : 1);
