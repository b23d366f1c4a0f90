// The Prometheus metrics: initial series and event-loop utilization. deploy/monitoring/metrics.test.ts lints them with promtool.
import { expect } from 'chai';
import { refusalAnswers } from '../../src/authz/refusal.ts';
import { createMetrics } from '../../src/service/metrics.ts';

const issuer = 'https://idp.test';
const create = () =>
  createMetrics('0.0.0-test', {
    keySets: () => [{ issuer, keys: 1, ageSeconds: 5 }],
    cachedTokens: () => 0,
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
