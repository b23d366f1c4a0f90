// Sends generated targets through a reader, by default the product, and passes each allowed one to every upstream.
import { createRandom, type Random } from '../generator/random.ts';
import { accounts, generateTarget, type Target } from './targets.ts';
import { createUpstreams } from './upstreams.ts';
import { generateWideTarget } from './wide-targets.ts';

/** Whether a request for this target is allowed with a valid token of this account. */
export type Allows = (target: string, account: string) => Promise<boolean> | boolean;

export interface PathDifference {
  readonly seed: number;
  readonly number: number;
  readonly upstream: string;
  readonly tricks: readonly string[];
  readonly target: string;
  /** The account of the token. */
  readonly account: string;
  readonly served: readonly string[];
}

export interface PathComparison {
  readonly targets: number;
  readonly allowed: number;
  /** Allowed, and at least one upstream ran a handler for an account. */
  readonly served: number;
  /** Allowed although the target was manipulated. */
  readonly allowedThoughTricky: number;
  /** Refused, although an upstream would have run a handler for another account than the token's. */
  readonly attacksRefused: number;
  readonly differences: readonly PathDifference[];
}

export interface Layout {
  readonly name: string;
  readonly templates: readonly string[];
  /** Those of them that no token of the comparison may use. */
  readonly narrowed?: readonly string[];
  /** The templates that are not strict. */
  readonly wide?: readonly string[];
}

/** A layout in which files may have any name. `npm run paths` asks servers in other languages about it. */
export const wideLayout: Layout = {
  name: 'files with any name',
  templates: [
    '/files/:account_id/*',
    '/files/:account_id/admin/*',
    '/files/:account_id/stats/*',
    '/files/:account_id/kind/:item',
    '/files/:account_id/private/*',
    '/shared/:name',
    '/shared/admin/*',
  ],
  narrowed: [
    '/files/:account_id/admin/*',
    '/files/:account_id/stats/*',
    '/files/:account_id/private/*',
    '/shared/admin/*',
  ],
  wide: [
    '/files/:account_id/*',
    '/files/:account_id/admin/*',
    '/files/:account_id/stats/*',
    '/files/:account_id/kind/:item',
    '/shared/:name',
    '/shared/admin/*',
  ],
};

export const layouts: readonly Layout[] = [
  {
    name: 'accounts beside the rest',
    templates: ['/api/subscriptions/*', '/api/subscriptions/accounts/:account_id/*'],
  },
  { name: 'an account first', templates: ['/api/subscriptions/:account_id/*'] },
  {
    name: 'an account in the middle',
    templates: [
      '/api/:region/accounts/:account_id',
      '/api/:region/accounts/:account_id/items/:item',
      '/api/subscriptions',
    ],
  },
  wideLayout,
];

export function generateTargetOf({ templates, wide }: Layout, random: Random): Target {
  return wide === undefined ? generateTarget(random, templates) : generateWideTarget(random);
}

export async function comparePaths(options: {
  readonly targets: number;
  readonly seed: number;
  readonly layout: Layout;
  readonly allows: Allows;
  /** Stops after this many differences. */
  readonly maxDifferences?: number;
}): Promise<PathComparison> {
  const { targets, seed, layout, allows, maxDifferences = 20 } = options;
  const upstreams = createUpstreams(layout);
  const tally = { allowed: 0, served: 0, allowedThoughTricky: 0, attacksRefused: 0 };
  const differences: PathDifference[] = [];
  for (let number = 0; number < targets && differences.length < maxDifferences; number += 1) {
    const { text: target, account, tricks } = generateTargetOf(layout, createRandom(seed, number));
    const isAllowed = await allows(target, account);
    let isServed = false;
    let isOther = false;
    for (const [upstream, serve] of upstreams) {
      const served = serve(target);
      isServed ||= served.length > 0;
      if (served.every(each => each === account)) continue;
      isOther = true;
      if (!isAllowed) break;
      differences.push({ seed, number, upstream, tricks, target, account, served });
    }
    if (!isAllowed && isOther) tally.attacksRefused += 1;
    if (!isAllowed) continue;
    tally.allowed += 1;
    if (isServed) tally.served += 1;
    if (tricks.length > 0) tally.allowedThoughTricky += 1;
  }
  return { ...tally, targets, differences };
}

/** The accounts that need tokens. */
export const targetAccounts: readonly string[] = accounts;
