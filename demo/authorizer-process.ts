// Finds the running processes of account-authz among all visible ones, with any flags of Node.
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';

/** Compares the main script and the command, whose positions depend on the flags before them. Excludes this process, whose arguments may
 * contain the script. */
export async function authorizerPids(script: string): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(pid => pid > 0 && pid !== process.pid);
  const serving = await Promise.all(pids.map(async pid => isAuthorizer(await commandOf(pid), script)));
  return pids.filter((_, index) => serving[index]);
}

/**
 * Node must come first, because an init process has the whole command line among its own arguments. Before the main script only options of
 * Node and their values may come: after another script, it would be an argument of that script.
 */
export function isAuthorizer([program = '', ...args]: readonly string[], script: string): boolean {
  const index = args.indexOf(script);
  const before = args.slice(0, Math.max(0, index));
  const onlyOptions = before.every((arg, i) => arg.startsWith('-') || before[i - 1]?.startsWith('-'));
  const command = args[index + 1] ?? 'serve';
  const serves = command === 'serve' || command.startsWith('-');
  return /^node/.test(basename(program)) && index >= 0 && onlyOptions && serves;
}

/** Empty if the process has exited meanwhile. */
async function commandOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return text.split('\0').slice(0, -1);
}
