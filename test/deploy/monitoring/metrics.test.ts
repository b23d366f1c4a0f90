// The page of metrics conforms to what promtool checks.
import { expect } from 'chai';
import { runProgram } from '../../../lab/programs.ts';
import { startServiceLab } from '../../../lab/service.ts';

const check = ['check', 'metrics'];

describe('metrics', () => {
  it('pass promtool check metrics on a live service', async () => {
    const lab = await startServiceLab();
    try {
      await lab.check(`Bearer ${await lab.token()}`);
      expect(await runProgram('promtool', check, await (await lab.admin('/metrics')).text())).to.deep.equal({
        good: true,
        output: '',
      });
    } finally {
      await lab.stop();
    }
  });

  it('are linted by a promtool that detects a planted mistake', async () => {
    const { good, output } = await runProgram('promtool', check, '# TYPE a_total gauge\na_total 1\n');
    expect(good).to.equal(false);
    expect(output).to.contain('_total');
  });
});
