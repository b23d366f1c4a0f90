// `npm run fuzz -- --minutes N [--target T] [--seed S] [--keep]`: the long form of fuzzing, guided by coverage. Exits with 1 on a
// failure; failing inputs are kept in test/assurance/fuzz/corpus/, which the tests run from then on.
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { keepInput } from '../../test/assurance/fuzz/corpus.ts';
import { targetNames } from '../../test/assurance/fuzz/target.ts';
import { createTargets } from '../../test/assurance/fuzz/targets.ts';
import type { FuzzNews, FuzzOrder } from './fuzz-worker.ts';

/** A run takes some milliseconds at most; a thread without progress for this long hangs, even on a loaded machine. */
const hangMs = 20_000;
const maxInputBytes = 64 * 1024;

// Worker threads of Node 20 do not inherit the TypeScript loader.
const workerEntry = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))};
    register();
    await import(${JSON.stringify(import.meta.resolve('./fuzz-worker.ts'))});
  `)}`,
);

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    target: { type: 'string' },
    seed: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
});
const names = values.target === undefined ? targetNames : targetNames.filter(name => name === values.target);
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? randomInt(2 ** 31));
if (names.length === 0 || !(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error(`usage: npm run fuzz -- --minutes N [--target ${targetNames.join('|')}] [--seed S] [--keep]`);
  process.exit(2);
}

console.log(`seed ${seed}, ${minutes} minutes for ${names.join(', ')}`);
let broken = 0;
for (const name of names) broken += await fuzz(name, (minutes * 60_000) / names.length);
console.log(broken === 0 ? 'nothing broke' : `${broken} inputs broke something`);
process.exitCode = broken === 0 ? 0 : 1;

/** The number of failing inputs. */
function fuzz(target: string, milliseconds: number): Promise<number> {
  const shared = new SharedArrayBuffer(8 + maxInputBytes);
  const counter = new Int32Array(shared, 0, 2);
  const order: FuzzOrder = { target, seed, milliseconds, keep: values.keep, shared };
  const worker = new Worker(workerEntry, { workerData: order });
  let found = 0;

  async function keepCurrent(word: string): Promise<void> {
    found += 1;
    const input = Buffer.from(Buffer.from(shared, 8, Atomics.load(counter, 1)));
    const kept = (await createTargets()).find(({ name }) => name === target);
    // From another run with other keys: the token in it does not verify and stays as it is.
    console.log(`${target}: ${word}, ${kept === undefined ? '' : keepInput(kept, word, input)}`);
  }

  return new Promise(resolve => {
    let seen = -1;
    const watch = setInterval(async () => {
      const runs = Atomics.load(counter, 0);
      if (runs === seen && runs > 0) {
        clearInterval(watch);
        await worker.terminate();
        await keepCurrent('hang');
        resolve(found);
      }
      seen = runs;
    }, hangMs);
    const end = (): void => {
      clearInterval(watch);
      resolve(found);
    };
    worker.on('message', (news: FuzzNews) => {
      switch (news.kind) {
        case 'progress': {
          const { runs, corpus, reached, outcomes } = news.report;
          const kinds = [...outcomes].map(([outcome, count]) => `${outcome} ${count}`).join(', ');
          console.log(`${target}: ${runs} runs, corpus ${corpus}, ${reached} blocks and outcomes; ${kinds}`);
          return;
        }
        case 'broken':
          found += 1;
          console.log(`${target}: BROKEN, ${news.problem}, ${news.file}`);
          return;
        case 'done':
          end();
      }
    });
    worker.on('error', async error => {
      console.log(`${target}: ${error.name}: ${error.message}`);
      await keepCurrent('killed');
      end();
    });
  });
}
