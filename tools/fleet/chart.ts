// The chart of a fleet: the fetches per second of each scenario on a logarithmic scale, with the event at 0.
import { line, linearMarks, polyline, svgDocument, text } from '../../bench/report/svg.ts';
import { isMet, type Result } from './report.ts';

const panel = { width: 420, height: 130, left: 56, gap: 64 } as const;
const columns = 2;
const top = 104;

export function fleetSvg(results: readonly Result[], title: string, subtitle: string): string {
  const highest = Math.max(10, ...results.map(({ outcome }) => outcome.peak));
  const decades = Math.ceil(Math.log10(highest));
  const rows = Math.ceil(results.length / columns);
  const width = columns * (panel.left + panel.width) + 24;
  return svgDocument(width, top + rows * (panel.height + panel.gap), title, [
    text(panel.left, 34, title, 'ink', 'font-size="20" font-weight="600"'),
    text(panel.left, 56, subtitle, 'faint'),
    ...results.flatMap((result, index) => {
      const left = panel.left + (index % columns) * (panel.left + panel.width);
      return drawPanel(result, left, top + Math.floor(index / columns) * (panel.height + panel.gap), decades);
    }),
  ]);
}

function drawPanel({ scenario, outcome }: Result, left: number, from: number, decades: number): readonly string[] {
  const { fetches, afterFirstMinute } = outcome;
  const minutes = fetches.length / 60;
  const width = panel.width - 8;
  const bottom = from + panel.height;
  const x = (atMinutes: number): number => left + (atMinutes / minutes) * width;
  // The scale starts at one fetch per second: a logarithm has no zero.
  const y = (perSecond: number): number => bottom - (Math.log10(Math.max(1, perSecond)) / decades) * panel.height;
  const marks = Array.from({ length: decades + 1 }, (_, power) => 10 ** power);
  const met = isMet({ scenario, outcome });
  return [
    text(left, from - 10, scenario.name, 'ink', 'font-weight="600"'),
    text(left + width, from - 10, met ? 'bar met' : 'BAR MISSED', met ? 'product' : 'peer', 'text-anchor="end"'),
    ...marks.flatMap(mark => [
      line(left, y(mark), left + width, y(mark), 'grid'),
      text(left - 6, y(mark) + 4, mark.toLocaleString('en'), 'faint', 'text-anchor="end" font-size="11"'),
    ]),
    ...linearMarks(minutes)
      .filter(mark => mark <= minutes)
      .map(mark => text(x(mark), bottom + 16, `${mark} min`, 'faint', 'text-anchor="middle" font-size="11"')),
    polyline(
      fetches.map((count, second) => [x((second + 0.5) / 60), y(count)] as const),
      'product',
    ),
    line(x(1), y(afterFirstMinute), x(minutes), y(afterFirstMinute), 'mark', 'stroke-dasharray="4 3"'),
  ];
}
