// A small world around the state machine of a key set: two kids, every event, and its own account of what must be true.
import type { VerificationKey } from '../../../src/keys/jwks.ts';
import type { KeySetEffect, KeySetEvent, KeySetStep, reduce } from '../../../src/keys/key-set-reducer.ts';
import {
  createKeySetState,
  type KeyLookup,
  type KeySetLimits,
  type KeySetState,
  nextWakeMs,
  usableKey,
} from '../../../src/keys/key-set-state.ts';

export type Reduce = typeof reduce;

export const kids = ['a', 'b'] as const;
const keys = new Map(kids.map(kid => [kid, toKey(kid)] as const));
const keySets = { a: setOf('a'), b: setOf('b'), ab: setOf('a', 'b') } as const;

/** One moment of the world. What is not of the machine is told from the events and effects alone. */
export interface World {
  readonly limits: KeySetLimits;
  readonly machine: KeySetState;
  readonly nowMs: number;
  /** The number of the fetch in flight. */
  readonly inFlight: number | undefined;
  readonly fetchStartedMs: number;
  readonly fetchEndedMs: number;
  readonly lastResult: 'success' | 'failure' | undefined;
  /** The set in force. */
  readonly held: keyof typeof keySets | undefined;
  readonly confirmedMs: number;
  /** Who waits, and since when. */
  readonly waiting: Readonly<Partial<Record<string, number>>>;
  /** A reason to fetch as soon as the cooldown allows. */
  readonly isChanged: boolean;
  /** Somebody asked in vain since the latest fetch started. */
  readonly isAsked: boolean;
  /** The latest fetch started for no other reason than that somebody had asked. */
  readonly isEarly: boolean;
  /** Early refreshes in a row that brought nothing new, and when the last one ended. */
  readonly fruitless: number;
  readonly earlyEndedMs: number;
  readonly askedMs: number;
  readonly failures: number;
}

export type Step = { readonly kind: 'passed'; readonly ms: number } | KeySetEvent;

export function firstWorld(limits: KeySetLimits): World {
  const never = Number.NEGATIVE_INFINITY;
  return {
    limits,
    machine: createKeySetState(limits),
    nowMs: 0,
    inFlight: undefined,
    fetchStartedMs: never,
    fetchEndedMs: never,
    lastResult: undefined,
    held: undefined,
    confirmedMs: never,
    waiting: {},
    isChanged: false,
    isAsked: false,
    isEarly: false,
    fruitless: 0,
    earlyEndedMs: never,
    askedMs: never,
    failures: 0,
  };
}

const result = (kind: 'fetched' | 'failed', fetch: number, jitter: number): KeySetEvent =>
  kind === 'fetched' ? { kind, fetch, keys: keySets.a, jitter } : { kind, fetch, problem: 'status 500', jitter };
const passed = (ms: number): Step => ({ kind: 'passed', ms });
const started: Step = { kind: 'started' };
const woken: Step = { kind: 'woken' };
const stranger: Step = { kind: 'asked', kid: 'b' };

/** Where an exploration begins: what takes many steps to come to. The times are those of the small limits. */
export const beginnings: Readonly<Record<string, readonly Step[]>> = {
  'before the start': [],
  'a usable set': [started, result('fetched', 1, 1)],
  'a flood of unknown kids': [
    ...[started, result('fetched', 1, 1)],
    ...[passed(4), stranger, result('fetched', 2, 1)],
    ...[passed(4), stranger, result('fetched', 3, 1)],
    ...[passed(8), stranger, result('fetched', 4, 1)],
  ],
  'an outage with a set': [
    ...[started, result('fetched', 1, 0)],
    ...[passed(16), woken, result('failed', 2, 0)],
    ...[passed(4), woken, result('failed', 3, 0)],
  ],
  'an outage without a set': [
    ...[started, result('failed', 1, 0)],
    ...[passed(4), woken, result('failed', 2, 0)],
    ...[passed(4), woken, result('failed', 3, 0)],
  ],
};

