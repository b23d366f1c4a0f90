// k8s/monitoring/dashboard.json for Grafana: rows of panels, each with a few PromQL expressions, in the order of an investigation.

interface Query {
  /** PromQL; `%` stands for the selectors of the variables, in braces or within them. */
  readonly expr: string;
  readonly legend: string;
}

interface Panel {
  readonly kind: 'timeseries' | 'stat' | 'heatmap';
  readonly title: string;
  readonly about: string;
  readonly unit: 'short' | 'reqps' | 'percentunit' | 's' | 'ms' | 'bytes' | 'cores';
  readonly queries: readonly Query[];
  readonly stacked?: boolean;
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const one = (expr: string, legend = ''): readonly Query[] => [{ expr, legend }];
const quantile = (share: number): Query => ({
  expr: `histogram_quantile(${share}, sum by (le) (rate(account_authz_check_duration_seconds_bucket{%}[$__rate_interval])))`,
  legend: `p${share * 100}`,
});
// Every Node.js program exposes the same metrics: select only instances of account-authz.
const ofOurs = (expr: string): string => `${expr} and on (job, instance) account_authz_build_info{%}`;
const envoyRate = (name: string): Query => ({
  expr: `sum(rate(envoy_http_ext_authz_${name}{%}[$__rate_interval]))`,
  legend: name,
});
const envoyCluster = (name: string): Query => ({
  expr: `sum(rate(envoy_cluster_${name}{%, envoy_cluster_name="account-authz"}[$__rate_interval]))`,
  legend: name,
});

const rows: readonly Row[] = [
  {
    title: 'At a glance',
    panels: [
      {
        kind: 'stat',
        title: 'Checks',
        about: 'Answered in a second, by all instances.',
        unit: 'reqps',
        queries: one('sum(rate(account_authz_checks_total{%}[$__rate_interval]))'),
      },
      {
        kind: 'stat',
        title: 'Cannot decide',
        about: 'Share of the checks that ended in 503: signing keys are unavailable, or an internal error.',
        unit: 'percentunit',
        queries: one(
          'sum(rate(account_authz_checks_total{%, decision="unavailable"}[$__rate_interval])) / sum(rate(account_authz_checks_total{%}[$__rate_interval]))',
        ),
      },
      {
        kind: 'stat',
        title: 'Refused',
        about: 'Share of the checks that were denied.',
        unit: 'percentunit',
        queries: one(
          'sum(rate(account_authz_checks_total{%, decision="deny"}[$__rate_interval])) / sum(rate(account_authz_checks_total{%}[$__rate_interval]))',
        ),
      },
      { kind: 'stat', title: 'p99', about: 'Of the time of a check.', unit: 's', queries: [quantile(0.99)] },
      {
        kind: 'stat',
        title: 'Oldest keys',
        about: 'Past keys.maxAgeSeconds (3600 by default) they are not used.',
        unit: 's',
        queries: one('max(account_authz_key_set_age_seconds{%})'),
      },
      {
        kind: 'stat',
        title: 'Instances',
        about: 'That are scraped.',
        unit: 'short',
        queries: one('count(account_authz_build_info{%})'),
      },
    ],
  },
  {
    title: 'Decisions',
    panels: [
      {
        kind: 'timeseries',
        title: 'Checks by decision and reason',
        about: 'docs/runbooks/AccountAuthzRefusalsJump.md explains each reason.',
        unit: 'reqps',
        stacked: true,
        queries: one(
          'sum by (decision, reason) (rate(account_authz_checks_total{%}[$__rate_interval]))',
          '{{decision}}: {{reason}}',
        ),
      },
      {
        kind: 'timeseries',
        title: 'Refused, by reason',
        about: 'Share of all checks.',
        unit: 'percentunit',
        queries: one(
          'sum by (reason) (rate(account_authz_checks_total{%, decision!="allow"}[$__rate_interval])) / scalar(sum(rate(account_authz_checks_total{%}[$__rate_interval])))',
          '{{reason}}',
        ),
      },
    ],
  },
  {
    title: 'Latency',
    panels: [
      {
        kind: 'timeseries',
        title: 'Time of a check here',
        about: 'From the decoded request to the response.',
        unit: 's',
        queries: [quantile(0.5), quantile(0.9), quantile(0.99)],
      },
      {
        kind: 'heatmap',
        title: 'Time of a check here, all of them',
        about: 'A hill at 0.15 s: requests that wait for an early refresh of keys.',
        unit: 's',
        queries: one(
          'sum by (le) (increase(account_authz_check_duration_seconds_bucket{%}[$__rate_interval]))',
          '{{le}}',
        ),
      },
      {
        kind: 'timeseries',
        title: 'Time of a check as Envoy sees it',
        about: 'Network and queues included. Slow here and not there: between the two, or the event loop.',
        unit: 'ms',
        queries: [0.5, 0.99].map(share => ({
          expr: `histogram_quantile(${share}, sum by (le) (rate(envoy_cluster_upstream_rq_time_bucket{%, envoy_cluster_name="account-authz"}[$__rate_interval])))`,
          legend: `p${share * 100}`,
        })),
      },
    ],
  },
  {
    title: 'Keys',
    panels: [
      {
        kind: 'timeseries',
        title: 'Age of the keys',
        about: 'A saw-tooth up to keys.refreshSeconds. A straight line: the issuer is out of reach.',
        unit: 's',
        queries: one('max by (issuer) (account_authz_key_set_age_seconds{%})', '{{issuer}}'),
      },
      {
        kind: 'timeseries',
        title: 'Usable keys',
        about: 'The fewest of any instance. 0: every token of the issuer is answered 503.',
        unit: 'short',
        queries: one('min by (issuer) (account_authz_key_set_keys{%})', '{{issuer}}'),
      },
      {
        kind: 'timeseries',
        title: 'Refreshes',
        about: 'In a second.',
        unit: 'reqps',
        queries: one(
          'sum by (issuer, result) (rate(account_authz_key_refreshes_total{%}[$__rate_interval]))',
          '{{issuer}} {{result}}',
        ),
      },
    ],
  },
  {
    title: 'Cache and configuration',
    panels: [
      {
        kind: 'timeseries',
        title: 'Known tokens',
        about: 'Share of the look-ups that needed no signature check.',
        unit: 'percentunit',
        queries: one(
          'sum(rate(account_authz_token_cache_total{%, result="hit"}[$__rate_interval])) / sum(rate(account_authz_token_cache_total{%}[$__rate_interval]))',
          'hit ratio',
        ),
      },
      {
        kind: 'timeseries',
        title: 'Tokens in the cache',
        about: 'Up to cache.maxTokens.',
        unit: 'short',
        queries: one('account_authz_token_cache_entries{%}', '{{instance}}'),
      },
      {
        kind: 'timeseries',
        title: 'Reloads',
        about: 'A failure: the file was refused, the old configuration is in force.',
        unit: 'short',
        queries: one(
          'sum by (result) (increase(account_authz_config_reloads_total{%}[$__rate_interval]))',
          '{{result}}',
        ),
      },
      {
        kind: 'timeseries',
        title: 'Age of the configuration',
        about: 'Instances that differ have read different files.',
        unit: 's',
        queries: one('time() - account_authz_config_last_reload_timestamp_seconds{%}', '{{instance}}'),
      },
    ],
  },
  {
    title: 'Revocation list',
    panels: [
      {
        kind: 'timeseries',
        title: 'Entries',
        about: 'Instances that differ have read different lists.',
        unit: 'short',
        queries: one('account_authz_revocation_entries{%}', '{{instance}}'),
      },
      {
        kind: 'timeseries',
        title: 'Revocation list reloads',
        about: 'A failure: the file was refused, the old list is in force.',
        unit: 'short',
        queries: one(
          'sum by (result) (increase(account_authz_revocation_reloads_total{%}[$__rate_interval]))',
          '{{result}}',
        ),
      },
      {
        kind: 'timeseries',
        title: 'Age of the revocation list',
        about: 'Since it was loaded.',
        unit: 's',
        queries: one('time() - (account_authz_revocation_last_reload_timestamp_seconds{%} > 0)', '{{instance}}'),
      },
    ],
  },
  {
    title: 'Process',
    panels: [
      {
        kind: 'timeseries',
        title: 'Delay of the event loop, p99',
        about: 'The timer of 10 ms included: 0.01 is none.',
        unit: 's',
        queries: one(ofOurs('nodejs_eventloop_lag_p99_seconds{%}'), '{{instance}}'),
      },
      {
        kind: 'timeseries',
        title: 'Event loop busy',
        about: 'Towards 1 the instance is full: add another.',
        unit: 'percentunit',
        queries: one(ofOurs('nodejs_eventloop_utilization_ratio{%}'), '{{instance}}'),
      },
      {
        kind: 'timeseries',
        title: 'Memory',
        about: 'Resident, and the heap in use.',
        unit: 'bytes',
        queries: [
          { expr: ofOurs('process_resident_memory_bytes{%}'), legend: '{{instance}} resident' },
          { expr: ofOurs('nodejs_heap_size_used_bytes{%}'), legend: '{{instance}} heap' },
        ],
      },
      {
        kind: 'timeseries',
        title: 'CPU',
        about: 'Cores. One is all that the event loop can use.',
        unit: 'cores',
        queries: one(ofOurs('rate(process_cpu_seconds_total{%}[$__rate_interval])'), '{{instance}}'),
      },
    ],
  },
  {
    title: 'Envoy',
    panels: [
      {
        kind: 'timeseries',
        title: 'What Envoy made of its checks',
        about: 'error: no usable answer, 503. failure_mode_allowed: passed unchecked, must be 0.',
        unit: 'reqps',
        queries: ['ok', 'denied', 'error', 'failure_mode_allowed', 'invalid'].map(envoyRate),
      },
      {
        kind: 'timeseries',
        title: 'Checks, from both sides',
        about: 'Envoy gets no answer from account-authz: socket, network, timeout, or the process.',
        unit: 'reqps',
        queries: [
          {
            expr: 'sum(rate(envoy_cluster_upstream_rq_total{%, envoy_cluster_name="account-authz"}[$__rate_interval]))',
            legend: 'asked by Envoy',
          },
          { expr: 'sum(rate(account_authz_checks_total{%}[$__rate_interval]))', legend: 'answered' },
        ],
      },
      {
        kind: 'timeseries',
        title: 'Trouble on the way',
        about: 'Between Envoy and account-authz.',
        unit: 'reqps',
        queries: [
          'upstream_rq_timeout',
          'upstream_rq_per_try_timeout',
          'upstream_rq_retry',
          'upstream_rq_pending_overflow',
          'upstream_cx_connect_fail',
        ].map(envoyCluster),
      },
      {
        kind: 'timeseries',
        title: 'Answers that are not from account-authz',
        about: 'Allows without the metadata of account-authz: another server answers at its address. Must be 0.',
        unit: 'reqps',
        queries: one(
          'sum(rate(envoy_http_rbac_denied{%, envoy_rbac_http_prefix="only_allowed"}[$__rate_interval]))',
          'refused by Envoy',
        ),
      },
    ],
  },
];

const selectors = 'namespace=~"$namespace", instance=~"$instance"';
const envoySelectors = 'namespace=~"$namespace"';

/** Envoy is another scrape target, so its instance label does not match that of account-authz. */
function complete({ expr }: Query): string {
  return expr.replaceAll(
    /(\w+)\{%/g,
    (_, name: string) => `${name}{${name.startsWith('envoy_') ? envoySelectors : selectors}`,
  );
}

/** Every expression of the dashboard, as Grafana receives it. */
export function dashboardExpressions(): readonly string[] {
  return rows.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(complete)));
}

