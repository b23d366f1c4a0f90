// Renders a table as text for a terminal, coloured if supported, and as Markdown.

export type Tone = 'plain' | 'good' | 'bad' | 'dim' | 'strong';

export interface Cell {
  readonly text: string;
  readonly tone: Tone;
}

export interface Column {
  readonly head: string;
  readonly align: 'left' | 'right';
}

export interface Table {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

export function cell(text: string | number, tone: Tone = 'plain'): Cell {
  return { text: String(text), tone };
}

const codes: Readonly<Record<Tone, readonly [on: string, off: string]>> = {
  plain: ['', ''],
  good: ['\x1b[32m', '\x1b[39m'],
  bad: ['\x1b[1;31m', '\x1b[22;39m'],
  dim: ['\x1b[2m', '\x1b[22m'],
  strong: ['\x1b[1m', '\x1b[22m'],
};

/** Styles text for a terminal, or returns it unchanged. */
export function toned(text: string, tone: Tone, colour: boolean): string {
  const [on, off] = codes[tone];
  return colour && text !== '' ? `${on}${text}${off}` : text;
}

export function toText({ columns, rows }: Table, colour: boolean): string {
  const heads = columns.map(column => cell(column.head, 'dim'));
  const widths = columns.map((column, index) =>
    Math.max(column.head.length, ...rows.map(row => row[index]?.text.length ?? 0)),
  );
  const line = (cells: readonly Cell[]): string =>
    columns
      .map(({ align }, index) => {
        const { text, tone } = cells[index] ?? cell('');
        const space = ' '.repeat((widths[index] ?? 0) - text.length);
        const styled = toned(text, tone, colour);
        return align === 'left' ? styled + space : space + styled;
      })
      .join('  ')
      .trimEnd();
  return [heads, ...rows].map(line).join('\n');
}

export function toMarkdown({ columns, rows }: Table): string {
  const line = (texts: readonly string[]): string =>
    `| ${texts.map(text => text.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(columns.map(column => column.head)),
    line(columns.map(column => (column.align === 'left' ? ':--' : '--:'))),
    ...rows.map(row => line(row.map(each => each.text))),
  ].join('\n');
}
