// What all commands share: their streams and environment, the parsing of options, usage and usage problems.
import { parseArgs } from 'node:util';
import type { LogDestination } from '../operations/log-destination.ts';

export interface CommandIo {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean };
  readonly stderr: { write(text: string): unknown };
  /** The service logs to standard output; uncaught errors are written there too. */
  readonly log: LogDestination;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Takes the arguments after the command's name and returns the exit code. */
export type Command = (args: readonly string[], io: CommandIo) => Promise<number>;

export const defaultConfigFile = '/etc/account-authz/config.yaml';

export type OptionDefinitions = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** The values of the options, typed by their definitions. */
export type OptionValues<Definitions extends OptionDefinitions> = ReturnType<
  typeof parseArgs<{ readonly options: Definitions; readonly strict: true; readonly allowPositionals: false }>
>['values'];

/** Every command has it. */
export const helpOption = { help: { type: 'boolean', default: false } } as const;

export interface CommandLine<Definitions extends OptionDefinitions> {
  readonly name: string;
  readonly usage: string;
  readonly args: readonly string[];
  readonly options: Definitions;
  /** 1 at most; 0 if not given. */
  readonly maxOperands?: number;
}

export interface ParsedCommandLine<Definitions extends OptionDefinitions> {
  readonly kind: 'options';
  readonly values: OptionValues<Definitions>;
  readonly operands: readonly string[];
}

/** The usage or a usage problem is printed: the command ends with this code. */
export interface CommandEnd {
  readonly kind: 'end';
  readonly code: number;
}

/** Accepts known options only, and as many operands (arguments that are not options) as the command takes. */
export function parseCommandLine<const Definitions extends OptionDefinitions>(
  { name, usage, args, options, maxOperands = 0 }: CommandLine<Definitions>,
  io: CommandIo,
): ParsedCommandLine<Definitions> | CommandEnd {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options,
      strict: true,
      allowPositionals: maxOperands > 0,
    });
    if (positionals.length > maxOperands) {
      return { kind: 'end', code: usageError(io, name, `takes at most ${maxOperands} argument that is not an option`) };
    }
    if (!('help' in values && values.help === true)) return { kind: 'options', values, operands: positionals };
    io.stdout.write(usage);
    return { kind: 'end', code: 0 };
  } catch (error) {
    return { kind: 'end', code: usageError(io, name, usageProblemOf(error, args, options)) };
  }
}

/** Prints the problem and returns the exit code. The problem names options, never values: a value may be a token. */
export function usageError(io: CommandIo, name: string, problem: string): number {
  io.stderr.write(`account-authz ${name}: ${problem}\n`);
  return 1;
}

// The messages of parseArgs repeat the arguments.
function usageProblemOf(error: unknown, args: readonly string[], options: OptionDefinitions): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `unknown option ${unknownOption(args, options)}`;
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return wrongValue(args, options);
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return 'an argument that is not an option';
    default:
      throw error;
  }
}

function wrongValue(args: readonly string[], options: OptionDefinitions): string {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  for (const token of tokens) {
    const type = token.kind === 'option' && Object.hasOwn(options, token.name) ? options[token.name]?.type : undefined;
    if (token.kind !== 'option' || type === undefined) continue;
    if (type === 'boolean' && token.value !== undefined) return `--${token.name} takes no value`;
    // What looks like another option is a value only behind `=`.
    const isOption = token.inlineValue === false && token.value.startsWith('-');
    if (type === 'string' && (token.value === undefined || isOption)) return `--${token.name} lacks its value`;
  }
  return 'an option lacks its value or has one that it does not take';
}

function unknownOption(args: readonly string[], options: OptionDefinitions): string {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const unknown = tokens.find(token => token.kind === 'option' && !Object.hasOwn(options, token.name));
  return unknown?.kind === 'option' && /^-{1,2}[\w-]{1,40}$/.test(unknown.rawName) ? unknown.rawName : 'given';
}
