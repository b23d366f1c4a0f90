// The tables of a bench and its results page. About the machine it states only the versions of the programs.
import { cell, type Table, toMarkdown } from '../report/table.ts';
import { envoyTitles } from './envoy-variants.ts';
import { evaluateFloors, type Floor } from './floors.ts';
import type { BenchResults, CallRound, EnvoyRound, LatencyRound, Rounds } from './results.ts';
import { type Spread, spreadOf } from './rounds.ts';

export interface Section {
  readonly title: string;
  readonly note: string;
  readonly table: Table;
}

/** A column: the median of the rounds, optionally with minimum and maximum. */
interface Figure<Round> {
  readonly head: string;
  value(round: Round): number;
  show(value: number): string;
  readonly withRange?: boolean;
}

const left = (head: string) => ({ head, align: 'left' as const });
const right = (head: string) => ({ head, align: 'right' as const });

/** The non-empty sections. */
export function sections(results: BenchResults): readonly Section[] {
  const { calls, latency, start, envoy, memory, contenders } = results;
  const titleOf = (name: string): string => contenders.find(each => each.name === name)?.title ?? name;
  const all: readonly Section[] = [
    {
      title: 'Floors',
      note: 'Ratios of throughput where nothing else is said; the median of the rounds counts. *undecided*: the bound lies within the spread of the rounds, so the ratio is reported and decides nothing.',
      table: floorsTable(evaluateFloors(results)),
    },
    {
      title: 'Throughput and CPU time a call',
      note: 'A closed loop; *core* is the share of its core that the server used, *load* that of the load generator.',
      table: tableOf(calls, name => `\`${name}\`: ${titleOf(name)}`, callFigures),
    },
    {
      title: 'Latency at a fixed rate',
      note: 'An open loop; milliseconds from the time that a call was due. The tails have no floor: on a shared machine its noise decides them.',
      table: tableOf(latency, titleOf, latencyFigures),
    },
    {
      title: 'Start to first answer',
      note: 'Milliseconds from the start of the process.',
      table: tableOf(start, titleOf, [{ head: 'ms', value: ms => ms, show: whole, withRange: true }]),
    },
    {
      title: 'Behind Envoy',
      note: 'Envoy with one worker, the authorizer and the upstream share one core. Latency at a fixed rate.',
      table: tableOf(envoy, name => envoyTitles.get(name) ?? name, envoyFigures),
    },
    {
      title: 'Memory',
      note: 'Peak resident memory under full load; anonymous memory of a new process after 20 seconds at 200 calls a second, as a sidecar gets them.',
      table: tableOf(memory, name => memoryTitles.get(name) ?? name, [
        { head: 'MB', value: megabytes => megabytes, show: tenths, withRange: true },
      ]),
    },
  ];
  return all.filter(({ table }) => table.rows.length > 0);
}

const memoryTitles: ReadonlyMap<string, string> = new Map([
  ['known', 'one known token'],
  ['rotation', '10,000 known tokens'],
  ['sidecar-nothing', 'at 200 calls a second, anonymous: grpc-js that does nothing'],
  ['sidecar-known', 'at 200 calls a second, anonymous: account-authz'],
]);

const callFigures: readonly Figure<CallRound>[] = [
  { head: 'calls a second', value: round => round.perSecond, show: whole, withRange: true },
  { head: 'CPU µs a call', value: round => round.cpuMicrosecondsPerCall, show: tenths, withRange: true },
  { head: 'core', value: round => round.serverShare, show: percent },
  { head: 'load', value: round => round.loadShare, show: percent },
  { head: 'RSS (MB)', value: round => round.residentMegabytes, show: whole },
];

const latencyFigures: readonly Figure<LatencyRound>[] = [
  { head: 'mean', value: round => round.meanMs, show: hundredths },
  { head: 'p50', value: round => round.p50Ms, show: hundredths },
  { head: 'p99', value: round => round.p99Ms, show: hundredths, withRange: true },
  { head: 'p99.9', value: round => round.p999Ms, show: hundredths },
];

const envoyFigures: readonly Figure<EnvoyRound>[] = [
  { head: 'requests a second', value: round => round.perSecond, show: whole, withRange: true },
  { head: 'CPU µs a request', value: round => round.cpuMicrosecondsPerRequest, show: tenths },
  ...latencyFigures,
];

function tableOf<Round>(
  rounds: Rounds<Round>,
  titleOf: (name: string) => string,
  figures: readonly Figure<Round>[],
): Table {
  return {
    columns: [
      left(''),
      ...figures.flatMap(({ head, withRange }) => (withRange ? [right(head), right('min … max')] : [right(head)])),
    ],
    rows: Object.entries(rounds)
      .filter(([, of]) => of.length > 0)
      .map(([name, of]) => [
        cell(titleOf(name), 'strong'),
        ...figures.flatMap(({ value, show, withRange }) => {
          const spread = spreadOf(of.map(value));
          const median = cell(show(spread.median), withRange ? 'strong' : 'plain');
          return withRange ? [median, cell(range(spread, show), 'dim')] : [median];
        }),
      ]),
  };
}

