// A timeline as one self-contained SVG: phases as labelled bands, and below each other panels of lines, stacked columns or ticks
// on one axis of time. Light background, no script, nothing loaded.

export interface Timeline {
  readonly title: string;
  readonly subtitle: string;
  /** Length of the axis, which begins at 0. All times are milliseconds on it. */
  readonly durationMs: number;
  readonly phases: readonly TimelinePhase[];
  readonly panels: readonly Panel[];
}

export interface TimelinePhase {
  readonly label: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** The part that is shaded. */
  readonly shaded: readonly [fromMs: number, toMs: number];
  readonly events: readonly { readonly atMs: number; readonly label: string }[];
}

export type Panel =
  | {
      readonly kind: 'lines';
      readonly title: string;
      readonly height: number;
      /** `log`: powers of ten, for what differs by magnitudes. */
      readonly scale: 'linear' | 'log';
      readonly series: readonly LineSeries[];
    }
  | {
      readonly kind: 'stack';
      readonly title: string;
      readonly height: number;
      readonly bucketMs: number;
      readonly series: readonly StackSeries[];
    }
  | {
      readonly kind: 'ticks';
      readonly title: string;
      readonly height: number;
      readonly series: readonly TickSeries[];
    };

interface Named {
  readonly name: string;
  readonly colour: string;
}

export interface LineSeries extends Named {
  /** A point without a value is a gap. */
  readonly points: readonly { readonly atMs: number; readonly value: number | undefined }[];
}

export interface StackSeries extends Named {
  /** One value a bucket, the first series at the bottom. */
  readonly values: readonly number[];
}

export interface TickSeries extends Named {
  readonly times: readonly number[];
}

const width = 1280;
const left = 64;
const right = 24;
const plotWidth = width - left - right;
const phasesTop = 84;
const phasesHeight = 40;
const panelGap = 38;
const ink = '#1f2933';
const faint = '#6b7785';
const grid = '#dde3ea';

export function timelineSvg(timeline: Timeline): string {
  const x = (ms: number): number => round(left + (ms / timeline.durationMs) * plotWidth);
  const tops: number[] = [];
  let bottom = phasesTop + phasesHeight;
  for (const panel of timeline.panels) {
    tops.push(bottom + panelGap);
    bottom += panelGap + panel.height;
  }
  const height = bottom + 48;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(timeline.title)}" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12" fill="${ink}">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(left, 34, timeline.title, 'font-size="20" font-weight="600"'),
    text(left, 56, timeline.subtitle, `fill="${faint}"`),
    ...timeline.phases.map((phase, index) => phaseBand(phase, index, x, bottom)),
    ...timeline.panels.map((panel, index) => drawPanel(panel, tops[index] ?? 0, x, timeline.durationMs)),
    ...timeline.phases.map(phase => phaseEvents(phase, x, bottom)),
    timeAxis(timeline.durationMs, x, bottom),
    '</svg>\n',
  ].join('\n');
}

function phaseBand(phase: TimelinePhase, index: number, x: (ms: number) => number, bottom: number): string {
  const [from, to] = [x(phase.fromMs), x(phase.toMs)];
  const [shadedFrom, shadedTo] = phase.shaded.map(x) as [number, number];
  return [
    rect(from, phasesTop, to - from, bottom - phasesTop, index % 2 === 0 ? '#f7f9fb' : '#ffffff'),
    rect(shadedFrom, phasesTop, shadedTo - shadedFrom, bottom - phasesTop, '#fff1d6', 'fill-opacity="0.75"'),
    line(from, phasesTop, from, bottom, grid),
    line(to, phasesTop, to, bottom, grid),
    text((from + to) / 2, phasesTop - 6, phase.label, 'text-anchor="middle" font-weight="600"'),
  ].join('\n');
}

const rowHeight = 13;

/** Labels that would run into each other go one row down. */
function phaseEvents(phase: TimelinePhase, x: (ms: number) => number, bottom: number): string {
  const rowEnds: number[] = [];
  return phase.events
    .map(({ atMs, label }) => {
      const at = x(atMs);
      const labelWidth = label.length * 5.6 + 8;
      const free = rowEnds.findIndex(end => end <= at);
      const row = free === -1 ? rowEnds.length : free;
      rowEnds[row] = at + labelWidth;
      const y = phasesTop + rowHeight * (row + 1) - 2;
      return [
        line(at, y - 9, at, bottom, '#b7791f', 'stroke-dasharray="2 3" stroke-opacity="0.8"'),
        text(at + 3, y, label, 'font-size="10.5" fill="#8a5a12"'),
      ].join('\n');
    })
    .join('\n');
}

function drawPanel(panel: Panel, top: number, x: (ms: number) => number, durationMs: number): string {
  const parts = [
    text(left, top - 8, panel.title, 'font-weight="600"'),
    panel.series.length < 2 ? '' : legend(panel.series, top - 8, panel.kind === 'lines' ? 'line' : 'box'),
  ];
  switch (panel.kind) {
    case 'lines':
      parts.push(...drawLines(panel, top, x));
      break;
    case 'stack':
      parts.push(...drawStack(panel, top, x, durationMs));
      break;
    case 'ticks':
      parts.push(line(left, top + panel.height, left + plotWidth, top + panel.height, grid));
      for (const { times, colour } of panel.series) {
        const path = times.map(ms => `M${x(ms)} ${top + 2}V${top + panel.height}`).join('');
        parts.push(`<path d="${path}" stroke="${colour}" stroke-width="1.6" fill="none"/>`);
      }
      break;
  }
  return parts.join('\n');
}

