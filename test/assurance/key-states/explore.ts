// Explores a state machine of key sets exhaustively: breadth first from a few initial states, each state of the model once.
import { type KeySetLimits, reduce } from '../../../src/keys/key-set-machine.ts';
import { afterStep, checkRecovery } from './transitions.ts';
import { firstWorld, initialSteps, type Step, stepsOf, type World } from './world.ts';

/**
 * Small numbers in the order of the defaults, so that the instants around different limits coincide and the state space stays small. One
 * kid may be in the negative cache, so two exceed the limits.
 */
export const smallLimits: KeySetLimits = {
  cooldownMs: 4,
  maxRetryMs: 5,
  maxEarlyMs: 10,
  refreshMs: 20,
  maxAgeMs: 30,
  quietMs: 40,
  maxUnknownKids: 1,
};

/** Throws an error with the shortest sequence of steps that breaks an invariant. */
export function explore(options: {
  readonly limits?: KeySetLimits;
  readonly maxDepth: number;
  /** Called before each state; ends the exploration within a level, which then does not count. */
  readonly isOver?: () => boolean;
}) {
  const { limits = smallLimits, maxDepth, isOver = () => false } = options;
  const go = (world: World, step: Step, before: Path | undefined): Node => {
    const path = { step, before };
    return { world: guarded(() => afterStep(world, step, reduce), path), path };
  };
  let level = Object.values(initialSteps).map(steps =>
    steps.reduce<Node>((at, step) => go(at.world, step, at.path), { world: firstWorld(limits), path: undefined }),
  );
  const seen = new Set(level.map(({ world }) => signatureOf(world)));
  const levels = [level.length];
  let transitions = 0;
  while (level.length > 0 && levels.length <= maxDepth) {
    const next: Node[] = [];
    for (const { world, path } of level) {
      if (isOver()) return { states: seen.size, transitions, levels, isComplete: false };
      for (const step of stepsOf(world)) {
        transitions += 1;
        const node = go(world, step, path);
        const signature = signatureOf(node.world);
        if (seen.has(signature)) continue;
        seen.add(signature);
        guarded(() => checkRecovery(node.world, reduce), node.path);
        next.push(node);
      }
    }
    level = next;
    levels.push(next.length);
  }
  return { states: seen.size, transitions, levels, isComplete: level.length === 0 };
}

interface Node {
  readonly world: World;
  readonly path: Path | undefined;
}

interface Path {
  readonly step: Step;
  readonly before: Path | undefined;
}

function guarded<T>(work: () => T, path: Path | undefined): T {
  try {
    return work();
  } catch (error) {
    const steps: string[] = [];
    for (let at = path; at !== undefined; at = at.before) steps.unshift(textOf(at.step));
    const problem = error instanceof Error ? error.message : String(error);
    throw new Error(`${problem}, after: ${steps.join(' · ')}`, { cause: error });
  }
}

function textOf(step: Step): string {
  switch (step.kind) {
    case 'passed':
      return `+${step.ms} ms`;
    case 'asked':
      return `asked ${step.kid}`;
    case 'seeded':
      return `seeded ${step.ageMs} ms old`;
    case 'fetched':
      return `fetched ${step.fetch}: ${[...step.set.kids].join(' ')}, jitter ${step.jitter}`;
    case 'notModified':
    case 'failed':
      return `${step.kind} ${step.fetch}, jitter ${step.jitter}`;
    default:
      return step.kind;
  }
}

// Equivalent states have the same signature: times are relative to now, past times are equal, and the two kids are symmetric. Backoffs
// no longer grow after a few steps.
const maxBackoffSteps = 3;

function signatureOf(world: World): string {
  const { machine, limits, nowMs } = world;
  const { phase } = machine;
  const ahead = (ms: number): number => Math.max(0, ms - nowMs);
  const ago = (ms: number, maxMs: number): number => Math.min(maxMs, nowMs - ms);
  const parts = [
    phase === 'new' ? 0 : phase === 'waiting' ? 1 : phase === 'fetching' ? 2 : 3,
    world.activeSet === 'ab' ? 'c' : world.activeSet,
    ago(world.confirmedMs, limits.maxAgeMs),
  ];
  if (phase !== 'stopped')
    parts.push(
      phase === 'waiting' ? ahead(machine.nextFetchMs) : '',
      ahead(machine.notBeforeMs),
      ahead(machine.earlyNotBeforeMs),
      Math.min(maxBackoffSteps, machine.earlyFetchesWithoutNews),
      ago(machine.askedMs, limits.quietMs),
      Math.min(maxBackoffSteps, machine.failures),
      world.lastResult === undefined ? '' : world.lastResult === 'success' ? 1 : 0,
      machine.askedDuringFetch.join(),
      machine.askedBeforeFetch.join(),
      [...machine.knownAbsent].join(),
      machine.changed ? 1 : 0,
      ago(world.fetchStartedMs, limits.maxAgeMs),
      phase === 'waiting' ? ago(world.fetchEndedMs, limits.refreshMs) : '',
      (world.isChanged ? 1 : 0) + (world.isAsked ? 2 : 0) + (world.isEarly ? 4 : 0),
      Math.min(maxBackoffSteps, world.earlyFetchesWithoutNews),
      ago(world.earlyEndedMs, limits.maxEarlyMs),
    );
  const signature = parts.join(';');
  const swapped = signature.replaceAll(/[ab]/g, kid => (kid === 'a' ? 'b' : 'a'));
  return signature < swapped ? signature : swapped;
}
