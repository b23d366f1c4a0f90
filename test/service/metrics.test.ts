// The Prometheus metrics: initial series, event-loop utilization, and decisions since start. deploy/monitoring/metrics.test.ts lints them with promtool.
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

describe('decisions since start', () => {
  const unknown = { detail: undefined, found: undefined, route: undefined, principal: undefined, kid: undefined };
  const record: CheckRecord = {
    requestId: 'r',
    decision: 'allow',
    reason: 'allowed',
    ...unknown,
    method: 'GET',
    cache: 'hit',
    durationMs: 0.2,
    traceparent: undefined,
    tracestate: undefined,
  };

  it('counts the checks of each reason, and resets none of them', async () => {
    const metrics = create();
    expect([...(await metrics.decisions()).values()].every(count => count === 0)).to.equal(true);
    metrics.countCheck(record);
    await metrics.decisions();
    metrics.countCheck({ ...record, cache: 'miss' });
    metrics.countCheck({ ...record, decision: 'deny', reason: 'token_missing', cache: undefined });
    const counted = [...(await metrics.decisions())].filter(([, count]) => count > 0);
    expect(counted).to.have.deep.members([
      ['allowed', 2],
      ['token_missing', 1],
    ]);
    expect((await metrics.page()).text).to.contain('account_authz_checks_total{decision="allow",reason="allowed"} 2');
  });
});
