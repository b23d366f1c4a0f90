// The summary of the metrics that the admin page shows.
import { expect } from 'chai';
import type { CheckRecord } from '../../src/check/check-record.ts';
import { createMetrics, type Metrics } from '../../src/service/metrics.ts';
import type { MetricsSummary } from '../../src/service/metrics-summary.ts';

const record: CheckRecord = {
  requestId: 'r',
  decision: 'allow',
  reason: 'allowed',
  detail: undefined,
  found: undefined,
  method: 'GET',
  route: undefined,
  principal: undefined,
  kid: undefined,
  cache: 'hit',
  durationMs: 0.2,
  traceId: undefined,
  traceparent: undefined,
  tracestate: undefined,
};

function create(): Metrics {
  return createMetrics('0.0.0-test', { keySets: () => [], cachedTokens: () => 7, revocations: () => undefined });
}

describe('metrics summary', () => {
  it('accumulates across readings, and does not reset the metrics', async () => {
    const metrics = create();
    for (const times of [1, 2]) {
      metrics.countCheck(record);
      const { checks, tokenCache } = await metrics.summary();
      expect(checks.find(({ reason }) => reason === 'allowed')?.count).to.equal(times);
      expect(tokenCache.hits).to.equal(times);
    }
    expect((await metrics.page()).text).to.contain('account_authz_checks_total{decision="allow",reason="allowed"} 2');
  });

  it('is zero before the first check', async () => {
    const { checks, latency, refreshes, tokenCache } = await create().summary();
    expect(checks.filter(({ count }) => count !== 0)).to.deep.equal([]);
    expect(latency).to.include({ count: 0, sumSeconds: 0 });
    expect(refreshes.size).to.equal(0);
    expect(tokenCache).to.deep.equal({ entries: 7, hits: 0, misses: 0 });
  });

  describe('after some checks and refreshes', () => {
    let summary: MetricsSummary;
    before(async () => {
      const metrics = create();
      metrics.countCheck(record);
      metrics.countCheck({ ...record, cache: 'miss', durationMs: 0.3 });
      metrics.countCheck({ ...record, decision: 'deny', reason: 'token_missing', cache: undefined, durationMs: 9000 });
      metrics.countKeyRefresh('https://a.test', 'success');
      metrics.countKeyRefresh('https://a.test', 'success');
      metrics.countKeyRefresh('https://a.test', 'failure');
      metrics.countKeyRefresh('https://b.test', 'failure');
      summary = await metrics.summary();
    });

    it('counts checks by decision and reason', () => {
      expect(summary.checks.filter(({ count }) => count > 0)).to.have.deep.members([
        { decision: 'allow', reason: 'allowed', count: 2 },
        { decision: 'deny', reason: 'token_missing', count: 1 },
      ]);
    });
    it('counts each duration in exactly one bucket, the last one unbounded', () => {
      const filled = summary.latency.buckets.filter(({ count }) => count > 0);
      expect(filled).to.deep.equal([
        { upToSeconds: 0.00025, count: 1 },
        { upToSeconds: 0.0005, count: 1 },
        { upToSeconds: Number.POSITIVE_INFINITY, count: 1 },
      ]);
      expect(summary.latency.buckets.at(-1)?.upToSeconds).to.equal(Number.POSITIVE_INFINITY);
    });
    it('has the number and sum of the durations', () => {
      expect(summary.latency.count).to.equal(3);
      expect(summary.latency.sumSeconds).to.be.closeTo(9.0005, 1e-9);
    });
    it('counts the refreshes of each issuer', () => {
      expect([...summary.refreshes]).to.deep.equal([
        ['https://a.test', { success: 2, failure: 1 }],
        ['https://b.test', { success: 0, failure: 1 }],
      ]);
    });
    it('has the lookups and the size of the token cache', () => {
      expect(summary.tokenCache).to.deep.equal({ entries: 7, hits: 1, misses: 1 });
    });
  });
});
