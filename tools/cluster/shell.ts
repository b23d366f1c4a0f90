// A reader's shell: runs blocks of a page as they are written, in a copy of the files of the repository, with account-authz on its path.
import { spawn } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../../', import.meta.url));
const timeoutMs = 300_000;

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
}

export interface Shell {
  /** The working directory. */
  readonly folder: string;
  /** A block that ends with a port-forward stays up until `stop`. */
  run(text: string): Promise<Outcome>;
  stop(): Promise<void>;
}

export async function startShell(): Promise<Shell> {
  const directory = await mkdtemp(join(tmpdir(), 'cluster-shell-'));
  const folder = join(directory, 'work');
  for (const name of ['k8s', 'envoy.yaml', 'config.example.yaml'])
    await cp(join(project, name), join(folder, name), { recursive: true });
  const program = join(directory, 'bin', 'account-authz');
  await mkdir(join(directory, 'bin'));
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${join(project, 'dist', 'main.js')}' "$@"\n`);
  await chmod(program, 0o755);
  const env = { ...process.env, PATH: `${join(directory, 'bin')}:${process.env.PATH}` };
  const groups = new Set<number>();
  const killAll = (): void => {
    for (const group of groups) process.kill(-group);
    groups.clear();
  };
  process.once('exit', killAll);
  return {
    folder,
    run: text =>
      new Promise(resolve => {
        // A group of its own, so that what it started ends with it.
        const child = spawn('bash', ['-euc', text], {
          cwd: folder,
          env,
          detached: true,
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        const { pid = 0 } = child;
        groups.add(pid);
        const timer = setTimeout(() => process.kill(-pid), timeoutMs);
        let stdout = '';
        let stderr = '';
        child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
          stdout += chunk;
          if (!text.includes(' port-forward ') || !stdout.includes('Forwarding from')) return;
          clearTimeout(timer);
          resolve({ code: 0, stdout });
        });
        child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
          stderr += chunk;
        });
        child.once('close', code => {
          clearTimeout(timer);
          groups.delete(pid);
          if (code !== 0 && code !== null) process.stderr.write(`${text}\n${stderr}\n`);
          resolve({ code: code ?? 1, stdout });
        });
      }),
    async stop() {
      process.off('exit', killAll);
      killAll();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
