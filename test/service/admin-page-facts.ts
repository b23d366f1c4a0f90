// Facts for the admin page: healthy, and with every problem.
import { refusalAnswers } from '../../src/authz/refusal.ts';
import type { AdminPageFacts } from '../../src/service/admin-page.ts';

const usable = { skipped: [], state: 'usable', keys: 2, lastResult: 'success', lastProblem: undefined } as const;
const failed = { ...usable, lastResult: 'failure', lastProblem: 'connection refused' } as const;
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
  revocations: { entries: 1284, loadedAtSeconds: 1_795_260_003, problems: 0, firstProblems: [] },
  decisions: new Map([
    ['allowed', 1_482_203],
    ['token_expired', 21_874],
    ['account_mismatch', 311],
    ['keys_unavailable', 12],
  ]),
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
  decisions: new Map([
    ['allowed', 12_345_678_901],
    ...Object.keys(refusalAnswers).map((reason, index) => [reason, 10 ** Math.min(index, 10)] as const),
  ]),
};
