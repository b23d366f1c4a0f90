// The short form of fuzzing: the whole corpus, and some thousand new inputs of this run's seed. The long form is
// `npm run fuzz`.
import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { loadCorpus } from './corpus.ts';
import { createRandom, mutate, pick } from './mutator.ts';
import { type FuzzTarget, targetNames } from './target.ts';
import { createTargets } from './targets.ts';

const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

describe(`fuzzing with FUZZ_SEED=${seed}`, () => {
  let targets: readonly FuzzTarget[];
  before(async () => {
    targets = await createTargets();
  });

  async function broken(target: FuzzTarget, inputs: Iterable<Buffer>): Promise<string[]> {
    const found: string[] = [];
    for (const input of inputs) {
      await target
        .run(input)
        .catch((error: unknown) => found.push(`${error}: ${target.toFile(input).toString('hex')}`));
    }
    return found;
  }

  for (const name of targetNames) {
    const theTarget = (): FuzzTarget => {
      const target = targets.find(each => each.name === name);
      if (target === undefined) throw new Error(`no target ${name}`);
      return target;
    };

    it(`${name}: keeps its invariants for the seeds and the corpus`, async () => {
      const target = theTarget();
      const kept = loadCorpus(target).map(({ input }) => input);
      expect(await broken(target, [...target.seeds, ...kept])).to.deep.equal([]);
    });

    it(`${name}: keeps its invariants for new inputs`, async () => {
      const target = theTarget();
      const corpus = [...target.seeds, ...loadCorpus(target).map(({ input }) => input)];
      const random = createRandom(seed);
      const material = { ...target, corpus };
      const inputs = Array.from({ length: target.shortRuns }, () => mutate(pick(corpus, random), random, material));
      expect(await broken(target, inputs)).to.deep.equal([]);
    });

    it(`${name}: accepts the valid seed`, async () => {
      const target = theTarget();
      const taken = ['allowed', 'verified', 'several accounts', 'keys', 'an address', 'config'];
      expect(taken).to.include(await target.run(target.seeds[0] ?? Buffer.alloc(0)));
    });
  }
});
