// The run as a picture: what its answers, its memory and its fetches looked like over time.
import { percentiles } from '../measure/percentiles.ts';
import { timelineSvg } from '../report/timeline-svg.ts';
import type { Form } from './form.ts';
import type { JudgedAnswer, PhaseFigures } from './judgement.ts';
import type { Lab } from './lab.ts';

const bucketMs = 250;
const colours = {
  200: '#5aa777',
  401: '#e3a72f',
  503: '#c8453b',
  p50: '#2f6fde',
  p99: '#b4357a',
  memory: '#55606e',
} as const;

export function resilienceSvg(
  phases: readonly PhaseFigures[],
  answers: readonly JudgedAnswer[],
  lab: Lab,
  form: Form,
): string {
  const startMs = Math.min(...phases.map(({ record }) => record.beforeMs));
  const endMs = Math.max(...phases.map(({ record }) => record.endMs));
  const durationMs = endMs - startMs;
  const buckets = Math.ceil(durationMs / bucketMs);
  const steady = bucketed(
    answers.filter(each => each.kind !== 'flood'),
    startMs,
    buckets,
  );
  const flood = bucketed(
    answers.filter(each => each.kind === 'flood'),
    startMs,
    buckets,
  );
  const good = bucketed(
    answers.filter(each => each.kind === 'good'),
    startMs,
    buckets,
  );
  const tails = good.map(bucket =>
    percentiles(
      bucket.map(each => each.latencyMs),
      [50, 99],
    ),
  );
  const latency = (index: 0 | 1) =>
    tails.map((values, bucket) => ({ atMs: (bucket + 0.5) * bucketMs, value: values[index] }));
  const byStatus = (all: readonly (readonly JudgedAnswer[])[]) =>
    ([200, 401, 503] as const).map(status => ({
      name: String(status),
      colour: colours[status],
      values: all.map(bucket => (bucket.filter(({ answer }) => answer.status === status).length * 1000) / bucketMs),
    }));
  const { keys } = form;
  return timelineSvg({
    title: 'account-authz: keys under rotation, outage and flood',
    subtitle:
      `Through Envoy ${lab.versions.envoy} on Node ${lab.versions.node}, ${form.goodPerSecond} good tokens a second. Keys: refresh ${keys.refreshSeconds} s, ` +
      `maximum age ${keys.maxAgeSeconds} s, cooldown ${keys.cooldownSeconds} s, timeout ${keys.timeoutSeconds} s. Shaded: what the phase is about.`,
    durationMs,
    phases: phases.map(({ record }) => ({
      label: record.title,
      fromMs: record.beforeMs - startMs,
      toMs: record.endMs - startMs,
      shaded: [record.duringMs - startMs, record.afterMs - startMs],
      events: record.events.map(({ atMs, label }) => ({ atMs: atMs - startMs, label })),
    })),
    panels: [
      {
        kind: 'lines',
        title: 'Latency of good tokens from the time they were due, per 250 ms (ms)',
        height: 190,
        scale: 'log',
        series: [
          { name: 'p99', colour: colours.p99, points: latency(1) },
          { name: 'p50', colour: colours.p50, points: latency(0) },
        ],
      },
      {
        kind: 'stack',
        title: 'Answers to the steady load, a second',
        height: 150,
        bucketMs,
        series: byStatus(steady),
      },
      { kind: 'stack', title: 'Answers to the flood, a second', height: 64, bucketMs, series: byStatus(flood) },
      {
        kind: 'ticks',
        title: 'Fetches seen by the issuer',
        height: 18,
        series: [
          {
            name: 'fetch',
            colour: colours.p50,
            times: lab.issuer
              .requestTimes()
              .filter(atMs => atMs >= startMs && atMs <= endMs)
              .map(atMs => atMs - startMs),
          },
        ],
      },
      {
        kind: 'lines',
        title: 'Resident memory of account-authz (MB)',
        height: 64,
        scale: 'linear',
        series: [
          {
            name: 'VmRSS',
            colour: colours.memory,
            points: lab.memory
              .filter(({ atMs }) => atMs >= startMs && atMs <= endMs)
              .map(({ atMs, megabytes }) => ({ atMs: atMs - startMs, value: megabytes })),
          },
        ],
      },
    ],
  });
}

function bucketed(answers: readonly JudgedAnswer[], startMs: number, buckets: number): JudgedAnswer[][] {
  const all = Array.from({ length: buckets }, (): JudgedAnswer[] => []);
  for (const each of answers) all[Math.floor((each.answer.scheduledMs - startMs) / bucketMs)]?.push(each);
  return all;
}
