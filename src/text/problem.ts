// A problem as a value, and the code of a system error.
import { printableValue } from './printable.ts';

/** What is wrong with one thing: with a file, an address, an option. */
export interface Problem<Text extends string = string> {
  readonly kind: 'problem';
  /** A sentence, or the rest of one that starts with the thing. */
  readonly problem: Text;
}

export function problem<Text extends string>(text: Text): Problem<Text> {
  return { kind: 'problem', problem: text };
}

/** For an error that ends a command. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The code of an error of Node: `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

interface FaultDescription {
  readonly name: string;
  readonly code?: string;
  readonly at?: string;
}

/** Name, code and place of an error, never its message, which may quote input. */
export function describeFault(error: unknown): FaultDescription {
  if (!(error instanceof Error)) return { name: typeof error };
  const at = error.stack
    ?.split('\n')
    .find(line => line.startsWith('    at '))
    ?.trim();
  const code = errorCode(error);
  return { name: error.name, ...(code !== undefined && { code }), ...(at !== undefined && { at }) };
}

/** As in the log, see log.ts. */
const maxTextLength = 1024;

/** In the format of the log, but without a logger: the error may come before one exists, or from it. */
export function fatalLine(error: unknown): string {
  const line = {
    level: 'fatal',
    time: new Date().toISOString(),
    fault: printableValue(describeFault(error), maxTextLength),
    msg: 'fault',
  };
  return `${JSON.stringify(line)}\n`;
}
