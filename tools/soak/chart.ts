// The chart of a soak: resident memory and event-loop delay, second by second.
import { type Colour, line, linearMarks, polyline, svgDocument, text } from '../../bench/report/svg.ts';
import { type SoakSample, warmUpShare } from './verdict.ts';

const width = 960;
const left = 64;
const plotWidth = width - left - 24;
const panelHeight = 150;
const panelGap = 48;
const top = 96;

export function soakSvg(samples: readonly SoakSample[], title: string, subtitle: string): string {
  const endSeconds = Math.max(1, samples.at(-1)?.atSeconds ?? 1);
  const x = (seconds: number): number => left + (seconds / endSeconds) * plotWidth;
  const bottom = top + 2 * panelHeight + panelGap;
  const warm = x(endSeconds * warmUpShare);
  return svgDocument(width, bottom + 44, title, [
    text(left, 34, title, 'ink', 'font-size="20" font-weight="600"'),
    text(left, 56, subtitle, 'faint'),
    panel(
      'resident memory (MB)',
      top,
      samples.map(each => each.residentMegabytes),
      'product',
    ),
    panel(
      'delay of the event loop, p99 (ms)',
      top + panelHeight + panelGap,
      samples.map(each => each.loopDelayMs),
      'peer',
    ),
    line(warm, top, warm, bottom, 'mark', 'stroke-dasharray="4 3"'),
    text(warm + 4, top + 12, 'evaluated from here', 'mark', 'font-size="11"'),
    ...linearMarks(endSeconds)
      .filter(mark => mark <= endSeconds)
      .map(mark => text(x(mark), bottom + 20, duration(mark), 'faint', 'text-anchor="middle" font-size="11"')),
  ]);

  function panel(head: string, from: number, values: readonly number[], colour: Colour): string {
    const marks = linearMarks(Math.max(0, ...values.filter(Number.isFinite)));
    const y = (value: number): number => from + panelHeight * (1 - value / (marks.at(-1) ?? 1));
    const points = samples.map((sample, index) => {
      const value = values[index] ?? NaN;
      return Number.isFinite(value) ? ([x(sample.atSeconds), y(value)] as const) : undefined;
    });
    return [
      text(left, from - 10, head, 'ink', 'font-weight="600"'),
      ...marks.flatMap(mark => [
        line(left, y(mark), left + plotWidth, y(mark), 'grid'),
        text(left - 8, y(mark) + 4, mark.toLocaleString('en'), 'faint', 'text-anchor="end" font-size="11"'),
      ]),
      polyline(points, colour),
    ].join('\n');
  }
}

function duration(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 6) / 10} min`;
}
