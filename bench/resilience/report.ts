// What a run of the resilience scenario has to say: one row a phase, one line a bar, and the page that keeps both.

import { cell, type Table, toMarkdown, toned } from '../report/table.ts';
import { type Bar, milliseconds, signed } from './bars.ts';
import type { Form } from './form.ts';
import type { JudgedAnswer, PhaseFigures } from './judgement.ts';
import type { Lab } from './lab.ts';
import type { PhaseRecord } from './scenario.ts';

export function phaseTable(phases: readonly PhaseFigures[]): Table {
  const right = (head: string) => ({ head, align: 'right' as const });
  return {
    columns: [
      { head: 'phase', align: 'left' },
      ...['requests', 'wrong', 'good refused', 'fetches', 'failed'].map(right),
      ...['p50 (ms)', 'p99 (ms)', 'RSS (MB)'].map(right),
    ],
    rows: phases.map(({ record, answers, wrong, refusedGood, fetchTimes, before, during, after, memoryGrowth }) => [
      cell(record.title, 'strong'),
      cell(answers.length.toLocaleString('en')),
      cell(wrong.length, wrong.length === 0 ? 'good' : 'bad'),
      cell(refusedGood.length.toLocaleString('en'), refusedGood.length === 0 ? 'good' : 'plain'),
      cell(fetchTimes.length),
      cell(record.refreshes.failed),
      cell([before.p50, during.p50, after.p50].map(milliseconds).join(' → ')),
      cell([before.p99, during.p99, after.p99].map(milliseconds).join(' → ')),
      cell(memoryGrowth === undefined ? '–' : signed(memoryGrowth)),
    ]),
  };
}

export function barLine({ text, measured, isMet, kind }: Bar, colour: boolean): string {
  const word = wordOf(isMet);
  const tone = isMet === true ? 'good' : isMet === false ? 'bad' : 'dim';
  const note = kind === 'figure' && isMet === false ? ' (a figure: fails with --strict only)' : '';
  return `${toned(word.padEnd(10), tone, colour)}  ${text}: ${toned(measured, 'strong', colour)}${toned(note, 'dim', colour)}`;
}

function wordOf(isMet: boolean | undefined): string {
  if (isMet === undefined) return 'not judged';
  return isMet ? 'met' : 'NOT MET';
}

/** What was wrong, with the phase and the time since that phase began to act. */
export function wrongLines(
  answers: readonly JudgedAnswer[],
  records: readonly PhaseRecord[],
  most = 10,
): readonly string[] {
  const lines = answers.flatMap(({ answer, wrong }) => {
    if (wrong === undefined) return [];
    const record = records.findLast(({ beforeMs }) => beforeMs <= answer.scheduledMs);
    const place = record === undefined ? 'warming up' : `${record.title} ${seconds(answer.sentMs - record.duringMs)}`;
    return [`${place}, ${answer.lane}.${answer.number}, after ${seconds(answer.answeredMs - answer.sentMs)}: ${wrong}`];
  });
  const more = lines.length > most ? [`and ${lines.length - most} more`] : [];
  return [...lines.slice(0, most), ...more];
}

function seconds(ms: number): string {
  return `${ms < 0 ? '−' : ''}${(Math.abs(ms) / 1000).toFixed(3)} s`;
}

/** Says nothing of the machine but the versions of what ran. */
export function resilienceMarkdown(
  phases: readonly PhaseFigures[],
  bars: readonly Bar[],
  lab: Lab,
  form: Form,
): string {
  const { keys } = form;
  const barTable: Table = {
    columns: [
      { head: 'bar', align: 'left' },
      { head: 'measured', align: 'left' },
      { head: '', align: 'left' },
    ],
    rows: bars.map(({ text, measured, isMet }) => [cell(text), cell(measured), cell(wordOf(isMet).toLowerCase())]),
  };
  return `# Resilience of the keys

Written by \`npm run resilience\`; the picture of the same run is [resilience.svg](resilience.svg).

The built product behind Envoy ${lab.versions.envoy} with the shipped \`envoy.yaml\`, on Node ${lab.versions.node}. Open-loop load of ${form.goodPerSecond} good
tokens a second, four fifths of them known and one fifth never seen before; latency counts from the time a request was due.
During outages and while the issuer is slow, strangers' tokens with unknown kids are sent beside them; after a rotation, tokens of
the key that is gone. Keys: \`refreshSeconds: ${keys.refreshSeconds}\`, \`maxAgeSeconds: ${keys.maxAgeSeconds}\`, \`cooldownSeconds: ${keys.cooldownSeconds}\`, \`timeoutSeconds: ${keys.timeoutSeconds}\`. The flood: ${form.floodPerSecond.toLocaleString('en')} unknown
kids a second for ${form.floodMs / 1000} s. Who sends it has rehearsed against a path for which Envoy
asks nobody, so that the flood is new to account-authz alone.${lab.nodeOptions === undefined ? '' : ` The product ran with \`NODE_OPTIONS=${lab.nodeOptions}\`.`}

${toMarkdown(phaseTable(phases))}

- wrong: answers that product.md section 6 does not permit at that moment, or that reached the upstream when they should not
  have, or did not when they should have, or with another account;
- good refused: tokens of a published key that were not allowed. In a hard rotation that may last \`cooldownSeconds\`; past the
  age of an outage nothing else is right;
- fetches: requests for keys that the issuer saw; failed: refreshes that the product counted as failures;
- p50 and p99: of good tokens, before → during → after; RSS: the highest resident memory during and after, over the highest
  before.

${toMarkdown(barTable)}
`;
}
