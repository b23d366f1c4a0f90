// The built dist/: it runs without node_modules, and `serve` loads nothing of the toolkit.
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { build } from 'esbuild';
import { secrets } from '../../lab/secrets.ts';
import { freshFolder } from '../support/fresh-folder.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

describe('dist/', () => {
  const directory = freshFolder();

  before(() => {
    for (const part of ['dist', 'package.json'])
      cpSync(join(project, part), join(directory, part), { recursive: true });
  });

  function run(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
    const { stdout, stderr, status } = spawnSync(process.execPath, [join(directory, 'dist/main.js'), ...args], {
      cwd: directory,
      encoding: 'utf8',
    });
    secrets.show('command', stdout);
    secrets.show('standard error', stderr);
    return { status, output: `${stdout}${stderr}` };
  }

  const commands: readonly (readonly [args: readonly string[], status: number, output: string])[] = [
    [['schema'], 0, '"$schema"'],
    [['check-config', '--config', join(project, 'config.example.yaml')], 0, 'issuers'],
    [['health', '--config', 'absent.yaml'], 1, 'absent.yaml'],
    [['serve', '--config', 'absent.yaml'], 1, 'absent.yaml'],
  ];
  for (const [args, status, output] of commands) {
    it(`runs ${args[0]} without node_modules`, () => {
      const ended = run(...args);
      expect(ended.output).to.contain(output);
      expect(ended.status).to.equal(status);
    });
  }

  it('loads no module of toolkit/ for serve', async () => {
    const { metafile } = await build({
      absWorkingDir: project,
      entryPoints: ['src/main.ts', 'src/commands/serve.ts'],
      outdir: 'dist',
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
      // What main.ts imports when a command runs: of these `serve` alone counts.
      external: ['./commands/*'],
      metafile: true,
      write: false,
    });
    const loaded = Object.keys(metafile.inputs);
    expect(loaded).to.include('src/service/service.ts');
    expect(loaded.filter(file => file.startsWith('src/toolkit/'))).to.deep.equal([]);
  });

  it('has no language of zod but English', () => {
    const texts = readdirSync(join(project, 'dist')).map(file => readFileSync(join(project, 'dist', file), 'utf8'));
    // A word of zod's Turkish messages; esbuild keeps names of functions and strings.
    expect(texts.filter(each => each.includes('Geçersiz') || each.includes('Ge\\xE7ersiz'))).to.deep.equal([]);
  });
});