const columns = 24;
const heights = { stat: 4, timeseries: 8, heatmap: 8 } as const;
const datasource = { type: 'prometheus', uid: '$datasource' };

export function makeDashboard(): string {
  const panels: unknown[] = [];
  let y = 0;
  for (const { title, panels: inRow } of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: columns, h: 1 },
      panels: [],
    });
    y += 1;
    const w = columns / inRow.length;
    const h = Math.max(...inRow.map(({ kind }) => heights[kind]));
    for (const [i, panel] of inRow.entries()) panels.push(toGrafana(panel, panels.length + 1, { x: i * w, y, w, h }));
    y += h;
  }
  const dashboard = {
    uid: 'account-authz',
    title: 'account-authz',
    description: 'Decisions, keys, latency and process of account-authz, and the same checks as Envoy counts them.',
    tags: ['account-authz', 'envoy'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    timezone: '',
    annotations: { list: [] },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', refresh: 1 },
        variable('namespace', 'label_values(account_authz_build_info, namespace)'),
        variable('instance', 'label_values(account_authz_build_info{namespace=~"$namespace"}, instance)'),
      ],
    },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

// `.*` also matches an absent label: outside Kubernetes there is no namespace.
function variable(name: string, query: string): unknown {
  return {
    name,
    label: name,
    type: 'query',
    datasource,
    query: { query, refId: name },
    refresh: 2,
    includeAll: true,
    multi: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
    sort: 1,
  };
}

