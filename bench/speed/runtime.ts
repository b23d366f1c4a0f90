// The runtime of all JavaScript contenders: the image's Node, flags and environment, read from the Dockerfile.
import { execFile } from 'node:child_process';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Runtime {
  readonly node: string;
  /** Node options before the script. */
  readonly flags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The Node that runs the bench, unchanged: for experiments where npm has no Node for this platform. */
export const ownRuntime: Runtime = { node: process.execPath, flags: [], environment: {} };

export async function imageRuntime(projectDirectory: string, cacheDirectory: string): Promise<Runtime> {
  const { major, flags, environment } = parseDockerfile(await readFile(join(projectDirectory, 'Dockerfile'), 'utf8'));
  return { node: await nodeBinary(major, cacheDirectory), flags, environment };
}

export function parseDockerfile(dockerfile: string): Omit<Runtime, 'node'> & { readonly major: string } {
  const entrypoint = JSON.parse(lastMatch(dockerfile, /^ENTRYPOINT (\[.*\])$/gm)) as readonly string[];
  const variables = lastMatch(dockerfile, /^ENV (.*)$/gm).split(' ');
  return {
    major: lastMatch(dockerfile, /^ARG RUNTIME_IMAGE=\S*\/nodejs(\d+)-/gm),
    flags: entrypoint.slice(1, -1),
    environment: Object.fromEntries(variables.map(each => each.split('=', 2))),
  };
}

function lastMatch(text: string, pattern: RegExp): string {
  const found = [...text.matchAll(pattern)].at(-1)?.[1];
  if (found === undefined) throw new Error(`the Dockerfile has nothing like ${pattern.source}`);
  return found;
}

/** npm carries Node as a package for each platform. */
async function nodeBinary(major: string, cacheDirectory: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`;
  const directory = join(cacheDirectory, `node-${major}`);
  const binary = join(directory, 'node_modules', name, 'bin', 'node');
  const isInstalled = await access(binary).then(
    () => true,
    () => false,
  );
  if (!isInstalled) {
    await mkdir(directory, { recursive: true });
    // Its own root, or npm would install into the project.
    await writeFile(join(directory, 'package.json'), '{ "private": true }\n');
    const options = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts'];
    await run('npm', ['install', ...options, `${name}@${major}`], { cwd: directory });
  }
  return binary;
}

export async function nodeVersion({ node }: Runtime): Promise<string> {
  const { stdout } = await run(node, ['--version']);
  return stdout.trim().replace(/^v/, '');
}
