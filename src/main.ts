#!/usr/bin/env node
// The process edge: arguments in, exit code out. The only place that reads the environment or ends the process.
import type { Command } from './commands/command.ts';
import { foreignText, quotedForeignText } from './foreign-text.ts';
import { version } from './version.ts';

// Loaded when it is called: the service holds nothing of the others, and a probe that is run each ten seconds starts fast.
const commands: ReadonlyMap<string, { readonly load: () => Promise<Command>; readonly does: string }> = new Map([
  ['serve', { load: async () => (await import('./commands/serve.ts')).serve, does: 'run the service (the default)' }],
  [
    'check-config',
    {
      load: async () => (await import('./commands/check-config.ts')).checkConfig,
      does: 'validate a configuration and print what is in effect',
    },
  ],
  [
    'explain',
    {
      load: async () => (await import('./commands/explain.ts')).explain,
      does: 'say what the service would answer to a request, and why',
    },
  ],
  [
    'health',
    { load: async () => (await import('./commands/health.ts')).health, does: 'ask a running service for its health' },
  ],
  [
    'drain',
    {
      load: async () => (await import('./commands/drain.ts')).drain,
      does: 'preStop helper: drain the Envoy in the same pod',
    },
  ],
  [
    'schema',
    {
      load: async () => (await import('./commands/schema.ts')).schema,
      does: 'print the JSON Schema of the configuration',
    },
  ],
]);

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const [first = 'serve'] = args;
  if (first === '--version') return print(`${version}\n`);
  if (first === '--help') return print(help());
  const named = !first.startsWith('-');
  const command = commands.get(named ? first : 'serve');
  if (command === undefined) {
    process.stderr.write(`account-authz: no command ${quotedForeignText(first)}; see account-authz --help\n`);
    return 1;
  }
  const rest = named ? args.slice(1) : args;
  if (rest.includes('--version')) return print(`${version}\n`);
  const { stdin, stdout, stderr, env } = process;
  try {
    const run = await command.load();
    return await run(rest, { stdin, stdout, stderr, env });
  } catch (error) {
    process.stderr.write(
      `account-authz: ${foreignText(error instanceof Error ? error.message : String(error), 1024)}\n`,
    );
    return 2;
  }
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

function help(): string {
  const lines = Array.from(commands, ([name, { does }]) => `  ${name.padEnd(14)}${does}`);
  return `account-authz COMMAND [options]\n\n${lines.join('\n')}\n\naccount-authz COMMAND --help tells the options of a command.\n`;
}
