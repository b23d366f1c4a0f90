// A model of the environment of a key set's state machine: two kids, and every event.
import type { VerificationKey } from '../../../src/keys/jwks.ts';
import {
  createKeySetState,
  type KeySetEvent,
  type KeySetLimits,
  type KeySetState,
  type Keys,
} from '../../../src/keys/key-set-machine.ts';

export const kids = ['a', 'b'] as const;
const keys = new Map(kids.map(kid => [kid, toKey(kid)] as const));
export const keySets = { a: setOf('a'), b: setOf('b'), ab: setOf('a', 'b') } as const;

/** A state of the model. Everything but `machine` is derived only from events and the fetches that begin. */
export interface World {
  readonly limits: KeySetLimits;
  readonly machine: KeySetState;
  readonly nowMs: number;
  /** The number of the fetch in flight. */
  readonly inFlight: number | undefined;
  readonly fetchStartedMs: number;
  readonly fetchEndedMs: number;
  readonly lastResult: 'success' | 'failure' | undefined;
  /** The set in use. */
  readonly activeSet: keyof typeof keySets | undefined;
  readonly confirmedMs: number;
  /** A fetch is due as soon as the cooldown is over. */
  readonly isChanged: boolean;
  /** An unknown kid was requested since the latest fetch started. */
  readonly isAsked: boolean;
  /** The latest fetch started only because of an unknown kid. */
  readonly isEarly: boolean;
  /** The number of consecutive early refreshes without a change, and when the last one ended. */
  readonly earlyFetchesWithoutNews: number;
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
    activeSet: undefined,
    confirmedMs: never,
    isChanged: false,
    isAsked: false,
    isEarly: false,
    earlyFetchesWithoutNews: 0,
    earlyEndedMs: never,
    askedMs: never,
    failures: 0,
  };
}

const result = (kind: 'fetched' | 'failed', fetch: number, jitter: number): KeySetEvent =>
  kind === 'fetched' ? { kind, fetch, set: keySets.a, jitter } : { kind, fetch, problem: 'status 500', jitter };
const passed = (ms: number): Step => ({ kind: 'passed', ms });
const started: Step = { kind: 'started' };
const woken: Step = { kind: 'woken' };
const unknownKid: Step = { kind: 'asked', kid: 'b' };

type Fetch = readonly [afterMs: number, fetch: number];
const failing = (...fetches: readonly Fetch[]): readonly Step[] =>
  fetches.flatMap(([ms, fetch]) => [passed(ms), woken, result('failed', fetch, 0)]);
const floods = (...fetches: readonly Fetch[]): readonly Step[] =>
  fetches.flatMap(([ms, fetch]) => [passed(ms), unknownKid, result('fetched', fetch, 1)]);

/** The initial states of an exploration, some of which take many steps to reach. The times match `smallLimits`. */
export const initialSteps: Readonly<Record<string, readonly Step[]>> = {
  'before the start': [],
  'a usable set': [started, result('fetched', 1, 1)],
  'a flood of unknown kids': [started, result('fetched', 1, 1), ...floods([4, 2], [4, 3], [8, 4])],
  'an outage with a set': [started, result('fetched', 1, 0), ...failing([16, 2], [4, 3])],
  'an outage without a set': [started, result('failed', 1, 0), ...failing([4, 2], [4, 3])],
};

/** All possible next steps: each event now, or the passage of time to an instant around a limit. */
export function stepsOf(world: World): readonly Step[] {
  const { machine, limits, nowMs } = world;
  const steps: Step[] = instantsOf(world).map(instantMs => ({ kind: 'passed', ms: instantMs - nowMs }));
  steps.push({ kind: 'woken' }, { kind: 'changed' }, { kind: 'stopped' });
  for (const kid of kids) steps.push({ kind: 'asked', kid });
  if (machine.phase === 'new') {
    for (const ageMs of [0, limits.maxAgeMs - 1, limits.maxAgeMs])
      steps.push({ kind: 'seeded', set: keySets.a, ageMs });
    steps.push({ kind: 'started' });
  }
  for (const fetch of world.inFlight === undefined ? [machine.fetch] : [machine.fetch, machine.fetch - 1]) {
    for (const jitter of [0, 1]) {
      for (const set of Object.values(keySets)) steps.push({ kind: 'fetched', fetch, set, jitter });
      steps.push({ kind: 'notModified', fetch, jitter }, { kind: 'failed', fetch, problem: 'status 500', jitter });
    }
  }
  return steps;
}

/** Just before, at and just after each future limit. */
function instantsOf({ machine, limits, nowMs }: World): readonly number[] {
  const { confirmedMs = Number.NEGATIVE_INFINITY } = machine;
  const deadlines = [
    machine.nextFetchMs,
    machine.notBeforeMs,
    machine.earlyNotBeforeMs,
    confirmedMs + limits.maxAgeMs,
    machine.askedMs + limits.quietMs,
  ];
  const around = deadlines.flatMap(deadlineMs => [deadlineMs - 1, deadlineMs, deadlineMs + 1]);
  return [...new Set(around)].filter(instantMs => instantMs > nowMs && Number.isFinite(instantMs));
}

export function isInSet(world: World, kid: string): boolean {
  return world.activeSet !== undefined && isFresh(world) && keySets[world.activeSet].kids.has(kid);
}

export function isFresh({ limits, nowMs, confirmedMs }: World): boolean {
  return nowMs - confirmedMs < limits.maxAgeMs;
}

export function nameOf(set: Keys): keyof typeof keySets {
  return set === keySets.a ? 'a' : set === keySets.b ? 'b' : 'ab';
}

function setOf(...names: readonly (typeof kids)[number][]): Keys {
  const found = [...keys].filter(([kid]) => names.includes(kid));
  return { keys: new Map(found.map(([, key]) => [key, new Set()])), kids: new Set(names) };
}

function toKey(kid: string): VerificationKey {
  return { kid, thumbprint: kid, cryptoKeyFor: () => undefined };
}

export function check(condition: boolean, invariant: string): void {
  if (!condition) throw new Error(invariant);
}
