// `npm run paths -- --paths N --envoy N --seed S`: a comparison of targets of any length. Exits with 1 on a difference.
import { parseArgs } from 'node:util';
import { defaultEnvoyVersion } from '../../support/envoy.ts';
import { comparePathsThroughEnvoy } from './envoy-comparison.ts';
import { comparePaths, layouts } from './path-comparison.ts';
import { startProductReader } from './product-reader.ts';

const { values } = parseArgs({
  options: {
    paths: { type: 'string', default: '1000000' },
    /** The number of targets through Envoy. */
    envoy: { type: 'string', default: '10000' },
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
const behindEnvoy = layouts.slice(0, 2);
for (const layout of behindEnvoy) {
  const share = Math.ceil(Number(values.envoy) / behindEnvoy.length);
  if (share === 0) break;
  const http2Targets = Math.ceil(share / 8);
  const options = { seed, layout, targets: share - http2Targets, http2Targets, version: defaultEnvoyVersion };
  const { differences, ...counts } = await comparePathsThroughEnvoy(options);
  const words = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  console.log(`seed ${seed}, ${layout.name}, through Envoy: ${words.join(', ')}, differences ${differences.length}`);
  for (const difference of differences.slice(0, 10)) console.log(`  ${JSON.stringify(difference)}`);
  found += differences.length;
}
process.exit(found === 0 ? 0 : 1);
