// Facts for the admin page: healthy, and with every problem.
import { refusalAnswers } from '../../src/authz/refusal.ts';
import type { AdminPageFacts } from '../../src/service/admin-page.ts';
import type { LatencySummary } from '../../src/service/metrics-summary.ts';

const bounds = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, Infinity];

/** `counts` has one entry for each bucket, the last for +Inf. */
export function latency(counts: readonly number[], sumSeconds: number): LatencySummary {
  const buckets = bounds.map((upToSeconds, index) => ({ upToSeconds, count: counts[index] ?? 0 }));
  return { count: counts.reduce((sum, count) => sum + count, 0), sumSeconds, buckets };
}

const usable = { skipped: [], state: 'usable', keys: 2, lastResult: 'success', lastProblem: undefined } as const;
const failed = {
  skipped: [],
  state: 'usable',
  keys: 2,
  lastResult: 'failure',
  lastProblem: 'connection refused',
} as const;
const auth = 'https://auth.example.com';
const partner = 'https://login.partner.example/realms/subscriptions';
const kids = ['k-2026-10', 'NjVBRjY5MDlCMUIwNzU4RTA2QzZFMDQ4QzQ2MDAyQjVDNjk1RTM2Qg'];

export const healthy: AdminPageFacts = {
  version: '0.1.0',
  nodeVersion: 'v24.11.0',
  nowMs: Date.UTC(2026, 10, 21, 12, 0, 3),
  uptimeSeconds: 3 * 86_400 + 4 * 3600 + 120,
  ready: true,
  draining: false,
  issuers: [
    { ...usable, issuer: auth, ageSeconds: 187.4, kids },
    { ...usable, issuer: partner, keys: 1, ageSeconds: 42, kids: ['4f1c2a9e-77b0-4a55-8f2e-5d1a3c0b9e61'] },
  ],
  maxAgeSeconds: 3600,
  maxTokens: 10_000,
  policy: {
    issuers: [
      { issuer: auth, accounts: ['*'] },
      { issuer: partner, accounts: ['initech', 'partner-*'] },
    ],
    account: { parameter: 'account_id' },
    routes: [
      { path: '/api/subscriptions/*' },
      { path: '/api/subscriptions/accounts/:account_id/*', roles: ['owner', 'admin'], scopes: ['billing'] },
    ],
    roles: new Map([
      ['owner', ['*']],
      ['admin', ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']],
      ['member', ['GET', 'HEAD', 'POST /api/subscriptions/accounts/:account_id/comments/*']],
    ]),
    scopes: new Map([
      ['billing', ['*']],
      ['orders:read', ['GET', 'HEAD']],
    ]),
  },
  reload: {
    lastResult: 'success',
    lastAtSeconds: Date.UTC(2026, 10, 21, 9, 41, 10) / 1000,
    problems: 0,
    firstProblems: [],
    needsRestart: [],
  },
  revocations: {
    entries: 1284,
    loadedAtSeconds: Date.UTC(2026, 10, 21, 11, 20, 3) / 1000,
    problems: 0,
    firstProblems: [],
  },
  metrics: {
    checks: [
      { decision: 'allow', reason: 'allowed', count: 1_482_203 },
      { decision: 'deny', reason: 'token_expired', count: 21_874 },
      { decision: 'deny', reason: 'account_mismatch', count: 311 },
      { decision: 'unavailable', reason: 'keys_unavailable', count: 12 },
    ],
    latency: latency([310_114, 872_040, 241_022, 58_310, 21_040, 8110, 2900, 801, 402, 61, 8, 1, 0, 0], 214.6),
    refreshes: new Map([
      [auth, { success: 914, failure: 2 }],
      [partner, { success: 911, failure: 0 }],
    ]),
    tokenCache: { entries: 4120, hits: 1_391_778, misses: 93_912 },
  },
};

export const unhealthy: AdminPageFacts = {
  ...healthy,
  ready: false,
  draining: true,
  issuers: [
    { ...failed, issuer: auth, ageSeconds: 1930, kids },
    { ...failed, issuer: partner, state: 'stale', keys: 0, ageSeconds: 7300, kids },
    {
      ...failed,
      issuer: `https://a-new-one.example/${'tenant-'.repeat(20)}`,
      state: 'loading',
      keys: 0,
      ageSeconds: undefined,
      kids: [],
    },
  ],
  reload: {
    lastResult: 'failure',
    lastAtSeconds: Date.UTC(2026, 10, 21, 11, 58, 50) / 1000,
    problems: 1234,
    firstProblems: ['config.yaml:12:5: issuers[0].audiences: must name at least one audience'],
    needsRestart: ['listen', 'admin', 'tls.certFile', `x${'y'.repeat(400)}`],
  },
  revocations: {
    entries: 100_000,
    loadedAtSeconds: Date.UTC(2026, 10, 20) / 1000,
    problems: 101,
    firstProblems: ['revoked.jsonl:7:1: uid: must be text'],
  },
  metrics: {
    ...healthy.metrics,
    checks: [
      { decision: 'allow', reason: 'allowed', count: 12_345_678_901 },
      ...Object.entries(refusalAnswers).map(([reason, { decision }], index) => ({
        decision,
        reason,
        count: 10 ** Math.min(index, 10),
      })),
    ],
    latency: latency([1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 9_999_999, 250], 12_345),
  },
};
