// What all commands share: their streams and environment, options, usage, and how a problem ends them.
import { parseArgs } from 'node:util';
import { formatProblems, type Misconfiguration } from '../config/problems.ts';
import type { LogDestination } from '../files/log-destination.ts';
import { KeyFileError } from '../keys/key-ring.ts';
import { printable } from '../text/printable.ts';
import { errorCode } from '../text/problem.ts';

export interface CommandIo {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean };
  /** The service logs to standard output; uncaught errors are written there too. */
  readonly log: LogDestination;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Takes the arguments after the command's name and returns the exit code. */
export type Command = (args: readonly string[], io: CommandIo) => Promise<number>;

export const defaultConfigFile = '/etc/account-authz/config.yaml';

type OptionDefinitions = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** The values of the options, typed by their definitions. */
type OptionValues<Definitions extends OptionDefinitions> = ReturnType<
  typeof parseArgs<{ readonly options: Definitions; readonly strict: true; readonly allowPositionals: false }>
>['values'];

/** Ends a command with code 1. The message is one line about the command, or with `areLines` what is printed as it stands. */
export class CommandError extends Error {
  readonly areLines: boolean;

  constructor(message: string, { areLines = false } = {}) {
    super(message);
    this.areLines = areLines;
  }
}

/** Prints each problem with its line. */
export function misconfigured(file: string, { problems }: Misconfiguration): CommandError {
  return new CommandError(formatProblems(file, problems), { areLines: true });
}

interface CommandDefinition<Definitions extends OptionDefinitions> {
  readonly name: string;
  readonly usage: string;
  readonly options: Definitions;
  /** How many arguments may be no options; 0 if not given. */
  readonly maxOperands?: number;
  /** Resolves to the exit code. Rejects with a CommandError for a problem that names options, never values: a value may be a token. */
  run(given: {
    readonly values: OptionValues<Definitions>;
    readonly operands: readonly string[];
    readonly args: readonly string[];
    readonly io: CommandIo;
  }): Promise<number>;
}

const helpOption = { help: { type: 'boolean', default: false } } as const;

/** A command that accepts its options, and --help, and no others. */
export function defineCommand<const Definitions extends OptionDefinitions>(
  definition: CommandDefinition<Definitions>,
): Command {
  const { name, usage, maxOperands = 0 } = definition;
  const options = { ...definition.options, ...helpOption };
  return async (args, io) => {
    try {
      const parsed = parseOptions(args, options, maxOperands);
      const { help, ...values } = parsed.values;
      if (help !== true) {
        const operands = parsed.positionals;
        return await definition.run({ values: values as OptionValues<Definitions>, operands, args, io });
      }
      io.stdout.write(usage);
      return 0;
    } catch (error) {
      if (!(error instanceof CommandError) && !(error instanceof KeyFileError)) throw error;
      const areLines = error instanceof CommandError && error.areLines;
      io.stderr.write(areLines ? error.message : `account-authz ${name}: ${printable(error.message, maxLineLength)}\n`);
      return 1;
    }
  };

  function parseOptions(args: readonly string[], all: OptionDefinitions, most: number) {
    try {
      const parsed = parseArgs({ args: [...args], options: all, strict: true, allowPositionals: most > 0 });
      if (parsed.positionals.length <= most) return parsed;
    } catch (error) {
      const problem = usageProblemOf(error, args, all);
      throw new CommandError(`${problem}: account-authz ${name} --help lists the options`);
    }
    throw new CommandError(`takes at most ${most} argument${most === 1 ? '' : 's'} besides options`);
  }
}

const maxLineLength = 4096;

// The messages of parseArgs repeat the arguments.
function usageProblemOf(error: unknown, args: readonly string[], options: OptionDefinitions): string {
  switch (errorCode(error)) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `unknown option ${unknownOption(args, options)}`;
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return valueProblem(args, options);
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return 'unexpected argument';
    default:
      throw error;
  }
}

function unknownOption(args: readonly string[], options: OptionDefinitions): string {
  const unknown = optionTokens(args, options).find(({ name }) => !Object.hasOwn(options, name));
  return unknown !== undefined && /^-{1,2}[\w-]{1,40}$/.test(unknown.rawName) ? unknown.rawName : 'given';
}

// Strict parsing refuses a value that starts with a hyphen, unless an equals sign is before it.
function valueProblem(args: readonly string[], options: OptionDefinitions): string {
  for (const { name, value, inlineValue } of optionTokens(args, options)) {
    const takesValue = options[name]?.type === 'string';
    if (!takesValue && value !== undefined) return `--${name} must have no value`;
    if (takesValue && (value === undefined || (!inlineValue && value.startsWith('-'))))
      return `--${name} must have a value`;
  }
  return 'a value is missing or not allowed';
}

function optionTokens(args: readonly string[], options: OptionDefinitions) {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  return tokens.filter(token => token.kind === 'option');
}