/** Everything that can happen next: each event now, or time goes by to one of the instants around a limit. */
export function stepsOf(world: World): readonly Step[] {
  const { machine, limits, nowMs } = world;
  const steps: Step[] = instantsOf(world).map(instantMs => ({ kind: 'passed', ms: instantMs - nowMs }));
  steps.push({ kind: 'woken' }, { kind: 'changed' }, { kind: 'withdrawn' }, { kind: 'stopped' });
  for (const kid of kids) steps.push({ kind: 'asked', kid });
  if (machine.phase === 'new') {
    for (const ageMs of [0, limits.maxAgeMs - 1, limits.maxAgeMs])
      steps.push({ kind: 'seeded', keys: keySets.a, ageMs });
    steps.push({ kind: 'started' });
  }
  for (const fetch of world.inFlight === undefined ? [machine.fetch] : [machine.fetch, machine.fetch - 1]) {
    for (const jitter of [0, 1]) {
      for (const set of Object.values(keySets)) steps.push({ kind: 'fetched', fetch, keys: set, jitter });
      steps.push({ kind: 'notModified', fetch, jitter }, { kind: 'failed', fetch, problem: 'status 500', jitter });
    }
  }
  return steps;
}

/** Just before, at and just after each limit that is ahead. */
function instantsOf({ machine, limits, nowMs }: World): readonly number[] {
  const { confirmedMs = Number.NEGATIVE_INFINITY } = machine;
  const deadlines = [
    machine.nextFetchMs,
    machine.notBeforeMs,
    machine.earlyNotBeforeMs,
    confirmedMs + limits.maxAgeMs,
    machine.askedMs + limits.quietMs,
    ...machine.waiters.map(waiter => waiter.deadlineMs),
  ];
  const around = deadlines.flatMap(deadlineMs => [deadlineMs - 1, deadlineMs, deadlineMs + 1]);
  return [...new Set(around)].filter(instantMs => instantMs > nowMs && Number.isFinite(instantMs));
}

/** The world after this step. Throws where an invariant does not hold. */
export function afterStep(before: World, step: Step, reduceState: Reduce): World {
  if (step.kind === 'passed') return { ...before, nowMs: before.nowMs + step.ms };
  const { nowMs } = before;
  const result = reduceState(before.machine, step, nowMs);
  let after = afterEvent({ ...before, machine: result.state }, step);
  for (const effect of result.effects) after = afterEffect(after, step, effect);
  checkAsked(before, after, step, result);
  checkState(before, after, step);
  return after;
}

function afterEffect(world: World, step: Step, effect: KeySetEffect): World {
  switch (effect.kind) {
    case 'fetch':
      return afterFetchStart(world, step, effect.fetch);
    case 'abort':
      check(world.inFlight !== undefined && step.kind === 'stopped', 'it aborts what is not in flight');
      return { ...world, inFlight: undefined };
    case 'answer':
      return afterAnswer(world, step, effect.kid, effect.lookup);
  }
}

function afterEvent(world: World, event: KeySetEvent): World {
  const { nowMs, machine, limits } = world;
  switch (event.kind) {
    case 'seeded':
      return event.ageMs < limits.maxAgeMs ? { ...world, held: 'a', confirmedMs: nowMs - event.ageMs } : world;
    case 'changed':
      return { ...world, isChanged: true };
    case 'withdrawn':
      return { ...world, held: undefined, confirmedMs: Number.NEGATIVE_INFINITY, isChanged: true };
    case 'asked': {
      if (keyOf(world, event.kid) !== undefined || machine.phase === 'new') return world;
      const fruitless = nowMs - world.askedMs >= limits.quietMs ? 0 : world.fruitless;
      return { ...world, isAsked: true, askedMs: nowMs, fruitless };
    }
    case 'fetched':
    case 'notModified':
    case 'failed':
      return event.fetch === world.inFlight ? afterFetchEnd(world, event) : world;
    default:
      return world;
  }
}

