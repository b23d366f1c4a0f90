#!/usr/bin/env node
// The entry point: runs the command and sets the exit code. Only this file reads the environment or ends the process.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from './commands/command.ts';
import { openLogDestination } from './files/log-destination.ts';
import { version } from './package.ts';
import { printable, quotedPrintable } from './text/printable.ts';
import { errorCode, fatalLine, messageOf } from './text/problem.ts';

// Each command is imported when it runs: the service does not load the others, and a probe every ten seconds starts fast.
const commands: Readonly<
  Record<string, { readonly summary: string; readonly load: () => Promise<{ readonly command: Command }> }>
> = {
  serve: { summary: 'run the service (the default command)', load: () => import('./commands/serve.ts') },
  'check-config': {
    summary: 'validate a configuration, and an Envoy bootstrap against it',
    load: () => import('./commands/check-config.ts'),
  },
  explain: { summary: 'show how a request is decided, check by check', load: () => import('./commands/explain.ts') },
  health: { summary: 'print the health of a running service', load: () => import('./commands/health.ts') },
  drain: { summary: 'drain the Envoy in the same pod (for preStop hooks)', load: () => import('./commands/drain.ts') },
  verify: {
    summary: 'ask a running gateway whether it does what the configuration says',
    load: () => import('./commands/verify.ts'),
  },
  test: { summary: 'test the policy with a table of requests', load: () => import('./commands/test.ts') },
  compare: {
    summary: 'say what a change of the configuration allows that was refused, and the opposite',
    load: () => import('./commands/compare.ts'),
  },
  render: {
    summary: 'print the settings of Envoy, Kubernetes, a mesh or a gateway for a configuration',
    load: () => import('./commands/render.ts'),
  },
  init: {
    summary: 'print a first configuration from a token and an OpenAPI document',
    load: () => import('./commands/init.ts'),
  },
  schema: { summary: 'print the JSON Schema of the configuration', load: () => import('./commands/schema.ts') },
};

const args = process.argv.slice(2);
const [first = 'serve'] = args;
const name = first.startsWith('-') ? 'serve' : first;
// The other commands write their result to standard output.
const log = openLogDestination({ fd: name === 'serve' ? 1 : 2 });
for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.on(event, endByFault);
// `head` and the like close an output early. That is no fault, and the exit code stays that of the command.
for (const output of [process.stdout, process.stderr])
  output.on('error', error => {
    if (errorCode(error) !== 'EPIPE') endByFault(error);
  });

// Node would end with 13 and without a word, where a command waits for what can no longer come.
const endUnanswered = (): void => {
  process.stderr.write(`account-authz ${name}: internal error: nothing is left to wait for\n`);
  process.exit(2);
};
process.once('beforeExit', endUnanswered);
const code = await main();
process.off('beforeExit', endUnanswered);
process.exitCode = code;
// Ends handles that are still open, such as a server after a failed start. A clean end waits until an SDK has sent its last spans, but not
// for a socket that its peer never closes.
if (code === 0) setTimeout(() => process.exit(), 5000).unref();
else {
  await Promise.race([Promise.all([flushed(process.stdout), flushed(process.stderr)]), sleep(1000)]);
  process.exit(code);
}

// After an uncaught error the state of the process is undefined: it ends, and Envoy answers 503 until it is restarted.
function endByFault(error: unknown): void {
  try {
    log.write(fatalLine(error));
    log.flushSync();
  } finally {
    process.exit(2);
  }
}

function flushed(output: NodeJS.WritableStream): Promise<void> {
  return new Promise(resolve => output.write('', () => resolve()));
}

async function main(): Promise<number> {
  if (first === '--version') return print(`${version}\n`);
  if (first === '--help') return print(help());
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (found === undefined) {
    process.stderr.write(
      `account-authz: unknown command ${quotedPrintable(first)}: account-authz --help lists the commands\n`,
    );
    return 1;
  }
  const rest = first === name ? args.slice(1) : args;
  if (rest.includes('--version')) return print(`${version}\n`);
  const { stdin, stdout, stderr, env } = process;
  try {
    const { command } = await found.load();
    return await command(rest, { stdin, stdout, stderr, env, log });
  } catch (error) {
    process.stderr.write(`account-authz: ${printable(messageOf(error), 1024)}\n`);
    return 2;
  }
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

function help(): string {
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(14)}${summary}\n`);
  return `account-authz COMMAND [options]

Answers the ext_authz checks of Envoy: may the holder of this token use this account?

Commands:
${lines.join('')}
Examples:
  account-authz check-config --config config.yaml
  account-authz serve --config config.yaml
  account-authz explain --config config.yaml --path /api/subscriptions < token.txt

account-authz COMMAND --help describes a command and its options.
`;
}