function toGrafana(panel: Panel, id: number, gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>): unknown {
  const { kind, title, about, unit, stacked = false, queries } = panel;
  const targets = queries.map((query, i) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + i),
    datasource,
    expr: complete(query),
    legendFormat: query.legend === '' ? '__auto' : query.legend,
    ...(kind === 'heatmap' ? { format: 'heatmap' } : {}),
    ...(kind === 'stat' ? { instant: false } : {}),
  }));
  const common = { id, type: kind, title, description: about, datasource, gridPos, targets };
  const defaults = { unit: unit === 'cores' ? 'short' : unit, min: 0 };
  switch (kind) {
    case 'stat':
      return {
        ...common,
        fieldConfig: { defaults, overrides: [] },
        options: { reduceOptions: { calcs: ['lastNotNull'] }, graphMode: 'area', colorMode: 'none' },
      };
    case 'timeseries': {
      const custom = {
        fillOpacity: stacked ? 60 : 5,
        showPoints: 'never',
        stacking: { mode: stacked ? 'normal' : 'none' },
      };
      return {
        ...common,
        fieldConfig: { defaults: { ...defaults, custom }, overrides: [] },
        options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
      };
    }
    case 'heatmap':
      return {
        ...common,
        options: { calculate: false, yAxis: { unit }, color: { scheme: 'Blues', mode: 'scheme' }, cellGap: 1 },
      };
  }
}
