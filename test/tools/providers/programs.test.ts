// What `npm run providers` says without its programs, and with an unknown provider.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { programArguments } from '../../../lab/compiled.ts';
import { secrets } from '../../../lab/secrets.ts';

describe('npm run providers', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'account-authz-programs-'));
    await symlink('/bin/bash', join(directory, 'bash'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  const run = (args: readonly string[]): Promise<{ readonly code: number | null; readonly stderr: string }> =>
    new Promise(resolve => {
      const env = { ...process.env, PATH: directory };
      const child = execFile(
        process.execPath,
        [...programArguments('tools/providers/main.ts'), ...args],
        { env },
        (_, stdout, stderr) => {
          secrets.show('command', stdout + stderr);
          resolve({ code: child.exitCode, stderr });
        },
      );
    });

  it('names the missing program and its purpose in one line', async () => {
    expect(await run([])).to.deep.equal({
      code: 1,
      stderr: 'npm run providers: curl is not on the PATH; the commands of the provider pages call it\n',
    });
  });

  it('names the providers if --only names another one', async () => {
    expect(await run(['--only', 'auth0'])).to.deep.equal({
      code: 1,
      stderr: 'npm run providers: --only takes keycloak or hydra, not auth0\n',
    });
  });
});
