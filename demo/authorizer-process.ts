// Finds the running processes of account-authz among all that this one can see, whatever flags Node was given.
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';

/** By their main script and command: where these stand depends on the flags before them. Never this process, which may name the script. */
export async function authorizerPids(script: string): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(pid => pid > 0 && pid !== process.pid);
  const serving = await Promise.all(pids.map(async pid => isAuthorizer(await commandOf(pid), script)));
  return pids.filter((_, index) => serving[index]);
}

/**
 * An init process has the whole command line among its own arguments, so that Node must come first. Before the main script stand only
 * options of Node and their values: what stands behind another script is an argument of that.
 */
export function isAuthorizer([program = '', ...args]: readonly string[], script: string): boolean {
  const place = args.indexOf(script);
  const before = args.slice(0, Math.max(0, place));
  const onlyOptions = before.every((arg, index) => arg.startsWith('-') || before[index - 1]?.startsWith('-'));
  const command = args[place + 1] ?? 'serve';
  const serves = command === 'serve' || command.startsWith('-');
  return /^node/.test(basename(program)) && place >= 0 && onlyOptions && serves;
}

/** Empty for a process that has ended meanwhile. */
async function commandOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return text.split('\0').slice(0, -1);
}
