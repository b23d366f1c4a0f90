// The CPU time of a process from its line in /proc.
import { expect } from 'chai';
import { parseCpu } from '../../../bench/measure/process-cpu.ts';

describe('the CPU time of a process', () => {
  it('is the sum of its user time and its system time', () => {
    const stat = `77 (node) S 1 77 77 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 11 0 1 2 3`;
    expect(parseCpu(stat)).to.equal(3_000_000);
  });

  it('is found after a process name with spaces and parentheses', () => {
    expect(parseCpu('77 (a) b (c d) S 1 77 77 0 -1 0 0 0 0 0 1 2 0 0')).to.equal(30_000);
  });
});
