// How long and how hard the resilience scenario is: in full for its figures, in brief for its correctness.

/** The keys of the story, in the order in which the issuer signs with them. */
export const kids = ['key-1', 'key-2', 'key-3', 'key-4'] as const;
export type Kid = (typeof kids)[number];

export interface Form {
  readonly name: 'full' | 'short';
  /** The `keys` section of the product's configuration; short times, so that an hour's story fits into minutes. */
  readonly keys: {
    readonly refreshSeconds: number;
    readonly maxAgeSeconds: number;
    readonly cooldownSeconds: number;
    readonly timeoutSeconds: number;
  };
  readonly goodPerSecond: number;
  readonly floodPerSecond: number;
  /** For how long there are fresh tokens of each key: more than they are used for. */
  readonly freshSeconds: Readonly<Record<Kid, number>>;
  readonly warmUpMs: number;
  /** Steady load before and after what a phase is about; longer where a bar compares the two. */
  readonly quietMs: number;
  readonly comparedMs: number;
  /** With tokens of both keys. */
  readonly overlapMs: number;
  /** For each hard rotation. */
  readonly rotationMs: number;
  /** Also rotates hard when a refresh may start at once; needs refreshSeconds well above cooldownSeconds. */
  readonly rotatesOutsideCooldown: boolean;
  readonly shortOutageMs: number;
  /** Of the long outage, beyond maxAgeSeconds. */
  readonly pastAgeMs: number;
  /** One fetch of the slow issuer: less than timeoutSeconds. */
  readonly slowFetchMs: number;
  readonly slowMs: number;
  /** Of the flood, where account-authz is not asked. */
  readonly rehearsalMs: number;
  readonly floodMs: number;
  /** At most this long after the issuer's answer was written, what it says has to be in force. */
  readonly settleMs: number;
  /** False: a check that ran into Envoy's time limit says something of the machine, not of the product, if there are few. */
  readonly judgesTimes: boolean;
}

export const fullForm: Form = {
  name: 'full',
  keys: { refreshSeconds: 2, maxAgeSeconds: 10, cooldownSeconds: 1, timeoutSeconds: 2 },
  goodPerSecond: 150,
  floodPerSecond: 2000,
  freshSeconds: { 'key-1': 60, 'key-2': 60, 'key-3': 30, 'key-4': 240 },
  warmUpMs: 8000,
  quietMs: 5000,
  comparedMs: 10_000,
  overlapMs: 3000,
  rotationMs: 3000,
  rotatesOutsideCooldown: true,
  shortOutageMs: 6500,
  pastAgeMs: 4000,
  slowFetchMs: 1500,
  slowMs: 9000,
  rehearsalMs: 8000,
  floodMs: 15_000,
  settleMs: 300,
  judgesTimes: true,
};

export const shortForm: Form = {
  name: 'short',
  keys: { refreshSeconds: 1, maxAgeSeconds: 3, cooldownSeconds: 1, timeoutSeconds: 1 },
  goodPerSecond: 100,
  floodPerSecond: 500,
  freshSeconds: { 'key-1': 15, 'key-2': 15, 'key-3': 45, 'key-4': 1 },
  warmUpMs: 300,
  quietMs: 250,
  comparedMs: 250,
  overlapMs: 600,
  rotationMs: 1500,
  rotatesOutsideCooldown: false,
  shortOutageMs: 900,
  pastAgeMs: 900,
  slowFetchMs: 700,
  slowMs: 1600,
  rehearsalMs: 300,
  floodMs: 1500,
  settleMs: 400,
  judgesTimes: false,
};
