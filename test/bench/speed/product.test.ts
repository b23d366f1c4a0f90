import { expect } from 'chai';
import { metric } from '../../../bench/speed/product.ts';

describe('a metric read off the page', () => {
  const page = [
    '# HELP a_total x',
    'a_total{result="hit"} 3',
    'a_total{result="miss",x="1"} 4',
    'ab_total 9',
    'b 2.5',
  ].join('\n');

  it('is the sum of its series with a label', () => {
    expect(metric(page, 'a_total', 'result="hit"')).to.equal(3);
    expect(metric(page, 'a_total')).to.equal(7);
  });

  it('may have no labels', () => {
    expect(metric(page, 'b')).to.equal(2.5);
  });

  it('is 0 where there is none', () => {
    expect(metric(page, 'c')).to.equal(0);
  });
});
