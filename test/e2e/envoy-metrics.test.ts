// A live Envoy exposes the metrics and labels that alerts and dashboard use.
import { expect } from 'chai';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { envoyMetrics, parseExposition, seriesNames } from '../support/metric-families.ts';
import { useRunning } from '../support/use-running.ts';
import { useLab } from './lab.ts';

describe('the metrics of Envoy in alerts and dashboard', () => {
  const suite = useLab();
  const envoy = useRunning(suite.start);

  it('are exposed by a live Envoy with the labels of the expressions', async () => {
    const target = '/api/subscriptions/accounts/acct1';
    await exchange(envoy.port, requestBytes('GET', target, [`Authorization: ${suite.owner}`]));
    const shown = await fetch(`http://127.0.0.1:${envoy.adminPort}/stats/prometheus`);
    const families = parseExposition(await shown.text());
    expect([...seriesNames(families)]).to.include.members(envoyMetrics);
    const labelled = (name: string, label: string, value: string): boolean =>
      families.some(family => family.name === name && family.series.some(labels => labels.get(label) === value));
    expect(labelled('envoy_http_rbac_denied', 'envoy_rbac_http_prefix', 'only_allowed')).to.equal(true);
    expect(labelled('envoy_http_ext_authz_ok', 'envoy_ext_authz_prefix', 'account')).to.equal(true);
    expect(labelled('envoy_cluster_upstream_rq_total', 'envoy_cluster_name', 'account-authz')).to.equal(true);
  });
});
