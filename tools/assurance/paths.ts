// `npm run paths -- --paths N --routers N --envoy N --seed S`: a comparison of targets of any length. Exits with 1 on a difference.
import { parseArgs } from 'node:util';
import { defaultEnvoyVersion } from '../../lab/envoy.ts';
import { createRandom } from '../../test/assurance/generator/random.ts';
import { comparePathsThroughEnvoy } from '../../test/assurance/paths/envoy-comparison.ts';
import { comparePaths, generateTargetOf, layouts, wideLayout } from '../../test/assurance/paths/path-comparison.ts';
import { startProductReader } from '../../test/assurance/paths/product-reader.ts';
import { mostSpecificFirst } from '../../test/assurance/paths/upstreams.ts';
import { foreignParsers } from './foreign-parsers.ts';

const { values } = parseArgs({
  options: {
    paths: { type: 'string', default: '1000000' },
    /** The number of targets for the routers of Python, Go and Java. */
    routers: { type: 'string', default: '100000' },
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
found += await compareRouters();

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

/** Routers in other languages, about files with any name. Returns the number of differences. */
async function compareRouters(): Promise<number> {
  const generated = Array.from({ length: Number(values.routers) }, (_, i) =>
    generateTargetOf(wideLayout, createRandom(seed, i)),
  );
  const product = await startProductReader(wideLayout);
  const allowed: boolean[] = [];
  for (const { text, account } of generated) allowed.push(await product.allows(text, account));
  await product.stop();
  console.log(`${'router'.padEnd(42)}${['targets', 'other', 'refused'].map(each => each.padStart(9)).join('')}`);
  let differences = 0;
  for (const { language, read } of foreignParsers) {
    const layout = {
      kind: 'paths',
      templates: mostSpecificFirst(wideLayout.templates),
      narrowed: wideLayout.narrowed ?? [],
    } as const;
    const readings = await read(
      generated.map(({ text }) => text),
      layout,
    );
    if (readings === undefined) console.log(`${language} is left out: this machine does not have it`);
    for (const [router, served] of readings ?? []) {
      // Served for another account than the token's, or by a route that the token may not use.
      const others = generated.flatMap(({ text, account }, i) =>
        served[i]?.some(each => each !== account) ? [{ router, target: text, account, served: served[i], i }] : [],
      );
      const missed = others.filter(({ i }) => allowed[i]);
      const counts = [generated.length, others.length, others.length - missed.length];
      console.log(router.padEnd(42) + counts.map(each => String(each).padStart(9)).join(''));
      for (const difference of missed.slice(0, 10)) console.log(`  ${JSON.stringify(difference)}`);
      differences += missed.length;
    }
  }
  console.log(
    `${allowed.filter(each => each).length} of ${generated.length} targets allowed, ${differences} differences`,
  );
  return differences;
}
