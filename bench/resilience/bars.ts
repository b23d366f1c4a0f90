// The bars of issue 4 that this scenario can judge, each with the figure that was measured.
import type { Form } from './form.ts';
import type { JudgedAnswer, PhaseFigures } from './judgement.ts';
import type { PhaseName } from './scenario.ts';
import type { IssuerHistory } from './watched-issuer.ts';

export interface Bar {
  readonly text: string;
  readonly measured: string;
  /** Undefined where it is not judged. */
  readonly isMet: boolean | undefined;
  /** Correctness fails a run; a figure fails it where the run is strict. */
  readonly kind: 'correctness' | 'figure';
}

/** More than this, and the machine was too busy for the run to say anything. */
const mostLate = 0.05;

export type Phases = Readonly<Record<PhaseName, PhaseFigures>>;

export function barsOf(
  phases: Phases,
  answers: readonly JudgedAnswer[],
  history: IssuerHistory,
  form: Form,
  unanswered: number,
): readonly Bar[] {
  const all = Object.values(phases);
  const { keys } = form;
  const wrong = answers.filter(each => each.wrong !== undefined).length;
  const late = answers.filter(each => each.isLate).length;
  return [
    {
      kind: 'correctness',
      text: 'Every answer is the right one, and only what was allowed reaches the upstream',
      measured: `${wrong} wrong, ${unanswered} missing, ${late} too late for Envoy, of ${count(answers.length, 'request')}`,
      isMet: wrong === 0 && unanswered === 0 && answers.length > 0 && late <= answers.length * mostLate,
    },
    {
      kind: 'correctness',
      text: 'Rotation with overlap: 0 wrong answers, no good token refused',
      measured: `${phases.overlap.wrong.length} wrong, ${phases.overlap.refusedGood.length} refused of ${count(goodOf(phases.overlap).length, 'good token')}`,
      isMet: isFaultless(phases.overlap) && phases.overlap.refusedGood.length === 0,
    },
    hardRotation(phases.hard, history, form),
    {
      kind: 'correctness',
      text: 'Outage within the age: no good token refused',
      measured: `${phases.shortOutage.refusedGood.length} refused of ${count(goodOf(phases.shortOutage).length, 'good token')}, ${count(phases.shortOutage.record.refreshes.failed, 'failed refresh', 'failed refreshes')}`,
      isMet:
        isFaultless(phases.shortOutage) &&
        phases.shortOutage.refusedGood.length === 0 &&
        phases.shortOutage.record.refreshes.failed > 0,
    },
    ratioBar('Outage within the age: p99 within 1.5 × of before', phases.shortOutage, 1.5, form),
    ...pastAge(phases.longOutage, history, form),
    {
      kind: 'correctness',
      text: 'Slow issuer: no good token refused',
      measured: `${phases.slow.refusedGood.length} refused of ${count(goodOf(phases.slow).length, 'good token')}`,
      isMet: isFaultless(phases.slow) && phases.slow.refusedGood.length === 0,
    },
    ...flood(phases.flood, form),
    cooldown(all, keys.cooldownSeconds),
  ];
}

function hardRotation(phase: PhaseFigures, history: IssuerHistory, form: Form): Bar {
  const { cooldownSeconds } = form.keys;
  // To the millisecond where times are judged.
  const limitMs = cooldownSeconds * 1000 + (form.judgesTimes ? 0 : form.settleMs);
  const { duringMs, endMs } = phase.record;
  const rotations = history.publications.filter(({ atMs }) => atMs >= duringMs && atMs < endMs);
  const refusedFor = rotations.map(({ atMs }, index) => {
    const nextMs = rotations[index + 1]?.atMs ?? endMs;
    const refused = phase.refusedGood.filter(({ answer }) => answer.sentMs >= atMs && answer.sentMs < nextMs);
    return Math.max(0, ...refused.map(({ answer }) => answer.sentMs - atMs));
  });
  const longest = Math.max(0, ...refusedFor);
  return {
    kind: 'correctness',
    text: `Hard rotation: good tokens refused for at most ${cooldownSeconds} s, then never`,
    measured: `${refusedFor.map(ms => `${(ms / 1000).toFixed(2)} s`).join(' and ')}, ${phase.refusedGood.length} refused`,
    isMet: rotations.length > 0 && longest <= limitMs && isFaultless(phase),
  };
}

