// config.example.yaml, and a command that is run with arguments.
import { readFileSync } from 'node:fs';
import { type CommandName, type Outcome, runCommand } from '../../lab/command.ts';

export const root = new URL('../../', import.meta.url);

export const exampleFile = new URL('config.example.yaml', root).pathname;

export const example = readFileSync(exampleFile, 'utf8');

export const run = (command: CommandName, ...args: readonly string[]): Promise<Outcome> => runCommand(command, args);
