// What all commands share: their streams and environment, the parsing of options, usage and usage problems.
import { parseArgs } from 'node:util';
import type { LogDestination } from '../service/log-destination.ts';
import { errorCode } from '../text/problem.ts';

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

type OptionDefinitions = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** The values of the options, typed by their definitions. */
type OptionValues<Definitions extends OptionDefinitions> = ReturnType<
  typeof parseArgs<{ readonly options: Definitions; readonly strict: true; readonly allowPositionals: false }>
>['values'];

/** Every command has it. */
export const helpOption = { help: { type: 'boolean', default: false } } as const;

interface CommandLine<Definitions extends OptionDefinitions> {
  readonly name: string;
  readonly usage: string;
  readonly args: readonly string[];
  readonly options: Definitions;
  /** 1 at most; 0 if not given. */
  readonly maxOperands?: number;
}

interface ParsedCommandLine<Definitions extends OptionDefinitions> {
  readonly kind: 'options';
  readonly values: OptionValues<Definitions>;
  readonly operands: readonly string[];
}

/** The usage or a usage problem is printed: the command ends with this code. */
interface CommandEnd {
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
      return { kind: 'end', code: usageError(io, name, `takes at most ${maxOperands} argument besides options`) };
    }
    if (!('help' in values && values.help === true)) return { kind: 'options', values, operands: positionals };
    io.stdout.write(usage);
    return { kind: 'end', code: 0 };
  } catch (error) {
    return {
      kind: 'end',
      code: usageError(
        io,
        name,
        `${usageProblemOf(error, args, options)}: account-authz ${name} --help lists the options`,
      ),
    };
  }
}

/** Prints the problem and returns the exit code. The problem names options, never values: a value may be a token. */
export function usageError(io: CommandIo, name: string, problem: string): number {
  io.stderr.write(`account-authz ${name}: ${problem}\n`);
  return 1;
}

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
