// A Redis of its own on a Unix socket, for a recipe: from REDIS_BIN or the PATH, else of the Debian or Ubuntu release of this machine.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { programPath } from './programs.ts';

export interface Redis {
  /** For a shell that runs redis-cli. */
  readonly env: NodeJS.ProcessEnv;
  readonly socket: string;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<Redis> {
  const program = await programPath('redis-server');
  const folder = await mkdtemp(join(tmpdir(), 'account-authz-redis-'));
  const socket = join(folder, 'redis.sock');
  const bin = dirname(program);
  const path = bin === '.' ? process.env.PATH : `${bin}:${process.env.PATH}`;
  const lib = join(bin, '..', 'lib');
  const libraries = bin === '.' ? [] : (await readdir(lib)).map(name => join(lib, name));
  const env = { ...process.env, PATH: path, LD_LIBRARY_PATH: libraries.join(':') };
  const child = spawn(program, ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', folder], { env });
  for await (const text of child.stdout) if (String(text).includes('ready to accept connections')) break;
  return {
    env,
    socket,
    async stop() {
      if (child.exitCode === null && child.kill()) await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
