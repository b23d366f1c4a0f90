// Runs the commands of the product, in process or built. The secret scan gets all their output.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { command as checkConfig } from '../src/commands/check-config.ts';
import type { Command } from '../src/commands/command.ts';
import { command as compare } from '../src/commands/compare.ts';
import { command as drain } from '../src/commands/drain.ts';
import { command as explain } from '../src/commands/explain.ts';
import { command as health } from '../src/commands/health.ts';
import { command as init } from '../src/commands/init.ts';
import { command as render } from '../src/commands/render.ts';
import { command as schema } from '../src/commands/schema.ts';
import { command as test } from '../src/commands/test.ts';
import { command as verify } from '../src/commands/verify.ts';
import { nghttp2Warning } from '../src/service/nghttp2.ts';
import { builtFile } from './built.ts';
import { type Output, secrets } from './secrets.ts';

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const commands = {
  'check-config': checkConfig,
  compare,
  drain,
  explain,
  health,
  init,
  render,
  schema,
  test,
  verify,
} satisfies Record<string, Command>;
export type CommandName = keyof typeof commands;

export interface CommandOptions {
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly isTTY?: boolean;
}

export async function runCommand(
  name: CommandName,
  args: readonly string[],
  { input = '', env = {}, isTTY = false }: CommandOptions = {},
): Promise<Outcome> {
  const printed = { stdout: '', stderr: '' };
  const code = await commands[name](args, {
    stdin: Object.assign(Readable.from(input.length === 0 ? [] : [Buffer.from(input)]), { isTTY }),
    stdout: { write: text => (printed.stdout += text), isTTY },
    stderr: { write: text => (printed.stderr += text) },
    env,
    log: { write: text => (printed.stderr += text), flushSync: () => undefined },
  });
  return shown(name, { code, ...printed });
}

export interface ProductOptions {
  readonly input?: string;
  readonly nodeOptions?: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** `node dist/main.js` with these arguments, until its end. */
export async function runProduct(
  args: readonly string[],
  { input = '', nodeOptions = [], env = {} }: ProductOptions = {},
): Promise<Outcome> {
  const main = fileURLToPath(builtFile('main.js'));
  const child = spawn(process.execPath, [...nodeOptions, main, ...args], {
    stdio: 'pipe',
    env: { ...process.env, ...env },
  });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return shown(args[0] ?? '', { code, stdout, stderr });
}

// The tests run on several versions of Node, of which some have an old nghttp2.
const nghttp2Line = `warning: ${nghttp2Warning()}\n`;

function shown(name: string, outcome: Outcome): Outcome {
  const output: Output = name === 'explain' ? 'explanation' : 'command';
  secrets.show(output, outcome.stdout);
  secrets.show('standard error', outcome.stderr);
  return { ...outcome, stderr: outcome.stderr.replace(nghttp2Line, '') };
}
