import { expect } from 'chai';
import { inTurn } from '../../../bench/speed/rounds.ts';

describe('rounds in turn', () => {
  it('take every item once a round, in the same order', async () => {
    const order: string[] = [];
    const items = [{ name: 'a' }, { name: 'b' }];
    const values = await inTurn(2, items, async ({ name }, round) => {
      order.push(name);
      return `${name}${round}`;
    });
    expect(order).to.deep.equal(['a', 'b', 'a', 'b']);
    expect(values).to.deep.equal({ a: ['a0', 'a1'], b: ['b0', 'b1'] });
  });
});
