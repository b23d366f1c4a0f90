// Envoy's metrics in alerts, dashboard and documents. A test compares them with the metrics page of a live Envoy.

export const envoyMetrics = {
  envoy_http_ext_authz_ok: 'Checks that account-authz allowed.',
  envoy_http_ext_authz_denied: 'Checks that it refused, its own 503 among them.',
  envoy_http_ext_authz_error: 'Checks without a usable answer: none in time, no connection. Answered 503 by Envoy.',
  envoy_http_ext_authz_failure_mode_allowed:
    'Requests that passed unchecked. Always 0 with `failure_mode_allow: false`.',
  envoy_http_ext_authz_invalid: 'Answers with header changes that Envoy does not accept.',
  envoy_http_rbac_denied:
    'With `envoy_rbac_http_prefix="only_allowed"`: allows that are not from account-authz. Refused (403).',
  envoy_cluster_upstream_rq_total: 'With `envoy_cluster_name="account-authz"`: attempts, retries included.',
  envoy_cluster_upstream_rq_timeout: 'Checks that took longer than the timeout of the check.',
  envoy_cluster_upstream_rq_per_try_timeout: 'Attempts that were given up for another.',
  envoy_cluster_upstream_rq_retry: 'Attempts after the first one.',
  envoy_cluster_upstream_rq_pending_overflow: 'Checks that a circuit breaker of Envoy turned away.',
  envoy_cluster_upstream_cx_connect_fail: 'Connections to account-authz that could not be made.',
  envoy_cluster_upstream_rq_time_bucket: 'Time of a check as Envoy sees it, in milliseconds.',
} as const;
