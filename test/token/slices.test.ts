import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { createSlices } from '../../src/token/slices.ts';
import { oldGenerationGrowth } from '../support/garbage.ts';

/** Tasks of one millisecond each, and which of them have run. */
function lab(options: { sliceMilliseconds: number; maxWaiting: number }) {
  let milliseconds = 0;
  const ran: number[] = [];
  const slices = createSlices({ ...options, now: () => milliseconds });
  const run = (number: number, outcome = () => number): number | Promise<number> | undefined =>
    slices.run(() => {
      ran.push(number);
      milliseconds += 1;
      return outcome();
    });
  return { run, ran };
}

describe('slices', () => {
  it('run tasks at once until the slice of a turn is used up, and the others in the next turns, in order', async () => {
    const { run, ran } = lab({ sliceMilliseconds: 2, maxWaiting: 10 });
    const results = [1, 2, 3, 4, 5].map(number => run(number));
    expect(results.slice(0, 2)).to.deep.equal([1, 2]);
    expect(ran).to.deep.equal([1, 2]);
    await turn();
    expect(ran).to.deep.equal([1, 2, 3, 4]);
    await turn();
    expect(ran).to.deep.equal([1, 2, 3, 4, 5]);
    expect(await Promise.all(results)).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it('run a task at once again in the next turn', async () => {
    const { run } = lab({ sliceMilliseconds: 1, maxWaiting: 10 });
    expect(run(1)).to.equal(1);
    await turn();
    expect(run(2)).to.equal(2);
  });

  it('let no task pass those that wait', async () => {
    const { run, ran } = lab({ sliceMilliseconds: 1, maxWaiting: 10 });
    const waiting = [1, 2, 3].map(number => run(number));
    await turn();
    const late = run(4);
    expect(late).to.be.a('promise');
    expect(await Promise.all([...waiting, late])).to.deep.equal([1, 2, 3, 4]);
    expect(ran).to.deep.equal([1, 2, 3, 4]);
  });

  it('run one task a turn where a task is longer than the slice', async () => {
    const { run, ran } = lab({ sliceMilliseconds: 0, maxWaiting: 10 });
    const results = [run(1), run(2)];
    expect(ran).to.deep.equal([]);
    await turn();
    expect(ran).to.deep.equal([1]);
    expect(await Promise.all(results)).to.deep.equal([1, 2]);
  });

  it('refuse a task where too many wait, without beginning it', async () => {
    const { run, ran } = lab({ sliceMilliseconds: 1, maxWaiting: 1 });
    run(1);
    const second = run(2);
    expect(run(3)).to.equal(undefined);
    expect(await second).to.equal(2);
    expect(ran).to.deep.equal([1, 2]);
    await turn();
    expect(run(4)).to.equal(4);
  });

  it('tell the failure of a task, at once or after its wait, and go on', async () => {
    const { run } = lab({ sliceMilliseconds: 1, maxWaiting: 10 });
    const fault = new Error('a fault');
    const fail = () => {
      throw fault;
    };
    expect(() => run(1, fail)).to.throw(fault);
    const second = run(2, fail);
    const third = run(3);
    expect(await Promise.resolve(second).catch(error => error)).to.equal(fault);
    expect(await third).to.equal(3);
  });

  it('leave nothing of those that waited to the old generation', async () => {
    const { run } = lab({ sliceMilliseconds: 1, maxWaiting: 1000 });
    const bytes = await oldGenerationGrowth(100, () => {
      const tasks = Array.from({ length: 200 }, () => {
        const kilobytes = new Array(1000).fill(0);
        return run(1, () => kilobytes.length);
      });
      return Promise.all(tasks);
    });
    expect(bytes).to.be.below(5_000_000);
  });
});
