// The npm package of the command line installs and runs without a network.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { programArguments } from '../../lab/compiled.ts';
import { secrets } from '../../lab/secrets.ts';
import { freshFolder } from '../support/fresh-folder.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

describe('the package', () => {
  const folder = freshFolder();

  const run = (command: string, args: readonly string[], cwd = folder): string => {
    const output = execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    secrets.show('command', output);
    return output;
  };

  before(() => {
    run(process.execPath, [...programArguments('tools/package.ts'), folder], project);
    const [archive = ''] = readdirSync(folder).filter(name => name.endsWith('.tgz'));
    run('npm', ['install', '--silent', '--offline', '--prefix', folder, join(folder, archive)]);
  });

  it('has no dependencies', () => {
    expect(readdirSync(join(folder, 'node_modules')).filter(name => !name.startsWith('.'))).to.deep.equal([
      'account-authz',
    ]);
  });

  it('runs with npx without a network', () => {
    const from = join('node_modules', 'account-authz');
    const args = ['test', '--config', join(from, 'config.example.yaml'), join(from, 'cases.example.yaml')];
    expect(run('npx', ['--offline', 'account-authz', ...args])).to.match(/# 15 passed, 0 failed\n$/);
  });
});
