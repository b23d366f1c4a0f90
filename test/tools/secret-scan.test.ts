// A run of mocha fails where a secret was shown, though each of its tests passes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { compiledFile, isCompiled, mochaConfig } from '../../lab/compiled.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const scan = 'lab/secrets.ts';

describe('a run of the tests', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'secrets-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  /** Runs these tests as `npm test` does. */
  const run = (tests: string): { readonly status: number | null; readonly output: string } => {
    const file = join(directory, isCompiled() ? 'planted.test.mjs' : 'planted.test.ts');
    writeFileSync(
      file,
      `import { createServer } from 'node:http';
       import { secrets } from '${project}${isCompiled() ? compiledFile(scan) : scan}';
       const secret = secrets.fresh('claim');
       ${tests}`,
    );
    const mocha = join(project, 'node_modules', 'mocha', 'bin', 'mocha.js');
    const config = isCompiled() ? ['--config', mochaConfig] : ['--reporter', 'test/support/file-reporter.ts'];
    const options = [...config, '--parallel', '--jobs', '2'];
    const { status, stdout, stderr } = spawnSync(process.execPath, [mocha, ...options, file], {
      cwd: project,
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  };

  it('fails where a secret is in a log, an answer to fetch, standard error or a title, though each test passes', () => {
    const { status, output } = run(`
      it('logs it', () => secrets.show('log', secret));
      it('fetches it', async () => {
        const server = createServer((_, response) => response.end(secret)).listen(0, '127.0.0.1');
        await new Promise(resolve => server.once('listening', resolve));
        await fetch('http://127.0.0.1:' + server.address().port);
        server.close();
      });
      it('writes it', () => console.error(secret));`);
    for (const where of ['log', 'HTTP answer', 'test run']) expect(output).to.contain(`claim in: ${where}\n`);
    expect(output).to.match(/^3 passed, 1 failed$/m);
    expect(status).to.not.equal(0);
    expect(run('it(secret, () => undefined);').output)
      .to.contain('claim in: test run\n')
      .and.match(/^1 passed, 1 failed$/m);
  });

  it('passes where none is', () => {
    const { status, output } = run(`it('passes', () => secrets.show('log', 'nothing of it'));`);
    expect({ status, closing: output.trim().split('\n').at(-1) }).to.deep.equal({
      status: 0,
      closing: '1 passed, 0 failed',
    });
  });
});
