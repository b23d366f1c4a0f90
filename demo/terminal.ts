// Prints the demo: a title per section and a line per step in aligned columns; in colour on a terminal, as plain text elsewhere.

export interface Columns {
  readonly step: number;
  readonly expected: number;
}

export interface StepLine {
  readonly name: string;
  readonly expected: string;
  readonly actual: string;
  readonly ok: boolean;
  readonly notes: readonly string[];
}

export interface Terminal {
  title(text: string): void;
  text(text: string): void;
  /** On a terminal, the line is replaced by that of `started`; elsewhere there is none. */
  starting(part: string): void;
  started(part: string, address: string): void;
  heads(): void;
  step(line: StepLine): void;
  verdict(text: string, ok: boolean): void;
}

type Style = 'bold' | 'dim' | 'green' | 'red' | 'cyan';

const codes: Readonly<Record<Style, readonly [on: number, off: number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  green: [32, 39],
  red: [31, 39],
  cyan: [36, 39],
};

const partColumn = 24;

/** Writes to standard output. `NO_COLOR` turns colours off (no-color.org). */
export function createTerminal(columns: Columns = { step: 0, expected: 0 }): Terminal {
  const output = process.stdout;
  const isTerminal = output.isTTY === true;
  const isColoured = isTerminal && (process.env.NO_COLOR ?? '') === '';
  const styled = (text: string, style: Style): string =>
    isColoured ? `\x1b[${codes[style][0]}m${text}\x1b[${codes[style][1]}m` : text;
  const line = (text: string): void => void output.write(`${text.trimEnd()}\n`);
  const mark = (ok: boolean): string => (ok ? styled('ok  ', 'green') : styled('FAIL', 'red'));
  return {
    title(text) {
      line('');
      line(styled(text, 'bold'));
    },
    text: line,
    starting(part) {
      if (isTerminal) output.write(`  ${styled('...', 'dim')}   ${part}`);
    },
    started(part, address) {
      if (isTerminal) output.write('\r\x1b[2K');
      line(`  ${mark(true)}  ${part.padEnd(partColumn)}  ${styled(address, 'cyan')}`);
    },
    heads() {
      const { step, expected } = columns;
      line('');
      line(styled(`        ${'STEP'.padEnd(step)}  ${'EXPECTED'.padEnd(expected)}  ACTUAL`, 'dim'));
    },
    step({ name, expected, actual, ok, notes }) {
      const shown = styled(actual, ok ? 'green' : 'red');
      line(`  ${mark(ok)}  ${name.padEnd(columns.step)}  ${expected.padEnd(columns.expected)}  ${shown}`);
      for (const note of notes) line(styled(`          ${note}`, 'dim'));
    },
    verdict(text, ok) {
      line('');
      line(styled(text, ok ? 'green' : 'red'));
    },
  };
}