function pastAge(phase: PhaseFigures, history: IssuerHistory, form: Form): readonly Bar[] {
  const { duringMs, endMs } = phase.record;
  const outage = history.outages.find(({ fromMs }) => fromMs >= duringMs && fromMs < endMs);
  const last = history.fetches.findLast(fetch => fetch.askedMs < (outage?.fromMs ?? 0));
  const oldMs = (last?.askedMs ?? Infinity) + form.keys.maxAgeSeconds * 1000;
  const backMs = outage?.toMs ?? 0;
  const statuses = new Map<number, number>();
  for (const { answer } of phase.answers) {
    if (answer.sentMs < oldMs || answer.answeredMs > backMs) continue;
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
  }
  const allowed = phase.answers.find(
    ({ answer, kind, isRefused }) => kind === 'good' && !isRefused && answer.sentMs >= backMs,
  );
  const recoveryMs = (allowed?.answer.answeredMs ?? Infinity) - backMs;
  // The longest pause between two fetches of a failing issuer, and the fetch itself.
  const limitSeconds = form.keys.refreshSeconds + form.keys.timeoutSeconds;
  const refusedLate = phase.refusedGood.filter(({ answer }) => answer.sentMs >= backMs + recoveryMs);
  return [
    {
      kind: 'correctness',
      text: 'Outage past the age: only 503, never 401 or an allow',
      measured:
        [...statuses].map(([status, times]) => `${times.toLocaleString('en')} × ${status}`).join(', ') || 'no answer',
      isMet: statuses.size === 1 && statuses.has(503) && isFaultless(phase),
    },
    {
      kind: 'correctness',
      text: `Recovery without restart, within ${limitSeconds} s of the issuer’s return`,
      measured: `${(recoveryMs / 1000).toFixed(2)} s, then ${count(refusedLate.length, 'good token')} refused`,
      isMet: recoveryMs <= limitSeconds * 1000 && refusedLate.length === 0,
    },
  ];
}

function flood(phase: PhaseFigures, form: Form): readonly Bar[] {
  const { duringMs, afterMs } = phase.record;
  const seconds = (afterMs - duringMs) / 1000;
  const sent = phase.answers.filter(each => each.kind === 'flood');
  const unavailable = sent.filter(({ answer }) => answer.status >= 500).length;
  const fetches = phase.fetchTimes.filter(atMs => atMs >= duringMs && atMs < afterMs).length;
  const most = Math.floor(seconds / form.keys.cooldownSeconds) + 1;
  const { memoryGrowth, memoryBefore } = phase;
  return [
    {
      kind: 'correctness',
      text: 'Flood: at most one fetch a cooldown',
      measured: `${count(fetches, 'fetch', 'fetches')} in ${seconds.toFixed(1)} s for ${count(sent.length, 'unknown kid')}, ${unavailable} of them answered with a 5xx`,
      isMet: fetches <= most && fetches > 0 && sent.length > 0 && isFaultless(phase) && phase.refusedGood.length === 0,
    },
    {
      kind: 'figure',
      text: 'Flood: resident memory grows by less than 10 MB',
      measured:
        memoryGrowth === undefined || memoryBefore === undefined
          ? 'no /proc'
          : `${signed(memoryGrowth)} MB on ${memoryBefore.toFixed(1)} MB`,
      isMet: !form.judgesTimes || memoryGrowth === undefined ? undefined : memoryGrowth < 10,
    },
    ratioBar('Flood: p99 of good tokens within 2 × of before', phase, 2, form),
  ];
}

/** The issuer's own clock saw the requests, so there is nothing to allow for: two starts are further apart than end and start. */
function cooldown(phases: readonly PhaseFigures[], cooldownSeconds: number): Bar {
  const times = phases.flatMap(phase => phase.fetchTimes);
  const gaps = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
  const shortest = Math.min(...gaps);
  const tooMany = phases.filter(({ record: { beforeMs, endMs, refreshes } }) => {
    const most = Math.floor((endMs - beforeMs) / 1000 / cooldownSeconds) + 1;
    return refreshes.succeeded + refreshes.failed > most;
  });
  return {
    kind: 'correctness',
    text: `Never two fetches within the cooldown of ${cooldownSeconds} s`,
    measured: `${count(times.length, 'fetch', 'fetches')} seen by the issuer, the closest ${(shortest / 1000).toFixed(3)} s apart`,
    isMet: shortest >= cooldownSeconds * 1000 && tooMany.length === 0,
  };
}

function ratioBar(text: string, { before, during }: PhaseFigures, most: number, form: Form): Bar {
  const ratio = (during.p99 ?? Infinity) / (before.p99 ?? 0);
  return {
    kind: 'figure',
    text,
    measured: `${ratio.toFixed(2)} × (${milliseconds(before.p99)} → ${milliseconds(during.p99)} ms)`,
    isMet: !form.judgesTimes ? undefined : ratio <= most,
  };
}

function goodOf(phase: PhaseFigures): readonly JudgedAnswer[] {
  return phase.answers.filter(each => each.kind === 'good');
}

/** Where nothing was asked, nothing is proved. */
function isFaultless(phase: PhaseFigures): boolean {
  return phase.wrong.length === 0 && goodOf(phase).length > 0;
}

export function milliseconds(value: number | undefined): string {
  return value === undefined ? '–' : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

export function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)}`;
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}
