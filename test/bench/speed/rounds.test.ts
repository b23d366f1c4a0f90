import { expect } from 'chai';
import { inTurn, persistently } from '../../../bench/speed/rounds.ts';

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

describe('a turn that may fail', () => {
  async function taken(failures: number): Promise<unknown> {
    const seen: unknown[] = [];
    let left = failures;
    const turn = async (): Promise<string> => {
      left -= 1;
      if (left >= 0) throw new Error(`failure ${left}`);
      return 'taken';
    };
    const ended = await persistently(turn, error => seen.push(String(error))).catch(error => `ended by ${error}`);
    return { ended, seen };
  }

  it('is taken again, twice at most', async () => {
    expect(await taken(0)).to.deep.equal({ ended: 'taken', seen: [] });
    expect(await taken(2)).to.deep.equal({ ended: 'taken', seen: ['Error: failure 1', 'Error: failure 0'] });
    expect(await taken(3)).to.deep.equal({
      ended: 'ended by Error: failure 0',
      seen: ['Error: failure 2', 'Error: failure 1'],
    });
  });
});
