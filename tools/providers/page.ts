// Runs the commands of a page of docs/providers unchanged but for their addresses.
import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ProviderPage } from '../../lab/provider-page.ts';

const run = promisify(execFile);
// Each command of kcadm starts a Java VM: a section takes minutes on a busy machine.
const commandLimitMs = 15 * 60_000;

export interface PageShell {
  /** Runs the commands under a heading. Their variables and functions stay for the next ones. */
  run(heading: string): Promise<void>;
  /** Runs commands that are not on the page, with the variables and functions of the page. */
  runScript(name: string, commands: string): Promise<void>;
  stop(): Promise<void>;
}

/** `addresses` maps the addresses on the page to those of the run. */
export async function startPageShell(
  page: ProviderPage,
  addresses: ReadonlyMap<string, string>,
  env: Readonly<Record<string, string>>,
): Promise<PageShell> {
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-providers-'));
  const state = join(directory, 'state.sh');
  await appendFile(state, '');
  const runScript = async (name: string, commands: string): Promise<void> => {
    const script = `set -aeuo pipefail\n. ${state}\n${commands}\n{ export -p; declare -f; } > ${state}\n`;
    const options = { cwd: directory, env: { ...process.env, ...env }, timeout: commandLimitMs };
    await run('bash', ['-c', script], options).catch((cause: unknown) => {
      const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string };
      throw new Error(`${name} fails:\n${stdout}${stderr}`);
    });
  };
  return {
    runScript,
    run: heading =>
      runScript(`${page.path}, "${heading}"`, replaceAll(page.blocks(heading, 'bash').join('\n'), addresses)),
    stop: () => rm(directory, { recursive: true, force: true }),
  };
}

export function replaceAll(text: string, replacements: ReadonlyMap<string, string>): string {
  return [...replacements].reduce((result, [from, to]) => result.replaceAll(from, to), text);
}
