// docs/metrics.md: the metrics in the product's registry, from its own page, and what each means.
import { createMetrics } from '../../src/service/metrics.ts';
import { envoyMetrics } from './envoy-metrics.ts';
import { type MetricFamily, parseExposition } from './exposition.ts';

interface Reading {
  readonly query: string;
  /** What a change in the metric means. */
  readonly meaning: string;
}

const readings: Readonly<Record<string, Reading>> = {
  account_authz_checks_total: {
    query: 'sum by (decision, reason) (rate(account_authz_checks_total[5m]))',
    meaning:
      'The first thing to look at. `unavailable` above 0: the signing keys of an issuer are unavailable (`keys_unavailable`), or an internal error (`internal`, never expected). One reason of `deny` that jumps: a deployment on the client side, a rotation at the issuer, or somebody trying; [which](runbooks.md#accountauthzrefusalsjump). No rate at all while Envoy has one: Envoy does not reach us.',
  },
  account_authz_check_duration_seconds: {
    query: 'histogram_quantile(0.99, sum by (le) (rate(account_authz_check_duration_seconds_bucket[5m])))',
    meaning:
      'Well below a millisecond for known tokens and a few for new ones. A second hill at 0.15 s is requests that wait for an early refresh of keys. All of it moving up: too little CPU, see the event loop.',
  },
  account_authz_key_refreshes_total: {
    query: 'sum by (issuer, result) (increase(account_authz_key_refreshes_total[15m]))',
    meaning:
      'About one `success` each `keys.refreshSeconds`. `failure`: the log line `key refresh failed` has the problem. Far more of either: unknown kids ask for early refreshes, soon one a minute at most. Issuers that share a source count its fetches each.',
  },
  account_authz_token_cache_total: {
    query:
      'sum(rate(account_authz_token_cache_total{result="hit"}[5m])) / sum(rate(account_authz_token_cache_total[5m]))',
    meaning:
      'A miss costs a signature check. A ratio that falls: shorter tokens, more users than `cache.maxTokens`, a rotation (once), or a flood of made-up tokens, which are never remembered.',
  },
  account_authz_key_set_age_seconds: {
    query: 'max by (issuer) (account_authz_key_set_age_seconds)',
    meaning:
      'A saw-tooth between 0 and `keys.refreshSeconds`. Above twice that: the issuer has been out of reach for a while. At `keys.maxAgeSeconds` the keys are no longer used and requests are answered 503. Absent: there has been no set yet.',
  },
  account_authz_key_set_keys: {
    query: 'min by (issuer) (account_authz_key_set_keys)',
    meaning: 'Keys that can be used now. 0: none yet, or all too old; every token of this issuer is answered 503.',
  },
  account_authz_token_cache_entries: {
    query: 'max(account_authz_token_cache_entries)',
    meaning: 'Grows to the number of tokens in use. At `cache.maxTokens` the least recently used make room.',
  },
  account_authz_config_reloads_total: {
    query: 'sum by (result) (increase(account_authz_config_reloads_total[1h]))',
    meaning:
      '`failure`: a changed configuration was refused and the old one is in force; the next start with that file would fail.',
  },
  account_authz_config_last_reload_timestamp_seconds: {
    query: 'time() - max(account_authz_config_last_reload_timestamp_seconds)',
    meaning: 'Which configuration is in force: instances with different times have read different files.',
  },
  account_authz_revocation_entries: {
    query: 'max by (instance) (account_authz_revocation_entries)',
    meaning: 'Instances with different numbers have read different lists. 0: an empty list, or none is configured.',
  },
  account_authz_revocation_reloads_total: {
    query: 'sum by (result) (increase(account_authz_revocation_reloads_total[1h]))',
    meaning:
      '`failure`: a changed list was refused and the old one is in force, so new entries have no effect: [AccountAuthzRevocationListRefused](runbooks.md#accountauthzrevocationlistrefused).',
  },
  account_authz_revocation_last_reload_timestamp_seconds: {
    query: 'time() - max by (instance) (account_authz_revocation_last_reload_timestamp_seconds > 0)',
    meaning: 'Which list is in force: after a change, the time since it took effect, on every instance.',
  },
  account_authz_build_info: {
    query: 'count by (version, node) (account_authz_build_info)',
    meaning: 'More than one row: a rollout is under way, or stuck. Its absence is the absence of the service.',
  },
};

