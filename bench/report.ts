// What a bench has measured: the floors of the contract, the tables, bench/results.md and its picture. About the machine it states what a reader needs to compare.
import { variants } from './behind-envoy.ts';
import type { Figures } from './load.ts';
import { line, linearMarks, rect, svgDocument, text } from './report/svg.ts';
import { cell, type Table, toMarkdown } from './report/table.ts';

/** The values of the rounds, by name. */
export type Rounds<Value> = ReadonlyMap<string, readonly Value[]>;

export interface Results {
  readonly isWhole: boolean;
  /** Commit, machine and versions, in one line. */
  readonly about: string;
  readonly contenders: readonly { readonly name: string; readonly title: string; readonly family: string }[];
  /** Contenders that could not be built or started, with the reason. */
  readonly absent: readonly string[];
  readonly calls: Rounds<Figures>;
  readonly envoy: Rounds<Figures>;
  /** In MB: `known`, `rotation` and `large` the peak under load, `sidecar-known` and `sidecar-nothing` anonymous at 200 calls a second. */
  readonly memory: Rounds<number>;
  /** In milliseconds. */
  readonly start: Rounds<number>;
}

interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** The median of endless rounds lies between these with 95 % (ranks of the binomial distribution). */
  readonly low: number;
  readonly high: number;
}

interface Floor {
  readonly text: string;
  readonly bound: string;
  readonly spread: Spread | undefined;
  /** `undecided`: a ratio of which the rounds do not show on which side of the bound it lies. */
  readonly verdict: 'met' | 'NOT MET' | 'undecided' | 'not measured' | 'not evaluated';
  readonly show: (value: number) => string;
}

const times = (value: number): string => `${value.toFixed(2)} ×`;
const whole = (value: number): string => Math.round(value).toLocaleString('en');

function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.filter(Number.isFinite).toSorted((one, other) => one - other);
  const [min, max, half] = [sorted[0], sorted.at(-1), (sorted.length - 1) / 2];
  if (min === undefined || max === undefined) return undefined;
  const [below, above] = [
    Math.floor(half - 0.98 * Math.sqrt(sorted.length)),
    Math.ceil(half + 0.98 * Math.sqrt(sorted.length)),
  ];
  return {
    median: ((sorted[Math.floor(half)] ?? min) + (sorted[Math.ceil(half)] ?? max)) / 2,
    min,
    max,
    low: sorted[below] ?? min,
    high: sorted[above] ?? max,
  };
}

/** Round by round, so that a disturbance affects both. */
function ratioOf<Value>(rounds: Rounds<Value>, name: string, other: string, of: (value: Value) => number) {
  const others = rounds.get(other)?.map(of) ?? [];
  return spreadOf((rounds.get(name) ?? []).map((value, round) => of(value) / (others[round] ?? NaN)));
}

