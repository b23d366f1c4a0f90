// The story itself: six things that happen to keys, each with a quiet time before and after it, under load that never pauses.
import { setTimeout as delay } from 'node:timers/promises';
import { clockMs } from '../measure/clock.ts';
import type { Form, Kid } from './form.ts';
import type { Lab, Refreshes } from './lab.ts';

export type PhaseName = 'overlap' | 'hard' | 'shortOutage' | 'longOutage' | 'slow' | 'flood';

/** What happened when; all times are of clockMs. */
export interface PhaseRecord {
  readonly name: PhaseName;
  readonly title: string;
  /** The beginning of each window, and the end of the last one. */
  readonly beforeMs: number;
  readonly duringMs: number;
  readonly afterMs: number;
  readonly endMs: number;
  readonly events: readonly { readonly atMs: number; readonly label: string }[];
  /** Within the three windows, by the product's own count. */
  readonly refreshes: Refreshes;
}

export interface Phase {
  readonly name: PhaseName;
  readonly title: string;
  /** Length of the time before and after. */
  readonly quietMs: number;
  /** Before the quiet before. */
  prepare?(): Promise<void>;
  act(note: (label: string) => void): Promise<void>;
}

// Enough for what the issuer has answered to be in force, and for requests that are under way to be answered.
const momentMs = 300;
const gapMs = 100;

export function scenario(lab: Lab, form: Form): readonly Phase[] {
  const { issuer } = lab;
  const { keys } = form;
  const last: Kid = form.rotatesOutsideCooldown ? 'key-4' : 'key-3';
  const compared = form.comparedMs;

  /** Begins just after a fetch and lasts until `passed`; ends with the first fetch after it. */
  async function outage(note: (label: string) => void, passed: () => Promise<void>): Promise<void> {
    await issuer.nextFetch();
    await delay(momentMs);
    note('down');
    await issuer.goDown();
    lab.mix({ good: [last], strangers: true });
    await passed();
    lab.mix({ good: [last] });
    note('back');
    await issuer.comeBack();
    await issuer.nextFetch();
    await delay(momentMs);
  }

  return [
    {
      name: 'overlap',
      title: 'rotation with overlap',
      quietMs: form.quietMs,
      async act(note) {
        note('both published');
        await issuer.publish(['key-1', 'key-2']);
        await delay(keys.refreshSeconds * 1000 + momentMs);
        note('both in use');
        lab.mix({ good: ['key-1', 'key-2'] });
        await delay(form.overlapMs);
        lab.mix({ good: ['key-2'] });
        await delay(momentMs);
        note('old key gone');
        await issuer.publish(['key-2']);
        lab.mix({ good: ['key-2'], retired: 'key-1' });
        await delay(keys.refreshSeconds * 1000 + momentMs);
        lab.mix({ good: ['key-2'] });
      },
    },
    {
      name: 'hard',
      title: 'hard rotation',
      quietMs: form.quietMs,
      async act(note) {
        // The worst moment: the cooldown has only just begun.
        await issuer.nextFetch();
        await delay(50);
        note('in the cooldown');
        await issuer.publish(['key-3']);
        lab.mix({ good: ['key-3'], retired: 'key-2' });
        await delay(form.rotationMs);
        lab.mix({ good: ['key-3'] });
        if (!form.rotatesOutsideCooldown) return;
        // Without strangers to ask for it, the first refresh after a quiet one is not early.
        await issuer.nextFetch();
        await issuer.nextFetch();
        await delay(keys.cooldownSeconds * 1000 + form.settleMs + 150);
        note('after it');
        await issuer.publish(['key-4']);
        lab.mix({ good: ['key-4'] });
        await delay(form.rotationMs);
      },
    },
    {
      name: 'shortOutage',
      title: 'outage within the age',
      quietMs: compared,
      act: note => outage(note, () => delay(form.shortOutageMs)),
    },
    {
      name: 'longOutage',
      title: 'outage past the age',
      quietMs: form.quietMs,
      act: note =>
        outage(note, async () => {
          await delay(keys.maxAgeSeconds * 1000 - momentMs);
          note('too old');
          await delay(form.pastAgeMs);
        }),
    },
    {
      name: 'slow',
      title: 'slow issuer',
      quietMs: form.quietMs,
      async act(note) {
        note(`${form.slowFetchMs / 1000} s a fetch`);
        issuer.slowDown(form.slowFetchMs);
        lab.mix({ good: [last], strangers: true });
        await delay(form.slowMs);
        issuer.slowDown(0);
        lab.mix({ good: [last] });
        await issuer.nextFetch();
        await delay(momentMs);
      },
    },
    {
      name: 'flood',
      title: 'flood of unknown kids',
      quietMs: compared,
      // Not longer before than Envoy keeps connections that rest.
      async prepare() {
        lab.rehearseFlood(true);
        await delay(form.rehearsalMs);
        lab.rehearseFlood(false);
      },
      async act(note) {
        note(`${form.floodPerSecond.toLocaleString('en')} a second`);
        lab.flood(true);
        await delay(form.floodMs);
        lab.flood(false);
      },
    },
  ];
}

/** Runs one phase from its quiet before to its quiet after. */
export async function runPhase(lab: Lab, phase: Phase): Promise<PhaseRecord> {
  const events: { atMs: number; label: string }[] = [];
  await phase.prepare?.();
  // Whatever this process did between two phases is not part of either.
  await delay(gapMs);
  const refreshesBefore = await lab.refreshes();
  const beforeMs = clockMs();
  await delay(phase.quietMs);
  const duringMs = clockMs();
  await phase.act(label => events.push({ atMs: clockMs(), label }));
  const afterMs = clockMs();
  await delay(phase.quietMs);
  const endMs = clockMs();
  const refreshesAfter = await lab.refreshes();
  return {
    ...{ name: phase.name, title: phase.title },
    ...{ beforeMs, duringMs, afterMs, endMs, events },
    refreshes: {
      succeeded: refreshesAfter.succeeded - refreshesBefore.succeeded,
      failed: refreshesAfter.failed - refreshesBefore.failed,
    },
  };
}

/** Steady load until everything is warm. */
export async function warmUp(lab: Lab, form: Form): Promise<void> {
  lab.mix({ good: ['key-1'] });
  await delay(form.warmUpMs);
}
