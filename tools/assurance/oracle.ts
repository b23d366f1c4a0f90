// `npm run oracle -- --requests N --seed S [--configuration I]`: a comparison with the oracle of any length. Exits with 1 on a difference.
import { parseArgs } from 'node:util';
import { type Comparison, compare } from '../../test/assurance/oracle-comparison.ts';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    configuration: { type: 'string' },
  },
});
const seed = Number(values.seed);
const started = performance.now();
const comparison = await compare({
  requests: Number(values.requests),
  seed,
  ...(values.configuration === undefined ? {} : { configuration: Number(values.configuration) }),
  onProgress: done => process.stderr.write(done % 128_000 < 1280 ? `${done} requests\n` : ''),
});
print(comparison);
process.exit(comparison.differences.length === 0 ? 0 : 1);

function print({
  requests,
  configurations,
  counts,
  differences,
  allowedThoughChanged,
  nearlyGood,
  open,
}: Comparison): void {
  const share = (count: number): string =>
    `${String(count).padStart(9)}  ${((100 * count) / requests).toFixed(1).padStart(5)} %`;
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.log(`seed ${seed}: ${requests} requests in ${configurations} configurations, ${seconds} s`);
  for (const [reason, count] of [...counts].sort(([, one], [, other]) => other - one)) {
    console.log(`  ${reason.padEnd(34)}${share(count)}`);
  }
  console.log(`  ${'allowed though changed'.padEnd(34)}${share(allowedThoughChanged)}`);
  console.log(`  ${'at most one change to each part'.padEnd(34)}${share(nearlyGood)}`);
  console.log(`  ${'left open by the contract'.padEnd(34)}${share(open)}`);
  console.log(`${differences.length} differences`);
  for (const { configuration, request, changes, problems } of differences) {
    console.log(`  --seed ${seed} --configuration ${configuration}, request ${request}`);
    console.log(`    changed: ${changes.join('; ') || 'nothing'}`);
    console.log(`    ${problems.join('; ')}`);
  }
}
