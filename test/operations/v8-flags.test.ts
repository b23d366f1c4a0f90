import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { buildSync } from 'esbuild';
import { secrets } from '../support/secrets.ts';

describe('settings of V8', () => {
  it('let the young generation grow at once', function () {
    // Newer ones take it page by page, which shows nothing of the steps in which it may.
    if (Number(process.versions.node.split('.')[0]) > 24) this.skip();
    // In one file, since what reads TypeScript at run time would have made it grow already.
    const { outputFiles } = buildSync({
      entryPoints: [fileURLToPath(new URL('young-generation.ts', import.meta.url))],
      bundle: true,
      platform: 'node',
      format: 'esm',
      write: false,
    });
    const script = outputFiles[0]?.text ?? '';
    const told = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    secrets.show('command', told);
    expect(JSON.parse(told)).to.be.an('array').with.lengthOf.within(2, 3);
  });
});
