// The Node that contenders run on: the one that runs the bench, or one of another major version, which npm carries as a package.
import { execFile } from 'node:child_process';
import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export async function nodeBinary(major: string | undefined, cacheDirectory: string): Promise<string> {
  if (major === undefined) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const directory = join(cacheDirectory, `node-${major}`);
  const binary = join(directory, 'node_modules', name, 'bin', 'node');
  const isThere = await access(binary).then(
    () => true,
    () => false,
  );
  if (!isThere) {
    await mkdir(directory, { recursive: true });
    // A root of its own, or npm would install into the project.
    await writeFile(join(directory, 'package.json'), '{ "private": true }\n');
    await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', '--ignore-scripts', `${name}@${major}`], {
      cwd: directory,
    });
  }
  return binary;
}

export async function nodeVersion(binary: string): Promise<string> {
  const { stdout } = await run(binary, ['--version']);
  return stdout.trim().replace(/^v/, '');
}