function afterFetchEnd(
  world: World,
  event: Extract<KeySetEvent, { kind: 'fetched' | 'notModified' | 'failed' }>,
): World {
  const { nowMs, held, isEarly } = world;
  const brought = event.kind === 'fetched' ? nameOf(event.keys) : event.kind === 'notModified' ? held : undefined;
  const isNews = brought !== undefined && (brought !== held || !isFresh(world));
  return {
    ...world,
    ...(brought === undefined ? {} : { held: brought, confirmedMs: world.fetchStartedMs }),
    inFlight: undefined,
    fetchEndedMs: nowMs,
    lastResult: brought === undefined ? 'failure' : 'success',
    failures: brought === undefined ? world.failures + 1 : 0,
    fruitless: isNews ? 0 : world.fruitless + (isEarly ? 1 : 0),
    earlyEndedMs: isNews ? Number.NEGATIVE_INFINITY : isEarly ? nowMs : world.earlyEndedMs,
    // Who asked during a fetch that failed was answered that nothing can be told.
    isAsked: brought === undefined ? false : world.isAsked,
  };
}

function afterFetchStart(world: World, step: Step, fetch: number): World {
  const { nowMs, limits, failures } = world;
  check(world.inFlight === undefined, 'two fetches are in flight');
  check(nowMs - world.fetchEndedMs >= limits.cooldownMs, 'a fetch starts within the cooldown');
  check(step.kind === 'started' || world.fetchStartedMs > Number.NEGATIVE_INFINITY, 'a fetch comes before the start');
  const sinceEndMs = nowMs - world.fetchEndedMs;
  const isDue =
    step.kind === 'started' || world.isChanged
      ? true
      : failures === 0
        ? nowMs - world.fetchStartedMs >= Math.min(limits.refreshMs, limits.maxAgeMs) * 0.8
        : sinceEndMs >= Math.min(limits.refreshMs / 2, limits.cooldownMs * 2 ** (failures - 1)) ||
          (!isFresh(world) && sinceEndMs >= Math.min(limits.maxRetryMs / 2, limits.cooldownMs * 2 ** (failures - 1)));
  const leastMs = Math.min(limits.maxEarlyMs * 0.8, limits.cooldownMs * 2 ** (world.fruitless - 2));
  const mayBeEarly = world.isAsked && nowMs - world.earlyEndedMs >= leastMs;
  check(isDue || mayBeEarly, world.isAsked ? 'an early refresh defeats the backoff' : 'a fetch comes for no reason');
  return {
    ...world,
    inFlight: fetch,
    fetchStartedMs: nowMs,
    isEarly: !isDue,
    isAsked: false,
    isChanged: false,
  };
}

function afterAnswer(world: World, step: Step, kid: string, lookup: KeyLookup): World {
  const key = keyOf(world, kid);
  check(lookup.kind !== 'key' || lookup.key === key, `${kid} is answered with a key that is not in force`);
  check(key === undefined || lookup.kind === 'key', `${kid} is in force and answered ${lookup.kind}`);
  const canTell = world.lastResult === 'success' && isFresh(world);
  check(lookup.kind !== 'unknown' || canTell, `${kid} is answered unknown though nothing can be told`);
  if (step.kind === 'asked') return world;
  check(world.waiting[kid] !== undefined, `${kid} is answered and does not wait`);
  const { [kid]: _, ...waiting } = world.waiting;
  return { ...world, waiting };
}

function checkAsked(before: World, after: World, step: Step, { effects }: KeySetStep): void {
  if (step.kind !== 'asked') return;
  const { kid } = step;
  const answers = effects.filter(effect => effect.kind === 'answer');
  const waits = after.machine.waiters.some(waiter => waiter.kid === kid);
  check(
    answers.every(answer => answer.kid === kid) && answers.length + (waits ? 1 : 0) === 1,
    `${kid} is not answered once`,
  );
  const [answer] = answers;
  const canTell = before.lastResult === 'success' && isFresh(before) && keyOf(before, kid) === undefined;
  if (answer !== undefined && canTell && before.machine.phase === 'waiting')
    check(answer.lookup.kind === 'unknown', `${kid} is answered ${answer.lookup.kind} while the issuer is healthy`);
}