/** Labels with values that are not in the code. */
const openLabels: Readonly<Record<string, string>> = {
  issuer: 'each configured issuer',
  version: 'of account-authz',
  node: 'of Node.js',
};

const issuer = 'https://auth.example.com';

/** The product's metrics page before its first check. */
export async function productFamilies(): Promise<readonly MetricFamily[]> {
  const metrics = createMetrics('0', {
    keySets: () => [{ issuer, keys: 1, ageSeconds: 1 }],
    cachedTokens: () => 0,
    revocations: () => undefined,
  });
  return parseExposition((await metrics.page()).text);
}

export async function makeMetricsPage(): Promise<string> {
  const families = await productFamilies();
  const ours = families.filter(({ name }) => name.startsWith('account_authz_'));
  const names = new Set(ours.map(({ name }) => name));
  const unread = Object.keys(readings).filter(name => !names.has(name));
  if (unread.length > 0) throw new Error(`no such metric: ${unread.join(', ')}`);
  const others = families.filter(({ name }) => !names.has(name)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return `${[
    '# Metrics',
    '',
    '<!-- npm run derive writes this page from the code. -->',
    '',
    '`GET /metrics` on `admin`, in the text format of Prometheus. Every series below is there from the start, at 0. Labels are from closed sets:',
    'nothing that a caller sends becomes one. [Alerts](runbooks.md) and a [dashboard](operations.md#dashboard) are made of them.',
    '',
    ...ours.flatMap(section),
    '## Process and event loop',
    '',
    'Those of the client library for Node.js.',
    '',
    '| name | type | unit | what |',
    '|---|---|---|---|',
    ...others.map(family => `| \`${family.name}\` | ${family.type} | ${unitOf(family)} | ${family.help} |`),
    '',
    'The event loop is timed by a timer of 10 ms, which is part of what `nodejs_eventloop_lag_*_seconds` say, except of the first: 0.01 is none.',
    '',
    '## Envoy',
    '',
    '`GET /stats/prometheus` on the admin interface of Envoy. What the other side of the check counts, and alerts and dashboard use; seen with the',
    'shipped `envoy.yaml` on Envoy 1.40.0. The labels are `envoy_http_conn_manager_prefix="public"` and `envoy_ext_authz_prefix="account"`, or',
    '`envoy_cluster_name="account-authz"`.',
    '',
    '| name | what |',
    '|---|---|',
    ...Object.entries(envoyMetrics).map(([name, what]) => `| \`${name}\` | ${what} |`),
  ].join('\n')}\n`;
}

function section(family: MetricFamily): string[] {
  const reading = readings[family.name];
  if (reading === undefined) throw new Error(`no reading of ${family.name}`);
  return [
    `## \`${family.name}\``,
    '',
    family.help,
    '',
    `- type: ${family.type}`,
    `- unit: ${unitOf(family)}`,
    ...labelLines(family),
    `- reading: ${reading.meaning}`,
    '',
    '```promql',
    reading.query,
    '```',
    '',
  ];
}

function labelLines({ name, series }: MetricFamily): string[] {
  if (name === 'account_authz_checks_total') {
    const decisions = new Set(series.map(labels => labels.get('decision')));
    const sets = Array.from(decisions, decision => {
      const reasons = series.filter(labels => labels.get('decision') === decision).map(labels => labels.get('reason'));
      return `  - \`${decision}\`: ${reasons.map(reason => `\`${reason}\``).join(', ')}`;
    });
    return ['- labels: `decision`, `reason`', ...sets];
  }
  const labels = [...new Set(series.flatMap(each => [...each.keys()]))];
  return labels.map(label => {
    const values = [...new Set(series.flatMap(each => each.get(label) ?? []))];
    const listed = values.map(value => `\`${value}\``).join(', ');
    return `- ${label === 'le' ? 'buckets' : `label \`${label}\``}: ${openLabels[label] ?? listed}`;
  });
}

function unitOf({ name }: MetricFamily): string {
  if (name.endsWith('_timestamp_seconds') || name === 'process_start_time_seconds') return 'seconds since 1970';
  if (name.endsWith('_ratio')) return '0 to 1';
  if (name.endsWith('_info')) return 'always 1';
  const unit = /_(seconds|bytes)(?:_total)?$/.exec(name)?.[1];
  return unit ?? 'a number';
}
