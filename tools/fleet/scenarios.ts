// The scenarios of `npm run fleet`: what happens to the fleet and to the authentication service at time 0, and the bars
// that the outcome must meet.
import { fixedLimits } from '../../src/keys/key-set-machine.ts';
import type { Random } from './random.ts';
import type { Bar, Scenario } from './run.ts';

const second = 1000;
const minute = 60 * second;

/** The defaults of the configuration. */
const limits = {
  refreshMs: 300 * second,
  maxAgeMs: 3600 * second,
  cooldownMs: 5 * second,
  ...fixedLimits,
};

const calm: Omit<Scenario, 'name' | 'what' | 'startMs' | 'endMs' | 'goodUntilMs'> = {
  limits,
  publishedAt: () => 'k1',
  signingAt: () => 'k1',
  goodPerSecond: 1,
  unknownKidsPerSecond: 0,
  unknownKidsFromMs: 0,
  usableFromMs: Number.NEGATIVE_INFINITY,
  bars: [],
};

/** Instances that have been up for a while, their refreshes spread. */
const longBefore = (_: number, __: number, random: Random): number => -15 * minute + random() * 5 * minute;

const noneRefused: Bar = {
  text: 'no good token refused',
  isMet: ({ good }) => good.invalid + good.unavailable === 0,
};

/** The only key is replaced at time 0. */
const hardRotation: Omit<Scenario, 'name' | 'what'> = {
  ...calm,
  startMs: longBefore,
  publishedAt: ms => (ms < 0 ? 'k1' : 'k2'),
  signingAt: ms => (ms < 0 ? 'k1' : 'k2'),
  endMs: 5 * minute,
  usableFromMs: 0,
  goodUntilMs: minute,
};

export const scenarios: readonly Scenario[] = [
  {
    ...calm,
    name: 'all start within one second',
    what: 'Every instance starts within one second, without a seed.',
    startMs: (_, __, random) => random() * second,
    endMs: 20 * minute,
    goodUntilMs: 20 * minute,
    bars: [noneRefused],
  },
  {
    ...calm,
    name: 'rolling start',
    what: 'The instances start one after the other, in ten minutes.',
    startMs: (index, instances) => (index / instances) * 10 * minute,
    endMs: 30 * minute,
    goodUntilMs: 30 * minute,
    bars: [noneRefused],
  },
  {
    ...calm,
    name: 'outage and return',
    what: 'The authentication service is down for ten minutes, in which every instance starts, without a seed.',
    startMs: (_, __, random) => random() * 10 * minute,
    publishedAt: ms => (ms < 10 * minute ? undefined : 'k1'),
    endMs: 20 * minute,
    usableFromMs: 10 * minute,
    goodUntilMs: 20 * minute,
    bars: [usableWithin(15, 0.99)],
  },
  {
    ...calm,
    name: 'outage beyond maxAgeSeconds',
    what: 'It is down for 15 minutes while `maxAgeSeconds` is 600, under load: every instance has keys, and loses them.',
    limits: { ...limits, maxAgeMs: 10 * minute },
    startMs: longBefore,
    publishedAt: ms => (ms < 0 || ms >= 15 * minute ? 'k1' : undefined),
    endMs: 25 * minute,
    usableFromMs: 15 * minute,
    goodUntilMs: 25 * minute,
    bars: [usableWithin(15, 0.99)],
  },
  {
    ...calm,
    name: 'unknown kids everywhere',
    what: 'Each instance gets a token with another made-up kid each second.',
    startMs: longBefore,
    unknownKidsPerSecond: 1,
    endMs: 10 * minute,
    usableFromMs: Number.POSITIVE_INFINITY,
    goodUntilMs: 10 * minute,
    bars: [
      {
        text: 'at most 100 fetches per second after the first minute, for 5,000 instances',
        isMet: ({ afterFirstMinute, instances }) => afterFirstMinute <= instances / 50,
      },
      noneRefused,
    ],
  },
  {
    ...hardRotation,
    name: 'hard rotation under load',
    what: 'The only key is replaced at one moment, and from then on every good token is signed with the new one. Good tokens of one minute.',
    goodPerSecond: 5,
    bars: [
      {
        text: '401 for at most 0.1 % of the good tokens of the first minute',
        isMet: ({ good }) => good.invalid <= 0.001 * (good.allowed + good.invalid + good.unavailable),
      },
    ],
  },
  {
    ...hardRotation,
    name: 'hard rotation during an attack',
    what: 'The same, five minutes after unknown kids began to come everywhere. Good tokens of one minute.',
    unknownKidsPerSecond: 1,
    unknownKidsFromMs: -5 * minute,
    bars: [usableWithin(60.2, 1)],
  },
];

function usableWithin(seconds: number, share: number): Bar {
  const text =
    share === 1 ? `every instance usable within ${seconds} s` : `usable within ${seconds} s (p${share * 100})`;
  return { text, isMet: ({ usableSeconds }) => usableSeconds(share) <= seconds };
}
