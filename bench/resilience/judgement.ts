// Every answer against what had to come, and each phase in figures.

import type { Answer } from '../load/http-load-process.ts';
import { percentiles } from '../measure/percentiles.ts';
import type { Form } from './form.ts';
import { isPublished, type KeyRule, type KeyVerdict, permittedVerdicts } from './key-expectation.ts';
import type { Lab } from './lab.ts';
import type { PhaseRecord } from './scenario.ts';
import type { IssuerHistory } from './watched-issuer.ts';

export interface JudgedAnswer {
  readonly answer: Answer;
  readonly kind: 'good' | 'other' | 'flood';
  readonly latencyMs: number;
  /** Envoy did not wait for the check any longer and answered 503 by itself. */
  readonly isLate: boolean;
  readonly isRefused: boolean;
  /** What is wrong with it; undefined where nothing is. */
  readonly wrong: string | undefined;
}

export interface Percentiles {
  readonly p50: number | undefined;
  readonly p99: number | undefined;
}

export interface PhaseFigures {
  readonly record: PhaseRecord;
  readonly answers: readonly JudgedAnswer[];
  readonly wrong: readonly JudgedAnswer[];
  readonly refusedGood: readonly JudgedAnswer[];
  /** When each request for keys came. */
  readonly fetchTimes: readonly number[];
  /** Of good tokens. */
  readonly before: Percentiles;
  readonly during: Percentiles;
  readonly after: Percentiles;
  /** The highest resident memory from the start of `during` on, over the highest before; undefined where it is not known. */
  readonly memoryGrowth: number | undefined;
  readonly memoryBefore: number | undefined;
}

// What the product promises, less the tick of a clock.
const waitMs = 149;
// The time limit of a check in envoy.yaml, less the same.
const checkLimitMs = 490;

/** All answers until now to requests that were due since then, in the order in which they came. */
export function judgeAnswers(lab: Lab, form: Form, sinceMs = 0): readonly JudgedAnswer[] {
  const history = lab.issuer.history();
  const rule: KeyRule = {
    maxAgeMs: form.keys.maxAgeSeconds * 1000,
    cooldownMs: form.keys.cooldownSeconds * 1000,
    waitMs,
    settleMs: form.settleMs,
  };
  const answers = lab.answers.filter(answer => answer.scheduledMs >= sinceMs);
  return answers.map(answer => judge(answer, lab, history, rule, form.judgesTimes));
}

export function figuresOf(record: PhaseRecord, all: readonly JudgedAnswer[], lab: Lab): PhaseFigures {
  const within = (atMs: number): boolean => atMs >= record.beforeMs && atMs < record.endMs;
  const answers = all.filter(({ answer }) => within(answer.scheduledMs));
  const good = answers.filter(each => each.kind === 'good');
  const between = (fromMs: number, toMs: number): Percentiles => {
    const latencies = good
      .filter(({ answer }) => answer.scheduledMs >= fromMs && answer.scheduledMs < toMs)
      .map(each => each.latencyMs);
    const [p50, p99] = percentiles(latencies, [50, 99]);
    return { p50, p99 };
  };
  const memoryBefore = highest(lab, record.beforeMs, record.duringMs);
  const memoryThen = highest(lab, record.duringMs, record.endMs);
  return {
    record,
    answers,
    wrong: answers.filter(each => each.wrong !== undefined),
    refusedGood: good.filter(each => each.isRefused),
    fetchTimes: lab.issuer.requestTimes().filter(within),
    before: between(record.beforeMs, record.duringMs),
    during: between(record.duringMs, record.afterMs),
    after: between(record.afterMs, record.endMs),
    memoryBefore,
    memoryGrowth: memoryBefore === undefined || memoryThen === undefined ? undefined : memoryThen - memoryBefore,
  };
}

function highest(lab: Lab, fromMs: number, toMs: number): number | undefined {
  const samples = lab.memory.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).map(({ megabytes }) => megabytes);
  return samples.length === 0 ? undefined : Math.max(...samples);
}

function judge(answer: Answer, lab: Lab, history: IssuerHistory, rule: KeyRule, judgesTimes: boolean): JudgedAnswer {
  const { kid, account, isFlood } = lab.subjectOf(answer);
  const asked = { kid, sentMs: answer.sentMs, answeredMs: answer.answeredMs };
  const verdict = verdictOf(answer);
  const tookMs = answer.answeredMs - answer.sentMs;
  const isLate = answer.status === 503 && answer.reason === undefined && tookMs >= checkLimitMs;
  const atUpstream = lab.accountAtUpstream(answer);
  const isExcused = isLate && !judgesTimes && atUpstream === undefined;
  const other = isFlood ? 'flood' : 'other';
  return {
    answer,
    kind: isPublished(history, asked) ? 'good' : other,
    latencyMs: answer.answeredMs - answer.scheduledMs,
    isLate,
    isRefused: verdict !== 'allowed' && !isExcused,
    wrong: isExcused
      ? undefined
      : whatIsWrong(answer, verdict, permittedVerdicts(history, rule, asked), account, atUpstream),
  };
}

function verdictOf({ status, reason }: Answer): KeyVerdict | undefined {
  if (status === 200) return 'allowed';
  if (status === 401 && reason === 'token_invalid') return 'token_invalid';
  if (status === 503 && reason === 'keys_unavailable') return 'keys_unavailable';
  return undefined;
}

function whatIsWrong(
  { status, reason }: Answer,
  verdict: KeyVerdict | undefined,
  permitted: ReadonlySet<KeyVerdict>,
  account: string,
  atUpstream: string | undefined,
): string | undefined {
  const got = `${status} ${reason ?? (status === 200 ? '' : 'without a reason')}`.trim();
  if (verdict === undefined || !permitted.has(verdict)) {
    const right = [...permitted].map(each => statuses[each]).join(' or ');
    return `answered ${got}, which had to be ${right || 'decided by a new fetch'}`;
  }
  if (verdict === 'allowed' && atUpstream !== account) {
    return `allowed, and ${atUpstream === undefined ? 'not seen by' : `x-auth-acc was ${JSON.stringify(atUpstream)} at`} the upstream`;
  }
  if (verdict !== 'allowed' && atUpstream !== undefined) return `answered ${got}, and yet it reached the upstream`;
  return undefined;
}

const statuses: Readonly<Record<KeyVerdict, string>> = {
  allowed: '200',
  token_invalid: '401 token_invalid',
  keys_unavailable: '503 keys_unavailable',
};
