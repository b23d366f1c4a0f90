// The tables of a bench.
import { cell, type Table } from '../report/table.ts';
import type { CallRound } from './calls.ts';
import type { Contender } from './contender.ts';
import { type Spread, spreadOf } from './spread.ts';

const right = (head: string) => ({ head, align: 'right' as const });

export function callsTable(contenders: readonly Contender[], rounds: ReadonlyMap<string, readonly CallRound[]>): Table {
  return {
    columns: [
      { head: 'contender', align: 'left' },
      { head: '', align: 'left' },
      ...['calls a second', 'min … max', 'CPU µs a call', 'min … max', 'core', 'load', 'RSS (MB)'].map(right),
    ],
    rows: contenders.flatMap(({ name, title }) => {
      const of = rounds.get(name);
      if (of === undefined) return [];
      const perSecond = spreadOf(of.map(round => round.perSecond));
      const cpu = spreadOf(of.map(round => round.cpuMicrosecondsPerCall));
      return [
        [
          cell(name, 'strong'),
          cell(title),
          cell(whole(perSecond.median), 'strong'),
          cell(range(perSecond, whole), 'dim'),
          cell(tenths(cpu.median), 'strong'),
          cell(range(cpu, tenths), 'dim'),
          cell(percent(spreadOf(of.map(round => round.serverShare)).median)),
          cell(percent(spreadOf(of.map(round => round.loadShare)).median)),
          cell(whole(of.at(-1)?.residentMegabytes ?? NaN)),
        ],
      ];
    }),
  };
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

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