function drawLines(panel: Panel & { kind: 'lines' }, top: number, x: (ms: number) => number): string[] {
  const values = panel.series.flatMap(({ points }) =>
    points.flatMap(({ value }) => (value === undefined ? [] : [value])),
  );
  const axis = panel.scale === 'log' ? logAxis(values) : linearAxis(values);
  const y = (value: number): number => round(top + panel.height * (1 - axis.position(value)));
  return [
    ...axis.marks.map(mark => gridLine(y(mark), axis.label(mark))),
    ...panel.series.map(({ points, colour }) => {
      let isOn = false;
      const path = points.map(({ atMs, value }) => {
        const step = value === undefined ? '' : `${isOn ? 'L' : 'M'}${x(atMs)} ${y(value)}`;
        isOn = value !== undefined;
        return step;
      });
      return `<path d="${path.join('')}" stroke="${colour}" stroke-width="1.5" stroke-linejoin="round" fill="none"/>`;
    }),
  ];
}

function drawStack(
  panel: Panel & { kind: 'stack' },
  top: number,
  x: (ms: number) => number,
  durationMs: number,
): string[] {
  const buckets = Math.ceil(durationMs / panel.bucketMs);
  const sums = Array.from({ length: buckets }, () => 0);
  const shapes: { readonly colour: string; readonly lower: number[]; readonly upper: number[] }[] = [];
  for (const { colour, values } of panel.series) {
    const lower = [...sums];
    for (let index = 0; index < buckets; index++) sums[index] = (sums[index] ?? 0) + (values[index] ?? 0);
    shapes.push({ colour, lower, upper: [...sums] });
  }
  const axis = linearAxis([0, ...sums]);
  const y = (value: number): number => round(top + panel.height * (1 - axis.position(value)));
  const edge = (index: number): number => x(Math.min(index * panel.bucketMs, durationMs));
  return [
    ...axis.marks.map(mark => gridLine(y(mark), axis.label(mark))),
    ...shapes.map(({ colour, lower, upper }) => {
      // One closed shape for each run of buckets that have something to show.
      let path = '';
      for (let start = 0; start < buckets; start++) {
        if (lower[start] === upper[start]) continue;
        let end = start;
        while (end < buckets && lower[end] !== upper[end]) end++;
        path += `M${edge(start)} ${y(lower[start] ?? 0)}`;
        for (let index = start; index < end; index++) path += `V${y(upper[index] ?? 0)}H${edge(index + 1)}`;
        for (let index = end - 1; index >= start; index--) path += `V${y(lower[index] ?? 0)}H${edge(index)}`;
        path += 'Z';
        start = end;
      }
      return `<path d="${path}" fill="${colour}"/>`;
    }),
  ];
}

interface Axis {
  readonly marks: readonly number[];
  /** 0 at the bottom, 1 at the top. */
  position(value: number): number;
  label(mark: number): string;
}

function linearAxis(values: readonly number[]): Axis {
  const highest = Math.max(1, ...values);
  const power = 10 ** Math.floor(Math.log10(highest / 3));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(each => highest / each <= 4) ?? highest;
  const count = Math.ceil(highest / step);
  return {
    marks: Array.from({ length: count + 1 }, (_, index) => index * step),
    position: value => value / (count * step),
    label: mark => mark.toLocaleString('en'),
  };
}

function logAxis(values: readonly number[]): Axis {
  const positive = values.filter(value => value > 0);
  // A value just below a power of ten is drawn on it, rather than for a decade of its own.
  const low = Math.floor(Math.log10(Math.min(1, ...positive)) + 0.1);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(1, ...positive))));
  return {
    marks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
    position: value => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low),
    label: mark => mark.toLocaleString('en'),
  };
}

function gridLine(y: number, label: string): string {
  return [
    line(left, y, left + plotWidth, y, grid),
    text(left - 8, y + 4, label, `text-anchor="end" font-size="11" fill="${faint}"`),
  ].join('\n');
}

function legend(series: readonly Named[], y: number, mark: 'line' | 'box'): string {
  const parts: string[] = [];
  let at = left + plotWidth;
  for (const { name, colour } of series.toReversed()) {
    at -= name.length * 7;
    parts.push(text(at, y, name, 'font-size="11.5"'));
    at -= 18;
    parts.push(mark === 'line' ? rect(at, y - 5, 13, 2.5, colour) : rect(at, y - 9, 10, 10, colour));
    at -= 16;
  }
  return parts.join('\n');
}

function timeAxis(durationMs: number, x: (ms: number) => number, bottom: number): string {
  const seconds = durationMs / 1000;
  const step = [1, 2, 5, 10, 20, 60, 120, 300, 600].find(each => seconds / each <= 16) ?? 3600;
  const marks = Array.from({ length: Math.floor(seconds / step) + 1 }, (_, index) => index * step);
  return [
    line(left, bottom, left + plotWidth, bottom, faint),
    ...marks.map(mark => {
      const at = x(mark * 1000);
      return (
        line(at, bottom, at, bottom + 5, faint) +
        text(at, bottom + 19, `${mark} s`, `text-anchor="middle" font-size="11" fill="${faint}"`)
      );
    }),
  ].join('\n');
}

function text(x: number, y: number, content: string, attributes: string): string {
  return `<text x="${round(x)}" y="${round(y)}" ${attributes}>${escaped(content)}</text>`;
}

function line(x1: number, y1: number, x2: number, y2: number, colour: string, attributes = ''): string {
  return `<path d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}" stroke="${colour}" fill="none" ${attributes}/>`;
}

function rect(x: number, y: number, w: number, h: number, colour: string, attributes = ''): string {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${colour}" ${attributes}/>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