/** Those of the contract. */
export function floorsOf({ isWhole, calls, envoy, memory, start }: Results): readonly Floor[] {
  const floor = (
    text: string,
    isLeast: boolean,
    value: number,
    unit: '×' | 'MB' | 'ms',
    spread: Spread | undefined,
  ): Floor => {
    const reaches = (measured: number): boolean => (isLeast ? measured >= value : measured <= value);
    const show = (measured: number): string => (unit === '×' ? times(measured) : `${whole(measured)} ${unit}`);
    const verdictOf = (measured: Spread): Floor['verdict'] => {
      if (!isWhole) return 'not evaluated';
      if (unit === '×' && reaches(measured.low) !== reaches(measured.high)) return 'undecided';
      return reaches(measured.median) ? 'met' : 'NOT MET';
    };
    const verdict = spread === undefined ? 'not measured' : verdictOf(spread);
    return { text, bound: `${isLeast ? '≥' : '≤'} ${show(value)}`, spread, show, verdict };
  };
  // Calls a second of a full core: what a neighbour or the load keeps a server waiting does not count.
  const ofCore = (each: Figures): number => 1e6 / each.cpuMicrosecondsPerCall;
  const rate = (name: string, other: string) => ratioOf(calls, name, other, ofCore);
  const behind = (other: string) => ratioOf(envoy, 'known', other, ofCore);
  const peak = (name: string) => spreadOf(memory.get(name) ?? []);
  const doesNothing = 'grpc-js with proto-loader that does nothing';
  const go = 'grpc-go with golang-jwt that verifies each call';
  const unix = ratioOf(envoy, 'known-unix', 'known-before', ofCore);
  return [
    floor(`a known token, to ${doesNothing}`, true, 1, '×', rate('known', 'nothing')),
    floor('a known token, to the same with the flags of before', true, 1.3, '×', rate('known', 'nothing-before')),
    floor(`a known token, to ${go}`, true, 1.1, '×', rate('known', 'go-jwt')),
    floor('a known token, to account-authz before', true, 1.5, '×', rate('known', 'known-before')),
    floor(`a new token, to ${go}`, true, 0.45, '×', rate('new', 'go-jwt-new')),
    floor('a new token, to account-authz before', true, 1.3, '×', rate('new', 'new-before')),
    floor('a known token, to opa-envoy-plugin', true, 8, '×', rate('known', 'opa')),
    floor('a known token, to Authorino', true, 12, '×', rate('known', 'authorino')),
    floor('requests behind Envoy, to opa-envoy-plugin there', true, 3, '×', behind('opa')),
    floor('requests behind Envoy over a Unix socket, to account-authz before, over TCP', true, 1.15, '×', unix),
    floor('resident under load with 10,000 cached tokens', false, 145, 'MB', peak('rotation')),
    floor('the same with tokens of 180 accounts', false, 155, 'MB', peak('large')),
    floor(
      'anonymous memory at 200 calls a second, to grpc-js that does nothing',
      false,
      1.15,
      '×',
      ratioOf(memory, 'sidecar-known', 'sidecar-nothing', each => each),
    ),
    floor('from start to first answer', false, 250, 'ms', spreadOf(start.get('known') ?? [])),
  ].filter(({ spread }) => isWhole || spread !== undefined);
}

const left = (head: string) => ({ head, align: 'left' as const });
const right = (head: string) => ({ head, align: 'right' as const });
const range = (spread: Spread, show: (value: number) => string): string => `${show(spread.min)} … ${show(spread.max)}`;

export function tablesOf(results: Results): readonly { readonly title: string; readonly table: Table }[] {
  const { calls, envoy, memory, start, contenders } = results;
  const titleOf = (name: string): string => contenders.find(each => each.name === name)?.title ?? name;
  const floors: Table = {
    columns: [left('floor'), right('bound'), right('measured'), right('95 %'), left('')],
    rows: floorsOf(results).map(({ text, bound, spread, verdict, show }) => [
      cell(text),
      cell(bound),
      cell(spread === undefined ? '–' : show(spread.median), 'strong'),
      cell(spread === undefined ? '' : `${show(spread.low)} … ${show(spread.high)}`, 'dim'),
      cell(verdict, verdict === 'met' ? 'good' : verdict === 'NOT MET' ? 'bad' : 'dim'),
    ]),
  };
  return [
    { title: 'Floors', table: floors },
    { title: 'Throughput and CPU time a call', table: figuresTable(calls, name => `\`${name}\`: ${titleOf(name)}`) },
    { title: 'Behind Envoy, which shares the core', table: figuresTable(envoy, behindTitleOf) },
    {
      title: 'Memory in MB: the peak under load, and anonymous memory at 200 calls a second',
      table: valuesTable(memory, 'MB'),
    },
    { title: 'Start to first answer', table: valuesTable(start, 'ms', titleOf) },
  ].filter(({ table }) => table.rows.length > 0);
}

function behindTitleOf(name: string): string {
  return variants.find(each => each.name === name)?.title ?? name;
}

function figuresTable(rounds: Rounds<Figures>, titleOf: (name: string) => string): Table {
  const rows = [...rounds].flatMap(([name, figures]) => {
    const [rate, cpu] = [
      spreadOf(figures.map(each => each.perSecond)),
      spreadOf(figures.map(each => each.cpuMicrosecondsPerCall)),
    ];
    const share = spreadOf(figures.map(each => each.serverShare));
    if (rate === undefined || cpu === undefined || share === undefined) return [];
    const cells = [whole(rate.median), range(rate, whole), cpu.median.toFixed(1), range(cpu, each => each.toFixed(1))];
    return [[titleOf(name), ...cells, `${Math.round(share.median * 100)} %`].map(each => cell(each))];
  });
  const heads = ['calls a second', 'min … max', 'CPU µs a call', 'min … max', 'of its core'];
  return { columns: [left(''), ...heads.map(right)], rows };
}

