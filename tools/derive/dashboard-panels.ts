// The panels of the dashboard: rows in the order of an investigation, each panel with a few PromQL expressions.

/** `%` in the PromQL stands for the selectors of the variables. Without a legend, Grafana chooses it. */
export type Query = readonly [promql: string, legend?: string];

export interface Panel {
  readonly kind: 'timeseries' | 'stat' | 'heatmap';
  readonly title: string;
  readonly unit: 'short' | 'reqps' | 'percentunit' | 's' | 'ms' | 'bytes' | 'cores';
  readonly about: string;
  readonly queries: readonly Query[];
  readonly stacked?: boolean;
}

const panelOf =
  (kind: Panel['kind']) =>
  (title: string, unit: Panel['unit'], about: string, ...queries: readonly Query[]): Panel => ({
    kind,
    title,
    unit,
    about,
    queries,
  });
const graph = panelOf('timeseries');
const stat = panelOf('stat');
const heatmap = panelOf('heatmap');

const over = (metric: string, labels = ''): string => `(${metric}{%${labels}}[$__rate_interval])`;
const rate = (metric: string, labels = ''): string => `rate${over(metric, labels)}`;
const checks = (labels = ''): string => `sum(${rate('account_authz_checks_total', labels)})`;
const quantile =
  (bucket: string, labels = '') =>
  (share: number): Query => [`histogram_quantile(${share}, sum by (le) (${rate(bucket, labels)}))`, `p${share * 100}`];
const duration = quantile('account_authz_check_duration_seconds_bucket');
// Every Node.js program exposes the same metrics: select only instances of account-authz.
const ofOurs = (promql: string): string => `${promql} and on (job, instance) account_authz_build_info{%}`;
const ourCluster = ', envoy_cluster_name="account-authz"';

