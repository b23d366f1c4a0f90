// A fault: what is safe to tell of an error, and the last line of the log of a process that one ends.
import { foreignValue } from '../foreign-text.ts';

export interface FaultDescription {
  readonly name: string;
  readonly code?: string;
  readonly at?: string;
}

/** What is safe to keep of an error: its name, code and where it came from, never its message, which may quote its input. */
export function describeFault(error: unknown): FaultDescription {
  if (!(error instanceof Error)) return { name: typeof error };
  const at = error.stack
    ?.split('\n')
    .find(line => line.startsWith('    at '))
    ?.trim();
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return { name: error.name, ...(code === undefined ? {} : { code }), ...(at === undefined ? {} : { at }) };
}

/** As in the log, see log.ts. */
const maxTextLength = 1024;

/** In the form of the other lines, but made without a logger: a fault may come before there is one, or be its own. */
export function fatalLine(error: unknown): string {
  const line = {
    level: 'fatal',
    time: new Date().toISOString(),
    fault: foreignValue(describeFault(error), maxTextLength),
    msg: 'fault',
  };
  return `${JSON.stringify(line)}\n`;
}
