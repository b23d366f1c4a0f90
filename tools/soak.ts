// `npm run soak -- --minutes 60`: a steady load of known, new and refused tokens on one core. Samples resident memory each second, and exits with 1 where it does not stay flat.
import { parseArgs } from 'node:util';
import { checkHeaders, load } from '../bench/load.ts';
import { checkCall, checkPath } from '../bench/requests.ts';
import { askCheck, startProduct, startWorkbench } from '../bench/workbench.ts';
import { megabytes } from '../lab/process-usage.ts';

/** Of the line through the memory, from the end of the warm-up to the last sample. */
const maxRiseMegabytes = 5;
/** In which the cache fills and code is compiled. */
const warmUpShare = 0.25;
const rotation = 10_000;
const newTokens = 12_000;

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, rate: { type: 'string', default: '400' } },
});
const [minutes, perSecond] = [Number(values.minutes), Number(values.rate)];
if (!(minutes > 0) || !(perSecond > 0)) throw new Error('npm run soak -- [--minutes 60] [--rate 400]');

process.setMaxListeners(0);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
// More new tokens than the cache holds, so that each is evicted before it comes again.
const bench = await startWorkbench({ rotation, newTokens, large: 0 });
const server = await startProduct(bench);
try {
  const { good, forged } = bench.tokens;
  const answers = await Promise.all([good[0], forged].map(token => askCheck(server.address, token)));
  const answerBytes = answers.map(({ framed }) => framed.length);
  // Eight in ten known, one new, one refused.
  const mixed = Array.from({ length: 10 * newTokens }, (_, call) => {
    const fresh = good[rotation + Math.floor(call / 10)];
    return checkCall((call % 10 === 0 ? fresh : call % 10 === 1 ? undefined : good[call % rotation]) ?? forged);
  });
  const callsFile = await bench.file('mixed.bin', Buffer.concat(mixed));
  const run = { path: checkPath, headers: checkHeaders, callsFile, pids: [server.pid], answerBytes, warmSeconds: 0 };
  // Full load first: memory then reaches its level in seconds instead of minutes.
  await load(server.address, { ...run, seconds: 4 });
  const samples: (readonly [seconds: number, megabytes: number])[] = [];
  const started = performance.now();
  const timer = setInterval(() => {
    samples.push([(performance.now() - started) / 1000, megabytes(server.pid, 'VmRSS')]);
  }, 1000);
  const seconds = minutes * 60;
  const figures = await load(server.address, { ...run, seconds, perSecond });
  clearInterval(timer);
  const steady = samples.filter(([at]) => at >= seconds * warmUpShare);
  const rise = slopeOf(steady) * seconds * (1 - warmUpShare);
  const sizes = samples.map(([, size]) => size);
  const isFlat = rise <= maxRiseMegabytes;
  console.log(
    `${isFlat ? 'flat' : 'NOT FLAT'}: ${Math.round(figures.perSecond * seconds)} calls in ${seconds} s, each answered rightly; resident ${Math.min(...sizes).toFixed(0)} to ${Math.max(...sizes).toFixed(0)} MB; after the warm-up ${rise.toFixed(1)} MB along the line, at most ${maxRiseMegabytes}`,
  );
  process.exitCode = isFlat ? 0 : 1;
} finally {
  await server.stop();
  await bench.stop();
}

/** Of the regression line (least squares), per second. */
function slopeOf(samples: readonly (readonly [at: number, value: number])[]): number {
  const mean = (of: (sample: readonly [number, number]) => number): number =>
    samples.reduce((sum, each) => sum + of(each), 0) / samples.length;
  const [meanAt, meanValue] = [mean(([at]) => at), mean(([, value]) => value)];
  return mean(([at, value]) => (at - meanAt) * (value - meanValue)) / mean(([at]) => (at - meanAt) ** 2);
}
