// The tables of a bench and the page that keeps them. Says nothing of the machine but the versions of what ran.
import { cell, type Table, toMarkdown } from '../report/table.ts';
import { envoyTitles } from './envoy-variants.ts';
import { type Floor, judgeFloors } from './floors.ts';
import { scans, storms as stormScenarios } from './product-bench.ts';
import type { BenchResults, Rounds } from './results.ts';
import { ratioOf, type Spread, spreadOf } from './spread.ts';

export interface Section {
  readonly name: string;
  readonly title: string;
  readonly note: string;
  readonly table: Table;
}

const left = (head: string) => ({ head, align: 'left' as const });
const right = (head: string) => ({ head, align: 'right' as const });

/** Those that have something to tell. */
export function sections(results: BenchResults): readonly Section[] {
  const { run } = results;
  const all: readonly Section[] = [
    {
      name: 'floors',
      title: 'Floors',
      note: 'Ratios of throughput where nothing else is said; the median of the rounds counts.',
      table: floorsTable(judgeFloors(results)),
    },
    {
      name: 'calls',
      title: 'Throughput and CPU time a call',
      note: `${run.calls.inFlight} calls under way on ${run.calls.connections} connections; *core* is the share of its core that the server used, *load* that of the load generator.`,
      table: callsTable(results),
    },
    {
      name: 'latency',
      title: 'Latency at fixed rates',
      note: 'Milliseconds from the time that a call was due (open loop). The median of the rounds of each percentile.',
      table: latencyTable(results),
    },
    {
      name: 'connections',
      title: 'Connections',
      note: 'The same calls in flight on more or fewer connections; p99 at the lowest of the fixed rates.',
      table: connectionsTable(results),
    },
    { name: 'start', title: 'Start to first answer', note: 'Milliseconds.', table: startTable(results) },
    {
      name: 'envoy',
      title: 'Behind Envoy',
      note: 'Envoy with one worker, the service that it asks and the upstream share one core. Latency at a fixed rate.',
      table: envoyTable(results),
    },
    {
      name: 'storms',
      title: 'A known token in a storm',
      note: `Latency in milliseconds of one known token at ${run.storm.knownPerSecond} calls a second, alone and beside ${run.storm.stormPerSecond} others a second.`,
      table: stormsTable(results),
    },
    {
      name: 'memory',
      title: 'Memory',
      note: 'With the Node and the flags of the image: the most that was resident under load, and what the process holds after a full collection.',
      table: memoryTable(results),
    },
    {
      name: 'scan',
      title: 'The cache under a scan',
      note: 'A cache of 1,000 tokens; share of calls with hot tokens that find theirs, while tokens that are used once stream by.',
      table: scanTable(results),
    },
    {
      name: 'replicas',
      title: 'More than one process',
      note: 'The second process runs on the core of the load generator.',
      table: replicasTable(results),
    },
  ];
  return all.filter(({ table }) => table.rows.length > 0);
}

export function floorsTable(floors: readonly Floor[]): Table {
  return {
    columns: [left('floor'), right('bound'), right('measured'), right('min … max'), right('by CPU time'), left('')],
    rows: floors.map(({ text, bound, measured, byCpuTime, isMet }) => {
      const show = (value: number): string => `${significant(value)} ${bound.unit}`;
      return [
        cell(text),
        cell(`${bound.kind === 'at least' ? '≥' : '≤'} ${show(bound.value)}`),
        cell(measured === undefined ? '–' : show(measured.median), 'strong'),
        cell(measured === undefined ? '' : range(measured, significant), 'dim'),
        cell(byCpuTime === undefined ? '' : significant(byCpuTime.median), 'dim'),
        cell(verdict(measured, isMet), isMet === undefined ? 'dim' : isMet ? 'good' : 'bad'),
      ];
    }),
  };
}

function verdict(measured: Spread | undefined, isMet: boolean | undefined): string {
  if (measured === undefined) return 'not measured';
  if (isMet === undefined) return 'not judged';
  return isMet ? 'met' : 'NOT MET';
}

