// The alerts, their runbooks and the dashboard: valid PromQL over existing metrics, one page for each alert.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { runProgram } from '../../../lab/programs.ts';
import { startServiceLab } from '../../../lab/service.ts';
import { metricsIn, parseExpressions, unknownMetrics } from './expressions.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook_url: string };
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[];
}

interface Case {
  readonly promql_expr_test: readonly { readonly expr: string; readonly exp_samples: readonly unknown[] }[];
}

interface Panel {
  readonly targets?: readonly { readonly expr: string }[];
}

const project = new URL('../../../', import.meta.url);
const path = (name: string): string => fileURLToPath(new URL(name, project));
const read = (name: string): string => readFileSync(new URL(name, project), 'utf8');
const { groups }: RuleFile = parse(read('k8s/monitoring/alerts.yaml'));
const alerts = groups.flatMap(({ rules }) => rules);
const cases: readonly Case[] = parse(read('k8s/monitoring/alerts.test.yaml')).tests;
const expressionTests = cases.flatMap(({ promql_expr_test }) => promql_expr_test);

describe('the alerts', () => {
  it('are valid Prometheus rules', async () => {
    const { good, output } = await runProgram('promtool', ['check', 'rules', path('k8s/monitoring/alerts.yaml')]);
    expect(good, output).to.equal(true);
  });

  it('pass promtool test rules: each fires and stays silent as intended', async () => {
    const { good, output } = await runProgram('promtool', ['test', 'rules', path('k8s/monitoring/alerts.test.yaml')]);
    expect(good, output).to.equal(true);
  });

  for (const { alert } of alerts) {
    it(`${alert} is tested firing and silent`, () => {
      const own = expressionTests.filter(({ expr }) => expr.includes(`"${alert}"`));
      expect(own.some(({ exp_samples }) => exp_samples.length > 0)).to.equal(true);
      expect(own.some(({ exp_samples }) => exp_samples.length === 0)).to.equal(true);
    });
  }

  it('have a summary, a severity and a link to their runbook', () => {
    for (const { alert, annotations, labels } of alerts) {
      expect(labels.severity).to.be.oneOf(['critical', 'warning']);
      for (const text of [annotations.summary, annotations.description])
        expect(text).to.be.a('string').that.is.not.empty;
      expect(annotations.runbook_url).to.equal(`https://runbooks.example.com/runbooks.md#${alert.toLowerCase()}`);
    }
  });

  it('name only existing metrics', async () => {
    expect(await unknownMetrics(alerts.map(({ expr }) => expr))).to.deep.equal([]);
  });
});

describe('the runbooks', () => {
  const page = read('docs/runbooks.md');
  const sections = page.split(/^## /m).filter(section => section.startsWith('AccountAuthz'));

  it('are listed with the severity of their alert, in the order of the alerts', () => {
    const rows = Array.from(page.matchAll(/^\| \[(\w+)\]\(#\w+\) \| (\w+) \|/gm), ([, ...cells]) => cells);
    expect(rows).to.deep.equal(alerts.map(({ alert, labels }) => [alert, labels.severity]));
  });

  it('have one section for each alert, with a query that proves the recovery', () => {
    expect(sections.map(section => section.split('\n', 1)[0])).to.deep.equal(alerts.map(({ alert }) => alert));
    for (const section of sections) expect(section).to.match(/Recovered: [\s\S]*```promql/);
  });
});

describe('the dashboard', () => {
  const dashboard: { readonly panels: readonly Panel[] } = JSON.parse(read('k8s/monitoring/dashboard.json'));
  const dashboardExpressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

  it('has valid PromQL expressions', async () => {
    const { good, output } = await parseExpressions(dashboardExpressions);
    expect(good, output).to.equal(true);
  });

  it('names only existing metrics', async () => {
    expect(await unknownMetrics(dashboardExpressions)).to.deep.equal([]);
  });

  it('shows every metric of the product', () => {
    const shown = new Set(dashboardExpressions.flatMap(metricsIn));
    expect([...shown]).to.include.members(
      'account_authz_checks_total account_authz_check_duration_seconds_bucket account_authz_key_refreshes_total account_authz_key_set_age_seconds account_authz_key_set_keys account_authz_token_cache_total account_authz_token_cache_entries account_authz_build_info account_authz_config_reloads_total account_authz_config_last_reload_timestamp_seconds account_authz_revocation_entries account_authz_revocation_reloads_total'.split(
        ' ',
      ),
    );
  });
});

describe('the metrics', () => {
  it('of a live service pass promtool check metrics', async () => {
    const lab = await startServiceLab();
    try {
      await lab.check(`Bearer ${await lab.token()}`);
      const page = await (await lab.admin('/metrics')).text();
      expect(await runProgram('promtool', ['check', 'metrics'], page)).to.deep.equal({ good: true, output: '' });
    } finally {
      await lab.stop();
    }
  });
});
