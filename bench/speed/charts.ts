// The two pictures of a bench: what a call costs, with the floors as lines across all bars, and latency at each rate.
import { type Colour, dot, line, linearMarks, powerMarks, rect, svgDocument, text } from '../report/svg.ts';
import { runLine } from './report.ts';
import type { BenchResults } from './results.ts';
import { spreadOf } from './spread.ts';

const width = 1200;
const labels = 372;
const gap = 70;
const top = 92;
const rowHeight = 24;

interface Bar {
  readonly name: string;
  readonly title: string;
  readonly colour: Colour;
  readonly perSecond: number;
  readonly cpu: number;
}

/** The floors that a line is drawn for. */
const lines: readonly string[] = ['nothing', 'go-jwt'];

export function callsSvg(results: BenchResults): string {
  const bars = barsOf(results);
  const plot = (width - labels - gap - 2 * 24) / 2;
  const bottom = top + bars.length * rowHeight;
  const title = 'Throughput and CPU time a call';
  const panels: readonly {
    readonly head: string;
    readonly at: number;
    value(bar: Bar): number;
    show(value: number): string;
  }[] = [
    {
      head: 'calls a second on one core',
      at: labels,
      value: bar => bar.perSecond,
      show: value => Math.round(value).toLocaleString('en'),
    },
    { head: 'CPU µs a call', at: labels + plot + gap, value: bar => bar.cpu, show: value => value.toFixed(0) },
  ];
  return svgDocument(width, bottom + 56, title, [
    text(24, 34, title, 'ink', 'font-size="20" font-weight="600"'),
    text(24, 56, runLine(results), 'faint', 'font-size="11.5"'),
    ...bars.map(({ title, colour }, row) =>
      text(
        labels - 12,
        rowY(row) + 15,
        title,
        colour === 'product' ? 'ink' : 'faint',
        'text-anchor="end" font-size="11.5"',
      ),
    ),
    ...panels.flatMap(({ head, at, value, show }) => {
      const marks = linearMarks(Math.max(0, ...bars.map(value)));
      const x = (each: number): number => at + (each / (marks.at(-1) ?? 1)) * plot;
      return [
        text(at, top - 10, head, 'ink', 'font-weight="600"'),
        ...marks.flatMap(mark => [
          line(x(mark), top, x(mark), bottom, 'grid'),
          text(x(mark), bottom + 16, show(mark), 'faint', 'text-anchor="middle" font-size="11"'),
        ]),
        ...bars.flatMap((bar, row) => [
          rect(at, rowY(row) + 4, Math.max(1, x(value(bar)) - at), rowHeight - 8, bar.colour, 'rx="2"'),
          text(x(value(bar)) + 5, rowY(row) + 15, show(value(bar)), 'ink', 'font-size="11"'),
        ]),
        ...bars
          .filter(({ name }) => lines.includes(name))
          .flatMap(bar => [
            line(x(value(bar)), top, x(value(bar)), bottom + 22, 'mark', 'stroke-dasharray="4 3"'),
            text(
              x(value(bar)),
              bottom + (bar.name === lines[0] ? 34 : 48),
              bar.name,
              'mark',
              'text-anchor="middle" font-size="11"',
            ),
          ]),
      ];
    }),
  ]);
}

function barsOf({ contenders, calls }: BenchResults): readonly Bar[] {
  return contenders.flatMap(({ name, title, family }) => {
    const rounds = calls[name];
    if (rounds === undefined || rounds.length === 0) return [];
    return [
      {
        name,
        title,
        colour: colourOf(family),
        perSecond: spreadOf(rounds.map(round => round.perSecond)).median,
        cpu: spreadOf(rounds.map(round => round.cpuMicrosecondsPerCall)).median,
      },
    ];
  });
}

function colourOf(family: string): Colour {
  return family === 'product' || family === 'floor' ? family : 'peer';
}

function rowY(row: number): number {
  return top + row * rowHeight;
}

/** A row a contender: from its p50 over its p99 to its p99.9, on one logarithmic axis for all rates. */
export function latencySvg(results: BenchResults): string {
  const { latency, contenders } = results;
  const names = Object.keys(latency);
  const rates = [...new Set(names.flatMap(name => Object.keys(latency[name] ?? {})))].sort(
    (a, b) => Number(a) - Number(b),
  );
  const medians = (name: string, rate: string): readonly number[] | undefined => {
    const rounds = latency[name]?.[rate];
    if (rounds === undefined || rounds.length === 0) return undefined;
    return [
      spreadOf(rounds.map(({ p50Ms }) => p50Ms)).median,
      spreadOf(rounds.map(({ p99Ms }) => p99Ms)).median,
      spreadOf(rounds.map(({ p999Ms }) => p999Ms)).median,
    ];
  };
  const marks = powerMarks(names.flatMap(name => rates.flatMap(rate => medians(name, rate) ?? [])));
  const [low = 1] = marks;
  const high = marks.at(-1) ?? 10;
  const plot = rates.length === 0 ? 0 : (width - labels - 24 - gap * (rates.length - 1)) / rates.length;
  const bottom = top + names.length * rowHeight;
  const title = 'Latency at fixed rates';
  return svgDocument(width, bottom + 52, title, [
    text(24, 34, title, 'ink', 'font-size="20" font-weight="600"'),
    text(
      24,
      56,
      `p50, p99 and p99.9 in milliseconds, from when a call was due. ${runLine(results)}`,
      'faint',
      'font-size="11.5"',
    ),
    ...names.map((name, row) =>
      text(
        labels - 12,
        rowY(row) + 15,
        contenders.find(each => each.name === name)?.title ?? name,
        'ink',
        'text-anchor="end" font-size="11.5"',
      ),
    ),
    ...rates.flatMap((rate, column) => {
      const at = labels + column * (plot + gap);
      const x = (ms: number): number => at + (Math.log10(ms / low) / Math.log10(high / low)) * plot;
      return [
        text(at, top - 10, `${Number(rate).toLocaleString('en')} calls a second`, 'ink', 'font-weight="600"'),
        ...marks.flatMap(mark => [
          line(x(mark), top, x(mark), bottom, 'grid'),
          text(x(mark), bottom + 16, `${mark} ms`, 'faint', 'text-anchor="middle" font-size="11"'),
        ]),
        ...names.flatMap((name, row) => {
          const values = medians(name, rate);
          const y = rowY(row) + rowHeight / 2;
          if (values === undefined) return [text(at + 6, y + 4, 'beyond its capacity', 'faint', 'font-size="11"')];
          const colour = colourOf(contenders.find(each => each.name === name)?.family ?? '');
          const [p50 = NaN, p99 = NaN, p999 = NaN] = values;
          return [
            line(x(p50), y, x(p999), y, colour, 'stroke-width="2"'),
            dot(x(p50), y, 3.5, colour),
            dot(x(p99), y, 5, colour),
            dot(x(p999), y, 2.5, colour),
          ];
        }),
      ];
    }),
    text(
      labels,
      bottom + 38,
      'small dot left: p50 · large dot: p99 · small dot right: p99.9',
      'faint',
      'font-size="11"',
    ),
  ]);
}