function callsTable({ calls, contenders }: BenchResults): Table {
  const base = calls.nothing?.map(round => round.perSecond);
  return {
    columns: [
      left('name'),
      left('contender'),
      ...['calls a second', 'min … max', 'to `nothing`', 'CPU µs a call', 'min … max', 'core', 'load', 'RSS (MB)'].map(
        right,
      ),
    ],
    rows: rowsOf(calls).map(([name, rounds]) => {
      const perSecond = rounds.map(round => round.perSecond);
      const speed = spreadOf(perSecond);
      const cpu = spreadOf(rounds.map(round => round.cpuMicrosecondsPerCall));
      return [
        cell(name, 'strong'),
        cell(contenders.find(contender => contender.name === name)?.title ?? ''),
        cell(whole(speed.median), 'strong'),
        cell(range(speed, whole), 'dim'),
        cell(base === undefined ? '' : hundredths(ratioOf(perSecond, base).median)),
        cell(tenths(cpu.median), 'strong'),
        cell(range(cpu, tenths), 'dim'),
        cell(percent(spreadOf(rounds.map(round => round.serverShare)).median)),
        cell(percent(spreadOf(rounds.map(round => round.loadShare)).median)),
        cell(whole(rounds.at(-1)?.residentMegabytes ?? NaN)),
      ];
    }),
  };
}

function latencyTable({ latency }: BenchResults): Table {
  return {
    columns: [left('name'), right('calls a second'), ...['mean', 'p50', 'p99', 'p99.9', 'p99: min … max'].map(right)],
    rows: Object.entries(latency).flatMap(([name, byRate]) =>
      rowsOf(byRate).map(([rate, rounds]) => {
        const p99 = spreadOf(rounds.map(({ p99Ms }) => p99Ms));
        return [
          cell(name, 'strong'),
          cell(whole(Number(rate))),
          cell(hundredths(spreadOf(rounds.map(({ meanMs }) => meanMs)).median)),
          cell(hundredths(spreadOf(rounds.map(({ p50Ms }) => p50Ms)).median)),
          cell(hundredths(p99.median), 'strong'),
          cell(hundredths(spreadOf(rounds.map(({ p999Ms }) => p999Ms)).median)),
          cell(range(p99, hundredths), 'dim'),
        ];
      }),
    ),
  };
}

function connectionsTable({ connections }: BenchResults): Table {
  return {
    columns: [
      left('name'),
      ...['connections', 'calls a second', 'min … max', 'CPU µs a call', 'p99 (ms)', 'RSS (MB)'].map(right),
    ],
    rows: Object.entries(connections).flatMap(([name, byCount]) =>
      rowsOf(byCount).map(([count, rounds]) => {
        const speed = spreadOf(rounds.map(({ perSecond }) => perSecond));
        return [
          cell(name, 'strong'),
          cell(count),
          cell(whole(speed.median), 'strong'),
          cell(range(speed, whole), 'dim'),
          cell(tenths(spreadOf(rounds.map(round => round.cpuMicrosecondsPerCall)).median)),
          cell(hundredths(spreadOf(rounds.map(({ p99Ms }) => p99Ms)).median)),
          cell(whole(rounds.at(-1)?.residentMegabytes ?? NaN)),
        ];
      }),
    ),
  };
}

function startTable({ start }: BenchResults): Table {
  return {
    columns: [left('name'), right('median'), right('min … max')],
    rows: rowsOf(start).map(([name, milliseconds]) => {
      const spread = spreadOf(milliseconds);
      return [cell(name, 'strong'), cell(whole(spread.median)), cell(range(spread, whole), 'dim')];
    }),
  };
}

function envoyTable({ envoy }: BenchResults): Table {
  return {
    columns: [
      left('variant'),
      ...['requests a second', 'min … max', 'CPU µs a request', 'mean (ms)', 'p50', 'p99'].map(right),
    ],
    rows: rowsOf(envoy).map(([name, rounds]) => {
      const speed = spreadOf(rounds.map(({ perSecond }) => perSecond));
      return [
        cell(envoyTitles.get(name) ?? name, 'strong'),
        cell(whole(speed.median), 'strong'),
        cell(range(speed, whole), 'dim'),
        cell(tenths(spreadOf(rounds.map(round => round.cpuMicrosecondsPerRequest)).median)),
        cell(hundredths(spreadOf(rounds.map(({ meanMs }) => meanMs)).median)),
        cell(hundredths(spreadOf(rounds.map(({ p50Ms }) => p50Ms)).median)),
        cell(hundredths(spreadOf(rounds.map(({ p99Ms }) => p99Ms)).median)),
      ];
    }),
  };
}

