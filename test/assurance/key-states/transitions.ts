// The steps of the model in world.ts, and the invariants that must hold after each.
import { isUsable, nextWakeMs } from '../../../src/http/document-machine.ts';
import { answerNow, type KeySetEvent, type reduce } from '../../../src/keys/key-set-machine.ts';
import { check, isFresh, isInSet, keySets, kids, nameOf, type Step, type World } from './world.ts';

export type Reduce = typeof reduce;

/** The state after this step; throws if an invariant is violated. */
export function afterStep(before: World, step: Step, reduceState: Reduce): World {
  if (step.kind === 'passed') return { ...before, nowMs: before.nowMs + step.ms };
  const { nowMs } = before;
  const machine = reduceState(before.machine, step, nowMs);
  let after = afterEvent({ ...before, machine }, step);
  if (machine.fetch !== before.machine.fetch) after = afterFetchStart(after, step, machine.fetch);
  if (step.kind === 'asked') checkAsked(before, after, step.kid);
  checkState(before, after, step);
  return after;
}

function afterEvent(world: World, event: KeySetEvent): World {
  const { nowMs, machine, limits } = world;
  switch (event.kind) {
    case 'seeded':
      return event.ageMs < limits.maxAgeMs ? { ...world, activeSet: 'a', confirmedMs: nowMs - event.ageMs } : world;
    case 'changed':
      return { ...world, isChanged: true };
    case 'stopped':
      return { ...world, inFlight: undefined };
    case 'asked': {
      if (isInSet(world, event.kid) || machine.phase === 'new') return world;
      const earlyFetchesWithoutNews = nowMs - world.askedMs >= limits.quietMs ? 0 : world.earlyFetchesWithoutNews;
      return { ...world, isAsked: true, askedMs: nowMs, earlyFetchesWithoutNews };
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
  const { nowMs, activeSet, isEarly } = world;
  const unmodified = event.kind === 'notModified' && isFresh(world) ? activeSet : undefined;
  const fetched = event.kind === 'fetched' ? nameOf(event.set) : unmodified;
  const isNews = fetched !== undefined && (fetched !== activeSet || !isFresh(world));
  return {
    ...world,
    ...(fetched === undefined ? {} : { activeSet: fetched, confirmedMs: world.fetchStartedMs }),
    inFlight: undefined,
    fetchEndedMs: nowMs,
    lastResult: fetched === undefined ? 'failure' : 'success',
    failures: fetched === undefined ? world.failures + 1 : 0,
    earlyFetchesWithoutNews: isNews ? 0 : world.earlyFetchesWithoutNews + (isEarly ? 1 : 0),
    earlyEndedMs: isNews ? Number.NEGATIVE_INFINITY : isEarly ? nowMs : world.earlyEndedMs,
    // Lookups during a fetch that failed were answered "unavailable".
    isAsked: fetched === undefined ? false : world.isAsked,
  };
}

function afterFetchStart(world: World, step: Step, fetch: number): World {
  const { nowMs, limits, failures } = world;
  check(world.inFlight === undefined, 'two fetches are in flight');
  check(nowMs - world.fetchEndedMs >= limits.cooldownMs, 'a fetch starts within the cooldown');
  check(step.kind === 'started' || world.fetchStartedMs > Number.NEGATIVE_INFINITY, 'a fetch before the start');
  const sinceEndMs = nowMs - world.fetchEndedMs;
  const isDue =
    step.kind === 'started' || world.isChanged
      ? true
      : failures === 0
        ? nowMs - world.fetchStartedMs >= Math.min(limits.refreshMs, limits.maxAgeMs) * 0.8
        : sinceEndMs >= Math.min(limits.refreshMs / 2, limits.cooldownMs * 2 ** (failures - 1)) ||
          (!isFresh(world) && sinceEndMs >= Math.min(limits.maxRetryMs / 2, limits.cooldownMs * 2 ** (failures - 1)));
  const backoffMs = Math.min(limits.maxEarlyMs * 0.8, limits.cooldownMs * 2 ** (world.earlyFetchesWithoutNews - 2));
  const mayBeEarly = world.isAsked && nowMs - world.earlyEndedMs >= backoffMs;
  check(isDue || mayBeEarly, world.isAsked ? 'an early refresh defeats the backoff' : 'a fetch without a reason');
  return { ...world, inFlight: fetch, fetchStartedMs: nowMs, isEarly: !isDue, isAsked: false, isChanged: false };
}

function checkAsked(before: World, after: World, kid: string): void {
  const { machine, limits, nowMs } = after;
  // While a fetch is in flight, the kid waits for it.
  if (isInSet(before, kid) || machine.phase !== 'waiting') return;
  const { kind } = answerNow(machine, kid, nowMs);
  const isConclusive = before.lastResult === 'success' && isFresh(before);
  check(kind === (isConclusive ? 'unknown' : 'unavailable'), `${kid} is answered ${kind}`);
  const owedMs = machine.knownAbsent.has(kid)
    ? Number.POSITIVE_INFINITY
    : Math.max(limits.cooldownMs, limits.maxEarlyMs);
  check((nextWakeMs(machine) ?? nowMs) - nowMs <= owedMs, `no fetch for ${kid} follows in time`);
}

function checkState(before: World, after: World, step: Step): void {
  const { machine, limits, nowMs } = after;
  const usable = isUsable(machine, nowMs) ? machine.set : undefined;
  const isConclusive = after.lastResult === 'success' && isFresh(after);
  for (const kid of kids) {
    check((usable?.kids.has(kid) === true) === isInSet(after, kid), `${kid} has the wrong key`);
    const { kind } = answerNow(machine, kid, nowMs);
    check((kind === 'known') === isInSet(after, kid), `${kid} has the wrong answer ${kind}`);
    check(kind !== 'unknown' || isConclusive, `${kid} is answered unknown without a conclusive set`);
  }
  if (
    (step.kind === 'fetched' || step.kind === 'notModified' || step.kind === 'failed') &&
    before.inFlight !== step.fetch
  )
    check(machine === before.machine, 'a late result changes something');
  check((machine.phase === 'fetching') === (after.inFlight !== undefined), 'the phase is not that of the fetch');
  check(machine.knownAbsent.size <= limits.maxUnknownKids, 'the negative cache is unbounded');
  check(machine.askedDuringFetch.length <= limits.maxUnknownKids, 'the kids asked for during a fetch are unbounded');
  if (machine.phase !== 'stopped') return;
  check(nextWakeMs(machine) === undefined, 'it wakes after the stop');
}

/** Checks liveness: with punctual timers and an issuer that answers, the set becomes usable in time. */
export function checkRecovery(world: World, reduceState: Reduce): void {
  if (world.machine.phase === 'stopped') return;
  const { limits } = world;
  const latestMs = world.nowMs + (isFresh(world) ? limits.refreshMs : Math.max(limits.maxRetryMs, limits.cooldownMs));
  let at = world;
  const go = (step: Step): void => {
    at = afterStep(at, step, reduceState);
  };
  if (at.machine.phase === 'new') go({ kind: 'started' });
  while (at.inFlight === undefined) {
    const wakeMs = nextWakeMs(at.machine);
    check(wakeMs !== undefined && wakeMs <= latestMs, 'the set does not become usable in time');
    go({ kind: 'passed', ms: Math.max(0, (wakeMs ?? 0) - at.nowMs) });
    go({ kind: 'woken' });
    check(at.inFlight !== undefined || nextWakeMs(at.machine) !== wakeMs, 'it wakes without progress');
  }
  // The result of a fetch that was in flight for longer than maxAgeMs is already stale; the next fetch confirms the set.
  const isLate = at.nowMs - at.fetchStartedMs >= limits.maxAgeMs;
  go({ kind: 'fetched', fetch: at.inFlight, set: keySets.ab, jitter: 1 });
  check(isLate || isFresh(at), 'a good fetch leaves no usable set');
  for (let wakeMs = nextWakeMs(at.machine); wakeMs !== undefined; wakeMs = undefined)
    check(wakeMs - at.nowMs <= Math.max(limits.refreshMs, limits.cooldownMs), 'it schedules no refresh');
}
