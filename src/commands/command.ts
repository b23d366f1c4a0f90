// What every command of the command line shares: its surroundings, its options and how it says that it was called wrongly.
import { parseArgs } from 'node:util';
import type { LogDestination } from '../operations/log-destination.ts';

export interface CommandIo {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean };
  readonly stderr: { write(text: string): unknown };
  /** Where the service logs: standard output. A fault that nobody caught is written there as well. */
  readonly log: LogDestination;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Gets the arguments after the command's name, gives the exit code. */
export type Command = (args: readonly string[], io: CommandIo) => Promise<number>;

export const defaultConfigFile = '/etc/account-authz/config.yaml';

export type OptionDefinitions = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** The values of the options that were given, typed by their definitions. */
export type OptionValues<Definitions extends OptionDefinitions> = ReturnType<
  typeof parseArgs<{ readonly options: Definitions; readonly strict: true; readonly allowPositionals: false }>
>['values'];

export interface UsageProblem {
  readonly kind: 'usage problem';
  /** One sentence. It names options, never values: somebody may have put a token there. */
  readonly problem: string;
}

/** Options only, none unknown, no positional argument. `--help` is not special: define it. */
export function parseOptions<const Definitions extends OptionDefinitions>(
  args: readonly string[],
  options: Definitions,
): { readonly kind: 'options'; readonly values: OptionValues<Definitions> } | UsageProblem {
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false });
    return { kind: 'options', values };
  } catch (error) {
    return { kind: 'usage problem', problem: usageProblemOf(error, args, options) };
  }
}

// Translated by code: the messages of parseArgs repeat what was typed.
function usageProblemOf(error: unknown, args: readonly string[], options: OptionDefinitions): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `unknown option ${unknownOption(args, options)}`;
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return 'an option lacks its value or has one that it does not take';
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return 'an argument that is not an option';
    default:
      throw error;
  }
}

function unknownOption(args: readonly string[], options: OptionDefinitions): string {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const unknown = tokens.find(token => token.kind === 'option' && !Object.hasOwn(options, token.name));
  return unknown?.kind === 'option' && /^-{1,2}[\w-]{1,40}$/.test(unknown.rawName) ? unknown.rawName : 'given';
}
