// The real promtool: finds the program, or unpacks it once from a Debian package. A test that needs it fails without it.
import { execFile, spawn } from 'node:child_process';
import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface Verdict {
  readonly good: boolean;
  readonly output: string;
}

const directory = fileURLToPath(new URL('../../../.cache/promtool/', import.meta.url));
const program = join(directory, 'promtool');
const run = promisify(execFile);

let found: Promise<string> | undefined;

/**
 * Path of a promtool: `$PROMTOOL_BIN`, one on the PATH, or that of the Debian or Ubuntu release of this machine, which the first call
 * unpacks into `.cache/promtool/`. Needs no root; a build from source would take minutes.
 */
export function promtoolBinary(): Promise<string> {
  found ??= findPromtool();
  return found;
}

/** Lints a metrics page with `promtool check metrics`. */
export async function checkMetrics(page: string): Promise<Verdict> {
  return runPromtool(['check', 'metrics'], page);
}

export async function runPromtool(args: readonly string[], input = ''): Promise<Verdict> {
  const child = spawn(await promtoolBinary(), args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  child.stdin.on('error', () => undefined).end(input);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', code => resolve({ good: code === 0, output }));
  });
}

async function findPromtool(): Promise<string> {
  const named = process.env.PROMTOOL_BIN;
  if (named !== undefined && named !== '') return named;
  const onPath = await run('promtool', ['--version']).then(
    () => true,
    () => false,
  );
  if (onPath) return 'promtool';
  if (!(await exists(program))) await install();
  return program;
}

// Atomic: unpacked into a temporary folder and then renamed. Of two processes that unpack at once, one wins.
async function install(): Promise<void> {
  await mkdir(directory, { recursive: true });
  const work = await mkdtemp(join(directory, '.debian-'));
  try {
    const root = join(work, 'root');
    const folder = join(work, 'packages');
    for (const each of ['state/lists/partial', 'cache/archives/partial', 'packages', 'root'])
      await mkdir(join(work, each), { recursive: true });
    // Its own package index: the system's may be absent or old, and only root may refresh it.
    const apt = [
      ...['-qq', '-o', `Dir::State=${join(work, 'state')}`, '-o', 'Dir::State::status=/var/lib/dpkg/status'],
      ...['-o', `Dir::Cache=${join(work, 'cache')}`, '-o', 'Debug::NoLocking=1', '-o', 'APT::Sandbox::User='],
    ];
    await run('apt-get', [...apt, 'update']);
    // Since Debian 13 promtool has its own package.
    const download = (name: string): Promise<unknown> => run('apt-get', [...apt, 'download', name], { cwd: folder });
    await download('promtool').catch(() => download('prometheus'));
    for (const file of await readdir(folder)) await run('dpkg-deb', ['-x', join(folder, file), root]);
    await rename(join(root, 'usr', 'bin', 'promtool'), program);
  } catch (error) {
    if (!(await exists(program)))
      throw new Error('promtool cannot be had: no $PROMTOOL_BIN, none on the PATH, and no Debian package of it', {
        cause: error,
      });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
