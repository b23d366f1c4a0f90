// The Prometheus metrics: initial series, event-loop utilization, and conformance by promtool.
import { expect } from 'chai';
import { refusalAnswers } from '../../src/authz/refusal.ts';
import { createMetrics } from '../../src/operations/metrics.ts';
import { checkMetrics } from '../deploy/monitoring/promtool.ts';
import { startServiceLab } from '../support/service.ts';

const issuer = 'https://idp.test';
const create = () =>
  createMetrics('0.0.0-test', {
    keySets: () => [{ issuer, keys: 1, ageSeconds: 5 }],
    cachedTokens: () => 0,
    revocations: () => undefined,
  });
const linesOf = async (metrics: ReturnType<typeof create>): Promise<string[]> =>
  (await metrics.page()).text.split('\n').filter(line => line !== '' && !line.startsWith('#'));

describe('metrics', function () {
  this.timeout(120_000); // the first run unpacks promtool

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

  it('pass promtool check metrics on a live service', async () => {
    const lab = await startServiceLab();
    try {
      await lab.check(`Bearer ${await lab.token()}`);
      expect(await checkMetrics(await (await lab.admin('/metrics')).text())).to.deep.equal({ good: true, output: '' });
    } finally {
      await lab.stop();
    }
  });

  it('are linted by a promtool that detects a planted mistake', async () => {
    const { good, output } = await checkMetrics('# TYPE a_total gauge\na_total 1\n');
    expect(good).to.equal(false);
    expect(output).to.contain('_total');
  });
});
