// Describes an internal error without its message, and writes the last log line of a process that it ends.
import { printableValue } from './printable.ts';
import { errorCode } from './problem.ts';

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
