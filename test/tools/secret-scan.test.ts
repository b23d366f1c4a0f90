// A run of mocha fails where a secret was shown, though each of its tests passes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const project = fileURLToPath(new URL('../../', import.meta.url));

describe('a run of the tests', function () {
  this.timeout(60_000);
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'secrets-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  /** One test with this body, in a run of its own with the root hook. */
  const run = (
    body: string,
    title = `'passes'`,
    options: readonly string[] = [],
  ): { readonly status: number | null; readonly output: string } => {
    const file = join(directory, 'planted.test.ts');
    writeFileSync(
      file,
      `import { createServer } from 'node:http';
       import { secrets } from '${project}test/support/secrets.ts';
       const secret = secrets.fresh('claim');
       it(${title}, async () => { ${body} });`,
    );
    const mocha = join(project, 'node_modules', 'mocha', 'bin', 'mocha.js');
    const { status, stdout, stderr } = spawnSync(process.execPath, [mocha, ...options, file], {
      cwd: project,
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  };

  const fetched = `const server = createServer((_, response) => response.end(secret)).listen(0, '127.0.0.1');
    await new Promise(resolve => server.once('listening', resolve));
    await fetch('http://127.0.0.1:' + server.address().port);
    server.close();`;
  const planted: readonly (readonly [name: string, body: string, leak: RegExp])[] = [
    ['a secret is in a log', `secrets.show('log', secret);`, /claim in: log/],
    ['a secret is fetched', fetched, /claim in: HTTP answer/],
    ['a secret is written to standard error', 'console.error(secret);', /claim in: test run/],
  ];
  for (const [name, body, leak] of planted) {
    it(`fails where ${name}, though each test passes`, () => {
      const { status, output } = run(body);
      expect(output)
        .to.match(leak)
        .and.match(/^1 passed, 1 failed$/m);
      expect(status).to.not.equal(0);
    });
  }

  it('fails where a secret is in a title, also with a reporter that prints none', () => {
    const { output } = run('', '`shows ${secret}`', ['--reporter', 'test/support/file-reporter.ts']);
    expect(output)
      .to.match(/claim in: test run/)
      .and.match(/^1 passed, 1 failed$/m);
  });

  it('passes where none is', () => {
    const { status, output } = run(`secrets.show('log', 'nothing of it');`);
    expect({ status, closing: output.trim().split('\n').at(-1) }).to.deep.equal({
      status: 0,
      closing: '1 passed, 0 failed',
    });
  });
});
