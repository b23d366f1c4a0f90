// How the demo looks: a title a chapter, a line a step in aligned columns; in colour on a terminal, plain text elsewhere.

/** The part of a stream that is written to. */
export interface Output {
  write(text: string): unknown;
}

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
  /** Shown where it can be replaced, or once it takes a while. */
  starting(part: string): void;
  started(part: string, place: string): void;
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
const whileMilliseconds = 2000;

/** `live` is for a terminal: colours, and a line that says what is being waited for. */
export function createTerminal(
  output: Output,
  columns: Columns,
  live: { colour: boolean; overwrite: boolean },
): Terminal {
  const styled = (text: string, style: Style): string =>
    live.colour ? `\x1b[${codes[style][0]}m${text}\x1b[${codes[style][1]}m` : text;
  const line = (text: string): void => void output.write(`${text.trimEnd()}\n`);
  const mark = (ok: boolean): string => (ok ? styled('ok  ', 'green') : styled('FAIL', 'red'));
  let waiting: NodeJS.Timeout | undefined;
  return {
    title(text) {
      line('');
      line(styled(text, 'bold'));
    },
    text: line,
    starting(part) {
      const text = `  ${styled('...', 'dim')}   ${part}`;
      if (live.overwrite) output.write(text);
      else waiting = setTimeout(() => line(text), whileMilliseconds).unref();
    },
    started(part, place) {
      clearTimeout(waiting);
      if (live.overwrite) output.write('\r\x1b[2K');
      line(`  ${mark(true)}  ${part.padEnd(partColumn)}  ${styled(place, 'cyan')}`);
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
