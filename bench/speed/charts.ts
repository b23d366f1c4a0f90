// The chart of a bench: CPU cost per call of each contender, with the floors as lines across all bars.
import { type Colour, line, linearMarks, rect, svgDocument, text } from '../report/svg.ts';
import { runLine } from './report.ts';
import type { BenchResults } from './results.ts';
import { spreadOf } from './rounds.ts';

const width = 1200;
const labels = 372;
const gap = 70;
const top = 92;
const rowHeight = 24;
const plot = (width - labels - gap - 2 * 24) / 2;

interface Bar {
  readonly name: string;
  readonly title: string;
  readonly colour: Colour;
  readonly perSecond: number;
  readonly cpu: number;
}

interface Panel {
  readonly head: string;
  readonly at: number;
  value(bar: Bar): number;
  show(value: number): string;
}

/** The floors that are drawn as lines, by the contender. */
const lines: readonly string[] = ['nothing', 'go-jwt'];

const panels: readonly Panel[] = [
  {
    head: 'calls a second on one core',
    at: labels,
    value: bar => bar.perSecond,
    show: value => Math.round(value).toLocaleString('en'),
  },
  { head: 'CPU µs a call', at: labels + plot + gap, value: bar => bar.cpu, show: value => value.toFixed(0) },
];

export function callsSvg(results: BenchResults): string {
  const bars = barsOf(results);
  const title = 'Throughput and CPU time a call';
  const small = 'font-size="11.5"';
  return svgDocument(width, top + bars.length * rowHeight + 56, title, [
    text(24, 34, title, 'ink', 'font-size="20" font-weight="600"'),
    text(24, 56, runLine(results), 'faint', small),
    ...bars.map(({ title, colour }, row) =>
      text(labels - 12, rowY(row) + 15, title, colour === 'product' ? 'ink' : 'faint', `text-anchor="end" ${small}`),
    ),
    ...panels.flatMap(panel => panelParts(panel, bars)),
  ]);
}

function panelParts({ head, at, value, show }: Panel, bars: readonly Bar[]): string[] {
  const bottom = top + bars.length * rowHeight;
  const marks = linearMarks(Math.max(0, ...bars.map(value)));
  const x = (each: number): number => at + (each / (marks.at(-1) ?? 1)) * plot;
  const middle = 'text-anchor="middle" font-size="11"';
  return [
    text(at, top - 10, head, 'ink', 'font-weight="600"'),
    ...marks.flatMap(mark => [
      line(x(mark), top, x(mark), bottom, 'grid'),
      text(x(mark), bottom + 16, show(mark), 'faint', middle),
    ]),
    ...bars.flatMap((bar, row) => [
      rect(at, rowY(row) + 4, Math.max(1, x(value(bar)) - at), rowHeight - 8, bar.colour, 'rx="2"'),
      text(x(value(bar)) + 5, rowY(row) + 15, show(value(bar)), 'ink', 'font-size="11"'),
    ]),
    ...bars
      .filter(({ name }) => lines.includes(name))
      .flatMap(bar => [
        line(x(value(bar)), top, x(value(bar)), bottom + 4, 'mark', 'stroke-dasharray="4 3"'),
        text(
          at,
          bottom + 36 + 15 * lines.indexOf(bar.name),
          `${show(value(bar))}: ${bar.title}`,
          'mark',
          'font-size="11"',
        ),
      ]),
  ];
}

function barsOf({ contenders, calls }: BenchResults): readonly Bar[] {
  return contenders.flatMap(({ name, title, family }) => {
    const rounds = calls[name] ?? [];
    if (rounds.length === 0) return [];
    const colour = family === 'product' || family === 'floor' ? family : 'peer';
    const perSecond = spreadOf(rounds.map(round => round.perSecond)).median;
    return [
      { name, title, colour, perSecond, cpu: spreadOf(rounds.map(round => round.cpuMicrosecondsPerCall)).median },
    ];
  });
}

function rowY(row: number): number {
  return top + row * rowHeight;
}