export const rows: Readonly<Record<string, readonly Panel[]>> = {
  'At a glance': [
    stat('Checks', 'reqps', 'Answered in a second, by all instances.', [checks()]),
    stat(
      'Cannot decide',
      'percentunit',
      'Share of the checks that ended in 503: signing keys are unavailable, or an internal error.',
      [`${checks(', decision="unavailable"')} / ${checks()}`],
    ),
    stat('Refused', 'percentunit', 'Share of the checks that were denied.', [
      `${checks(', decision="deny"')} / ${checks()}`,
    ]),
    stat('p99', 's', 'Of the time of a check.', duration(0.99)),
    stat('Oldest keys', 's', 'Past keys.maxAgeSeconds (3600 by default) they are not used.', [
      'max(account_authz_key_set_age_seconds{%})',
    ]),
    stat('Instances', 'short', 'That are scraped.', ['count(account_authz_build_info{%})']),
  ],
  Decisions: [
    {
      ...graph(
        'Checks by decision and reason',
        'reqps',
        'docs/runbooks.md#accountauthzrefusalsjump explains each reason.',
        [`sum by (decision, reason) (${rate('account_authz_checks_total')})`, '{{decision}}: {{reason}}'],
      ),
      stacked: true,
    },
    graph('Refused, by reason', 'percentunit', 'Share of all checks.', [
      `sum by (reason) (${rate('account_authz_checks_total', ', decision!="allow"')}) / scalar(${checks()})`,
      '{{reason}}',
    ]),
  ],
  Latency: [
    graph('Time of a check here', 's', 'From the decoded request to the response.', ...[0.5, 0.9, 0.99].map(duration)),
    heatmap(
      'Time of a check here, all of them',
      's',
      'A hill at 0.15 s: requests that wait for an early refresh of keys.',
      [`sum by (le) (increase${over('account_authz_check_duration_seconds_bucket')})`, '{{le}}'],
    ),
    graph(
      'Time of a check as Envoy sees it',
      'ms',
      'Network and queues included. Slow here and not there: between the two, or the event loop.',
      ...[0.5, 0.99].map(quantile('envoy_cluster_upstream_rq_time_bucket', ourCluster)),
    ),
  ],
  Keys: [
    graph(
      'Age of the keys',
      's',
      'A saw-tooth up to keys.refreshSeconds. A straight line: the issuer is out of reach.',
      ['max by (issuer) (account_authz_key_set_age_seconds{%})', '{{issuer}}'],
    ),
    graph('Usable keys', 'short', 'The fewest of any instance. 0: every token of the issuer is answered 503.', [
      'min by (issuer) (account_authz_key_set_keys{%})',
      '{{issuer}}',
    ]),
    graph('Refreshes', 'reqps', 'In a second.', [
      `sum by (issuer, result) (${rate('account_authz_key_refreshes_total')})`,
      '{{issuer}} {{result}}',
    ]),
  ],
  'Cache and configuration': [
    graph('Known tokens', 'percentunit', 'Share of the look-ups that needed no signature check.', [
      `sum(${rate('account_authz_token_cache_total', ', result="hit"')}) / sum(${rate('account_authz_token_cache_total')})`,
      'hit ratio',
    ]),
    graph('Tokens in the cache', 'short', 'Up to cache.maxTokens.', [
      'account_authz_token_cache_entries{%}',
      '{{instance}}',
    ]),
    graph('Reloads', 'short', 'A failure: the file was refused, the old configuration is in force.', [
      `sum by (result) (increase${over('account_authz_config_reloads_total')})`,
      '{{result}}',
    ]),
    graph('Age of the configuration', 's', 'Instances that differ have read different files.', [
      'time() - account_authz_config_last_reload_timestamp_seconds{%}',
      '{{instance}}',
    ]),
  ],
  'Revocation list': [
    graph('Entries', 'short', 'Instances that differ have read different lists.', [
      'account_authz_revocation_entries{%}',
      '{{instance}}',
    ]),
    graph('Revocation list reloads', 'short', 'A failure: the file was refused, the old list is in force.', [
      `sum by (result) (increase${over('account_authz_revocation_reloads_total')})`,
      '{{result}}',
    ]),
    graph('Age of the revocation list', 's', 'Since it was loaded.', [
      'time() - (account_authz_revocation_last_reload_timestamp_seconds{%} > 0)',
      '{{instance}}',
    ]),
  ],
  Process: [
    graph('Delay of the event loop, p99', 's', 'The timer of 10 ms included: 0.01 is none.', [
      ofOurs('nodejs_eventloop_lag_p99_seconds{%}'),
      '{{instance}}',
    ]),
    graph('Event loop busy', 'percentunit', 'Towards 1 the instance is full: add another.', [
      ofOurs('nodejs_eventloop_utilization_ratio{%}'),
      '{{instance}}',
    ]),
    graph(
      'Memory',
      'bytes',
      'Resident, and the heap in use.',
      [ofOurs('process_resident_memory_bytes{%}'), '{{instance}} resident'],
      [ofOurs('nodejs_heap_size_used_bytes{%}'), '{{instance}} heap'],
    ),
    graph('CPU', 'cores', 'Cores. One is all that the event loop can use.', [
      ofOurs(rate('process_cpu_seconds_total')),
      '{{instance}}',
    ]),
  ],
  Envoy: [
    graph(
      'What Envoy made of its checks',
      'reqps',
      'error: no usable answer, 503. failure_mode_allowed: passed unchecked, must be 0.',
      ...['ok', 'denied', 'error', 'failure_mode_allowed', 'invalid'].map(
        (name): Query => [`sum(${rate(`envoy_http_ext_authz_${name}`)})`, name],
      ),
    ),
    graph(
      'Checks, from both sides',
      'reqps',
      'Envoy gets no answer from account-authz: socket, network, timeout, or the process.',
      [`sum(${rate('envoy_cluster_upstream_rq_total', ourCluster)})`, 'asked by Envoy'],
      [checks(), 'answered'],
    ),
    graph(
      'Trouble on the way',
      'reqps',
      'Between Envoy and account-authz.',
      ...[
        'upstream_rq_timeout',
        'upstream_rq_per_try_timeout',
        'upstream_rq_retry',
        'upstream_rq_pending_overflow',
        'upstream_cx_connect_fail',
      ].map((name): Query => [`sum(${rate(`envoy_cluster_${name}`, ourCluster)})`, name]),
    ),
    graph(
      'Answers that are not from account-authz',
      'reqps',
      'Allows without the metadata of account-authz: another server answers at its address. Must be 0.',
      [`sum(${rate('envoy_http_rbac_denied', ', envoy_rbac_http_prefix="only_allowed"')})`, 'refused by Envoy'],
    ),
  ],
};