export function floorsTable(floors: readonly Floor[]): Table {
  return {
    columns: [left('floor'), right('bound'), right('measured'), right('min … max'), right('by CPU time'), left('')],
    rows: floors.map(({ text, bound, measured, byCpuTime, verdict }) => {
      const show = (value: number): string => `${significant(value)} ${bound.unit}`;
      return [
        cell(text),
        cell(`${bound.kind === 'at least' ? '≥' : '≤'} ${show(bound.value)}`),
        cell(measured === undefined ? '–' : show(measured.median), 'strong'),
        cell(measured === undefined ? '' : range(measured, significant), 'dim'),
        cell(byCpuTime === undefined ? '' : significant(byCpuTime.median), 'dim'),
        cell(verdict, verdict === 'met' ? 'good' : verdict === 'NOT MET' ? 'bad' : 'dim'),
      ];
    }),
  };
}

/** One sentence about the run, shared by the page and the chart. */
export function runLine({ run }: BenchResults): string {
  const versions = [
    `Node ${run.node}${run.nodeOptions.length === 0 ? '' : ` with ${run.nodeOptions.join(' ')}`}`,
    ...(run.go === undefined ? [] : [`Go ${run.go}`]),
    ...(run.envoy === undefined ? [] : [`Envoy ${run.envoy}`]),
  ];
  const cores = run.pinned ? 'one core for the server, another for the load' : 'not pinned to cores';
  return `${versions.join(', ')}; ${run.algorithm}; requests of ${run.requestBytes.toLocaleString('en')} bytes; ${run.rounds} rounds in turn; ${cores}`;
}

export function benchMarkdown(results: BenchResults): string {
  const absent = results.absent.map(({ name, title, reason }) => `- \`${name}\`, ${title}: ${reason}`);
  return [
    '# Speed',
    '',
    `Written by \`npm run bench\`; what it measures and how: [docs/dev/performance.md](../docs/dev/performance.md). ${runLine(results)}.`,
    '',
    ...(results.run.isWhole ? [] : ['A partial or quick run: no floor is evaluated.', '']),
    '![Throughput and CPU time a call](results/calls.svg)',
    '',
    ...sections(results).flatMap(({ title, note, table }) => [`## ${title}`, '', note, '', toMarkdown(table), '']),
    ...(absent.length === 0 ? [] : ['## Absent', '', ...absent, '']),
  ].join('\n');
}

/** docs/dev/performance.md with this run's floors between its markers. */
export function withFloors(document: string, results: BenchResults): string {
  const floors = [runLine(results), '', toMarkdown(floorsTable(evaluateFloors(results)))];
  return withPart(document, 'floors', floors.join('\n'));
}

/** What docs/sizing.md says of one instance. */
const sized: readonly string[] = ['known', 'known-unix', 'known-mtls', 'rotation', 'new'];

/** docs/sizing.md with this run's figures between its markers. */
export function withSizing(document: string, results: BenchResults): string {
  const ofSized = <Round>(rounds: Rounds<Round>): Rounds<Round> =>
    Object.fromEntries(Object.entries(rounds).filter(([name]) => sized.includes(name)));
  const own = { ...results, calls: ofSized(results.calls), latency: ofSized(results.latency), start: {}, envoy: {} };
  const tables = sections(own)
    .filter(({ title }) => title !== 'Floors')
    .flatMap(({ title, note, table }) => [`### ${title}`, '', note, '', toMarkdown(table), '']);
  return withPart(document, 'sizing', [`${runLine(results)}.`, '', ...tables].join('\n').trimEnd());
}

function withPart(document: string, name: string, text: string): string {
  const begin = `<!-- ${name}: written by npm run bench -->`;
  const [from, to] = [document.indexOf(begin), document.indexOf(`<!-- end of ${name} -->`)];
  if (from === -1 || to < from) throw new Error(`the document has no markers for the ${name}`);
  return `${document.slice(0, from + begin.length)}\n\n${text}\n\n${document.slice(to)}`;
}

function range({ min, max }: Spread, show: (value: number) => string): string {
  return `${show(min)} … ${show(max)}`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function tenths(value: number): string {
  return value.toFixed(1);
}

function hundredths(value: number): string {
  return value.toFixed(2);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** Two decimals below ten, none from a hundred on. */
function significant(value: number): string {
  const size = Math.abs(value);
  return size < 10 ? value.toFixed(2) : size < 100 ? value.toFixed(1) : whole(value);
}