function checkState(before: World, after: World, step: Step): void {
  const { machine, limits, nowMs } = after;
  for (const kid of kids) check(usableKey(machine, kid, nowMs) === keyOf(after, kid), `${kid} has the wrong key`);
  if (step.kind === 'fetched' || step.kind === 'notModified' || step.kind === 'failed') {
    if (before.inFlight !== step.fetch) check(machine === before.machine, 'a late result changes something');
    else check(machine.waiters.length === 0, 'somebody waits after the fetch');
  }
  check(machine.waiters.length <= limits.maxWaiters, 'too many wait');
  check(machine.knownAbsent.size <= limits.maxUnknownKids, 'the negative cache is unbounded');
  check(machine.askedDuringFetch.length <= limits.maxUnknownKids, 'what is owed is unbounded');
  if (machine.phase !== 'stopped') return;
  check(after.inFlight === undefined && machine.waiters.length === 0, 'something is open after the stop');
  check(nextWakeMs(machine) === undefined, 'it wakes after the stop');
}

/** Adds who has come to wait. Afterwards the world is complete. */
export function withWaiters(world: World): World {
  const { machine, nowMs } = world;
  const waiting = { ...world.waiting };
  for (const { kid } of machine.waiters) waiting[kid] ??= nowMs;
  check(Object.keys(waiting).length === machine.waiters.length, 'somebody who waits was forgotten');
  return { ...world, waiting };
}

/** With timers on time and an issuer that answers, the set becomes usable, and soon where there is none. */
export function checkWayBack(world: World, reduceState: Reduce): void {
  if (world.machine.phase === 'stopped') return;
  const { limits } = world;
  const latestMs = world.nowMs + (isFresh(world) ? limits.refreshMs : Math.max(limits.maxRetryMs, limits.cooldownMs));
  let at = world;
  const go = (step: Step): void => {
    at = withWaiters(afterStep(at, step, reduceState));
  };
  if (at.machine.phase === 'new') go({ kind: 'started' });
  const [waiter] = at.machine.waiters;
  if (waiter !== undefined) {
    const wakeMs = nextWakeMs(at.machine) ?? Number.POSITIVE_INFINITY;
    check(wakeMs <= at.nowMs + limits.waitMs, `${waiter.kid} would wait too long`);
    go({ kind: 'passed', ms: Math.max(0, wakeMs - at.nowMs) });
    go({ kind: 'woken' });
    check(at.waiting[waiter.kid] === undefined, `${waiter.kid} waits for too long`);
  }
  while (at.inFlight === undefined) {
    const wakeMs = nextWakeMs(at.machine);
    check(wakeMs !== undefined && wakeMs <= latestMs, 'there is no way back to a usable set in time');
    go({ kind: 'passed', ms: Math.max(0, (wakeMs ?? 0) - at.nowMs) });
    go({ kind: 'woken' });
    check(at.inFlight !== undefined || nextWakeMs(at.machine) !== wakeMs, 'it wants to be woken again and again');
  }
  // A fetch that was in flight for too long confirms nothing that is usable, but the next one does.
  const isLate = at.nowMs - at.fetchStartedMs >= limits.maxAgeMs;
  go({ kind: 'fetched', fetch: at.inFlight, keys: keySets.ab, jitter: 1 });
  check(isLate || isFresh(at), 'a good fetch leaves no usable set');
  for (let wakeMs = nextWakeMs(at.machine); wakeMs !== undefined; wakeMs = undefined)
    check(wakeMs - at.nowMs <= Math.max(limits.refreshMs, limits.cooldownMs), 'it forgets to refresh');
}

function keyOf(world: World, kid: string): VerificationKey | undefined {
  return world.held !== undefined && isFresh(world) ? keySets[world.held].get(kid) : undefined;
}

function isFresh({ limits, nowMs, confirmedMs }: World): boolean {
  return nowMs - confirmedMs < limits.maxAgeMs;
}

function nameOf(set: ReadonlyMap<string, VerificationKey>): keyof typeof keySets {
  return set === keySets.a ? 'a' : set === keySets.b ? 'b' : 'ab';
}

function setOf(...names: readonly (typeof kids)[number][]): ReadonlyMap<string, VerificationKey> {
  return new Map([...keys].filter(([kid]) => names.includes(kid)));
}

function toKey(kid: string): VerificationKey {
  return { kid, thumbprint: kid, cryptoKeyFor: () => undefined };
}

function check(condition: boolean, invariant: string): void {
  if (!condition) throw new Error(invariant);
}
