import { expect } from 'chai';
import { createTurns } from '../../src/token/turns.ts';

/** Tasks that end when they are told to, and what has begun so far. */
function createTasks() {
  const begun: number[] = [];
  const settle = new Map<number, { resolve(value: number): void; reject(error: unknown): void }>();
  const task = (number: number) => () => {
    begun.push(number);
    return new Promise<number>((resolve, reject) => settle.set(number, { resolve, reject }));
  };
  return { begun, task, end: (number: number) => settle.get(number)?.resolve(number), fail: settle };
}

describe('turns', () => {
  it('begin so many tasks at once, and the next one when one has ended, in order', async () => {
    const turns = createTurns({ atOnce: 2, maxWaiting: 10 });
    const { begun, task, end } = createTasks();
    const results = [1, 2, 3, 4].map(number => turns.take(task(number)));
    expect(begun).to.deep.equal([1, 2]);
    end(2);
    expect(await results[1]).to.equal(2);
    expect(begun).to.deep.equal([1, 2, 3]);
    end(1);
    await results[0];
    end(3);
    expect(await results[2]).to.equal(3);
    end(4);
    expect(await results[3]).to.equal(4);
  });

  it('give the turn on when a task fails, and tell the failure', async () => {
    const turns = createTurns({ atOnce: 1, maxWaiting: 10 });
    const { begun, task, end, fail } = createTasks();
    const first = turns.take(task(1));
    const second = turns.take(task(2));
    const fault = new Error('a fault');
    fail.get(1)?.reject(fault);
    const told = await first?.catch(error => error);
    expect(told).to.equal(fault);
    expect(begun).to.deep.equal([1, 2]);
    end(2);
    expect(await second).to.equal(2);
  });

  it('refuse a task where too many wait, without beginning it', async () => {
    const turns = createTurns({ atOnce: 1, maxWaiting: 1 });
    const { begun, task, end } = createTasks();
    const first = turns.take(task(1));
    const second = turns.take(task(2));
    expect(turns.take(task(3))).to.equal(undefined);
    end(1);
    await first;
    expect(begun).to.deep.equal([1, 2]);
    end(2);
    await second;
    expect(turns.take(task(4))).to.be.a('promise');
  });
});
