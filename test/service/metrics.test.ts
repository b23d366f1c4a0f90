// The Prometheus metrics: initial series, event-loop utilization, and their summary. deploy/monitoring/metrics.test.ts lints them with promtool.
import { expect } from 'chai';
import { refusalAnswers } from '../../src/authz/refusal.ts';
import type { CheckRecord } from '../../src/check/check.ts';
import { createMetrics } from '../../src/service/metrics.ts';

const issuer = 'https://idp.test';
const create = () =>
  createMetrics('0.0.0-test', {
    keySets: () => [{ issuer, keys: 1, ageSeconds: 5 }],
    cachedTokens: () => 7,
    revocations: () => undefined,
  });
const linesOf = async (metrics: ReturnType<typeof create>): Promise<string[]> =>
  (await metrics.page()).text.split('\n').filter(line => line !== '' && !line.startsWith('#'));

describe('metrics', () => {
  it('start every decision and reason at 0', async () => {
    const expected = Object.entries(refusalAnswers).map(
      ([reason, { decision }]) => `account_authz_checks_total{decision="${decision}",reason="${reason}"} 0`,
    );
    const lines = await linesOf(create());
    expect(lines).to.include.members([
      ...expected,
      'account_authz_checks_total{decision="allow",reason="allowed"} 0',
      'account_authz_token_cache_total{result="hit"} 0',
      'account_authz_token_cache_total{result="miss"} 0',
    ]);
  });

  it('start both refresh results of each issuer at 0', async () => {
    const metrics = create();
    await metrics.page();
    metrics.countKeyRefresh(issuer, 'failure');
    expect(await linesOf(metrics)).to.include.members([
      `account_authz_key_refreshes_total{issuer="${issuer}",result="success"} 0`,
      `account_authz_key_refreshes_total{issuer="${issuer}",result="failure"} 1`,
    ]);
  });

  it('report the event-loop utilization since the last scrape', async () => {
    const metrics = create();
    await metrics.page();
    const end = performance.now() + 50;
    while (performance.now() < end);
    const line = (await linesOf(metrics)).find(each => each.startsWith('nodejs_eventloop_utilization_ratio '));
    expect(Number(line?.split(' ')[1])).to.be.within(0.5, 1);
  });
});

describe('summary of the metrics', () => {
  const unknown = { detail: undefined, found: undefined, route: undefined, principal: undefined, kid: undefined };
  const record: CheckRecord = {
    requestId: 'r',
    decision: 'allow',
    reason: 'allowed',
    ...unknown,
    method: 'GET',
    cache: 'hit',
    durationMs: 0.2,
    traceId: undefined,
    traceparent: undefined,
    tracestate: undefined,
  };

  it('is zero before the first check', async () => {
    const { checks, latency, refreshes, tokenCache } = await create().summary();
    expect(checks.filter(({ count }) => count !== 0)).to.deep.equal([]);
    expect(latency).to.include({ count: 0, sumSeconds: 0 });
    expect([...refreshes.values()]).to.deep.equal([{ success: 0, failure: 0 }]);
    expect(tokenCache).to.deep.equal({ entries: 7, hits: 0, misses: 0 });
  });

  it('has the checks, durations in one bucket each, refreshes and look-ups, and resets none of them', async () => {
    const metrics = create();
    metrics.countCheck(record);
    await metrics.summary();
    metrics.countCheck({ ...record, cache: 'miss', durationMs: 0.3 });
    metrics.countCheck({ ...record, decision: 'deny', reason: 'token_missing', cache: undefined, durationMs: 9000 });
    for (const result of ['success', 'success', 'failure'] as const) metrics.countKeyRefresh(issuer, result);
    metrics.countKeyRefresh('https://b.test', 'failure');
    const { checks, latency, refreshes, tokenCache } = await metrics.summary();
    expect(checks.filter(({ count }) => count > 0)).to.have.deep.members([
      { decision: 'allow', reason: 'allowed', count: 2 },
      { decision: 'deny', reason: 'token_missing', count: 1 },
    ]);
    expect(latency.buckets.filter(({ count }) => count > 0)).to.deep.equal([
      { upToSeconds: 0.00025, count: 1 },
      { upToSeconds: 0.0005, count: 1 },
      { upToSeconds: Infinity, count: 1 },
    ]);
    expect(latency.count).to.equal(3);
    expect(latency.sumSeconds).to.be.closeTo(9.0005, 1e-9);
    expect([...refreshes]).to.have.deep.members([
      [issuer, { success: 2, failure: 1 }],
      ['https://b.test', { success: 0, failure: 1 }],
    ]);
    expect(tokenCache).to.deep.equal({ entries: 7, hits: 1, misses: 1 });
    expect((await metrics.page()).text).to.contain('account_authz_checks_total{decision="allow",reason="allowed"} 2');
  });
});
