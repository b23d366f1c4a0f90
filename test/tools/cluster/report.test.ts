// The table of a cluster run: what counts as lost, and how a row and the page show it.
import { expect } from 'chai';
import { lineOf, lostText, pageWith, type Row, sectionOf } from '../../../tools/cluster/report.ts';

const window = {
  requests: 700,
  lost: { '0 in the place of 200': 1, '503 in the place of 200': 12 },
  longestGapSeconds: 0.25,
};
const row: Row = {
  deployment: 'service',
  what: 'SIGKILL | twice',
  expected: 'nothing lost',
  measured: 'away for 3.0 s',
  isGood: false,
  window,
};

describe('the report of a cluster run', () => {
  it('counts lost requests by what came, the most frequent first', () => {
    expect(lostText(window)).to.equal('13: 12 × 503 in the place of 200, 1 × 0 in the place of 200');
    expect(lostText({ ...window, lost: {} })).to.equal('0');
  });

  it('has a line for each row', () => {
    expect(lineOf(row)).to.match(/^FAIL {2}SIGKILL \| twice: away for 3\.0 s; 700 requests, lost 13: .* \(expected: /);
    const { window: _, ...quiet } = { ...row, measured: '', isGood: true };
    expect(lineOf(quiet)).to.equal('ok    SIGKILL | twice:  (expected: nothing lost)');
  });

  const surroundings = { commit: 'abc', date: '2026-11-24', kubernetes: 'v1', nodes: 'one node' };

  it('has a section for each deployment, with the number of rows as expected', () => {
    const section = sectionOf([row, { ...row, isGood: true }], surroundings);
    expect(section).to.contain('one node: 1 of 2 rows as expected, 1400 requests.');
    expect(section).to.contain('| SIGKILL \\| twice | nothing lost | away for 3.0 s | 700 | 13: 12 × 503');
  });

  it('replaces the sections of a run and keeps the others, in the order of the deployments', () => {
    const order = ['quickstart', 'service'];
    const first = pageWith('', new Map([['service', 'old']]), order);
    const second = pageWith(first, new Map([['quickstart', 'new']]), order);
    expect(second).to.match(/^# On a real cluster\n[^#]+\n## quickstart\n\nnew\n\n## service\n\nold\n$/);
    expect(pageWith(second, new Map([['service', 'newer']]), order)).to.equal(second.replace('old', 'newer'));
  });
});