function valuesTable(rounds: Rounds<number>, unit: string, titleOf = (name: string) => name): Table {
  const rows = [...rounds].flatMap(([name, values]) => {
    const spread = spreadOf(values);
    return spread === undefined
      ? []
      : [[titleOf(name), whole(spread.median), range(spread, whole)].map(each => cell(each))];
  });
  return { columns: [left(''), right(unit), right('min … max')], rows };
}

export function toPage(results: Results): string {
  return [
    '# Speed',
    '',
    `Written by \`npm run bench\`; what it measures and how: [docs/dev/performance.md](../docs/dev/performance.md). ${results.about}.`,
    '',
    'Medians of the rounds, ratios within each round first. *95 %*: where the median of endless rounds lies. *undecided*: the bound lies there too. *of its core*: far below 100 %, something else was the bottleneck.',
    '',
    '![Throughput and CPU time a call](results/calls.svg)',
    '',
    ...tablesOf(results).flatMap(({ title, table }) => [`## ${title}`, '', toMarkdown(table), '']),
    ...results.absent.map(each => `Absent: ${each}\n`),
  ].join('\n');
}

const width = 1200;
const labels = 372;
const gap = 70;
const top = 98;
const rowHeight = 24;
const plot = (width - labels - gap - 2 * 24) / 2;

/** Throughput and CPU time of each contender, with `nothing` and `go-jwt-new` as lines across all bars. */
export function toPicture({ calls, contenders, about }: Results): string {
  const bars = contenders.flatMap(({ name, title, family }, row) => {
    const figures = calls.get(name) ?? [];
    const [rate, cpu] = [
      spreadOf(figures.map(each => each.perSecond)),
      spreadOf(figures.map(each => each.cpuMicrosecondsPerCall)),
    ];
    const colour = family === 'product' || family === 'floor' ? family : 'peer';
    return rate === undefined || cpu === undefined
      ? []
      : [{ name, title, colour, y: top + row * rowHeight, values: [rate.median, cpu.median] } as const];
  });
  const bottom = top + contenders.length * rowHeight;
  const parts = about.split('; ');
  const title = 'Throughput and CPU time a call';
  const small = 'font-size="11"';
  const panels = ['calls a second on one core', 'CPU µs a call'].flatMap((head, panel) => {
    const at = labels + panel * (plot + gap);
    const figureOf = (bar: (typeof bars)[number]): number => bar.values[panel] ?? NaN;
    const marks = linearMarks(Math.max(0, ...bars.map(figureOf)));
    const x = (value: number): number => at + (value / (marks.at(-1) ?? 1)) * plot;
    return [
      text(at, top - 10, head, 'ink', 'font-weight="600"'),
      ...marks.flatMap(mark => [
        line(x(mark), top, x(mark), bottom, 'grid'),
        text(x(mark), bottom + 16, whole(mark), 'faint', `text-anchor="middle" ${small}`),
      ]),
      ...bars.flatMap(bar => [
        rect(at, bar.y + 4, Math.max(1, x(figureOf(bar)) - at), rowHeight - 8, bar.colour, 'rx="2"'),
        text(x(figureOf(bar)) + 5, bar.y + 15, whole(figureOf(bar)), 'ink', small),
      ]),
      ...bars
        .filter(({ name }) => name === 'nothing' || name === 'go-jwt-new')
        .map(bar => line(x(figureOf(bar)), top, x(figureOf(bar)), bottom + 4, 'mark', 'stroke-dasharray="4 3"')),
    ];
  });
  return svgDocument(width, bottom + 40, title, [
    text(24, 34, title, 'ink', 'font-size="20" font-weight="600"'),
    ...[parts.slice(0, 2), parts.slice(2)].map((line, row) =>
      text(24, 52 + 15 * row, line.join('; '), 'faint', 'font-size="11.5"'),
    ),
    ...bars.map(({ title, colour, y }) =>
      text(labels - 12, y + 15, title, colour === 'product' ? 'ink' : 'faint', `text-anchor="end" font-size="11.5"`),
    ),
    ...panels,
  ]);
}