function stormsTable({ storms }: BenchResults): Table {
  const quiet = storms.quiet?.map(({ p99Ms }) => p99Ms) ?? [];
  return {
    columns: [left('storm'), ...['p50', 'p99', 'p99.9', 'p99: min … max', 'p99 to quiet'].map(right)],
    rows: rowsOf(storms).map(([name, rounds]) => {
      const p99s = rounds.map(({ p99Ms }) => p99Ms);
      const p99 = spreadOf(p99s);
      return [
        cell(stormScenarios.find(storm => storm.name === name)?.title ?? name, 'strong'),
        cell(hundredths(spreadOf(rounds.map(({ p50Ms }) => p50Ms)).median)),
        cell(hundredths(p99.median), 'strong'),
        cell(hundredths(spreadOf(rounds.map(({ p999Ms }) => p999Ms)).median)),
        cell(range(p99, hundredths), 'dim'),
        cell(hundredths(ratioOf(p99s, quiet).median)),
      ];
    }),
  };
}

function memoryTable({ memory }: BenchResults): Table {
  return {
    columns: [left('known tokens'), ...['resident (MB)', 'min … max', 'alive (MB)', 'min … max'].map(right)],
    rows: rowsOf(memory).map(([name, rounds]) => {
      const resident = spreadOf(rounds.map(({ residentMegabytes }) => residentMegabytes));
      const live = spreadOf(rounds.map(({ liveMegabytes }) => liveMegabytes));
      return [
        cell(name === 'rotation' ? '10,000' : '1', 'strong'),
        cell(tenths(resident.median)),
        cell(range(resident, tenths), 'dim'),
        cell(tenths(live.median)),
        cell(range(live, tenths), 'dim'),
      ];
    }),
  };
}

function scanTable({ scan }: BenchResults): Table {
  return {
    columns: [left('flood'), right('hot tokens found'), right('min … max')],
    rows: rowsOf(scan).map(([name, rounds]) => {
      const share = spreadOf(rounds.map(({ hotHitShare }) => hotHitShare));
      const title = scans.find(each => each.name === name)?.title ?? name;
      return [cell(title, 'strong'), cell(percent(share.median)), cell(range(share, percent), 'dim')];
    }),
  };
}

function replicasTable({ replicas }: BenchResults): Table {
  return {
    columns: [left('processes'), ...['calls a second', 'min … max', 'RSS (MB)', 'fetches of keys'].map(right)],
    rows: rowsOf(replicas).map(([count, rounds]) => {
      const speed = spreadOf(rounds.map(({ perSecond }) => perSecond));
      return [
        cell(count, 'strong'),
        cell(whole(speed.median), 'strong'),
        cell(range(speed, whole), 'dim'),
        cell(whole(spreadOf(rounds.map(({ residentMegabytes }) => residentMegabytes)).median)),
        cell(whole(spreadOf(rounds.map(({ keyFetches }) => keyFetches)).median)),
      ];
    }),
  };
}

/** One sentence on what ran, which the page and the charts share. */
export function runLine({ run }: BenchResults): string {
  const versions = [
    `Node ${run.node}`,
    ...(run.nodeOptions.length === 0 ? [] : [`with ${run.nodeOptions.join(' ')}`]),
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
    `Left by \`npm run bench\`; what it measures and how: [docs/performance.md](../docs/performance.md). ${runLine(results)}.`,
    '',
    ...(results.run.isWhole ? [] : ['A part of a run or a quick one: it judges no floor.', '']),
    '![Throughput and CPU time a call](results/calls.svg)',
    '',
    '![Latency at fixed rates](results/latency.svg)',
    '',
    ...sections(results).flatMap(({ title, note, table }) => [`## ${title}`, '', note, '', toMarkdown(table), '']),
    ...(absent.length === 0 ? [] : ['## Absent', '', ...absent, '']),
  ].join('\n');
}

function rowsOf<Round>(rounds: Rounds<Round>): [name: string, rounds: readonly Round[]][] {
  return Object.entries(rounds).filter(([, of]) => of.length > 0);
}

function range({ min, max }: Spread, text: (value: number) => string): string {
  return `${text(min)} … ${text(max)}`;
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

/** Two decimals below ten, none above a hundred. */
function significant(value: number): string {
  const size = Math.abs(value);
  return size < 10 ? value.toFixed(2) : size < 100 ? value.toFixed(1) : whole(value);
}
