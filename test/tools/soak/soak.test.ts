// A short run of the soak as a command: every answer is right, and the verdict and the exit code follow from the rise that it prints.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { builtFile } from '../../../lab/built.ts';
import { programArguments } from '../../../lab/compiled.ts';
import { secrets } from '../../../lab/secrets.ts';
import { maxRiseMegabytes } from '../../../tools/soak/verdict.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));

describe('a short run of the soak', () => {
  before(() => {
    builtFile('main.js');
  });

  it('gets the expected answer for known, new and refused tokens, and a verdict on memory', async () => {
    const args = [...programArguments('tools/soak/main.ts'), '--own-node', '--seconds', '3', '--rate', '200'];
    const { code, output } = await new Promise<{ readonly code: number | null; readonly output: string }>(resolve => {
      const child = execFile(process.execPath, args, { cwd: project }, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, output: stdout + stderr }),
      );
    });
    secrets.show('command', output);
    const line =
      /^(flat|NOT FLAT) {2}\d{3} calls in 3 s, each answered rightly; resident \d+ to \d+ MB; after warm-up ([+−])([\d.]+) MB along the line, at most (\d+)$/m;
    const [, verdict, sign, megabytes, bound] = line.exec(output) ?? [];
    expect(Number(bound), output).to.equal(maxRiseMegabytes);
    const isFlat = sign === '−' || Number(megabytes) <= maxRiseMegabytes;
    expect({ verdict, code }).to.deep.equal(isFlat ? { verdict: 'flat', code: 0 } : { verdict: 'NOT FLAT', code: 1 });
  });
});
