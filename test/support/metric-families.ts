// The metrics of the product and those of Envoy that alerts, dashboard and documents use. A test compares the latter with a live Envoy.
import { createMetrics } from '../../src/service/metrics.ts';

const issuer = 'https://auth.example.com';

const ofHttp =
  'ext_authz_ok ext_authz_denied ext_authz_error ext_authz_failure_mode_allowed ext_authz_invalid rbac_denied';
const ofCluster = 'rq_total rq_timeout rq_per_try_timeout rq_retry rq_pending_overflow cx_connect_fail rq_time_bucket';
export const envoyMetrics: readonly string[] = [
  ...ofHttp.split(' ').map(name => `envoy_http_${name}`),
  ...ofCluster.split(' ').map(name => `envoy_cluster_upstream_${name}`),
];

/** The product's metrics page before its first check. */
export async function productFamilies(): Promise<readonly MetricFamily[]> {
  const metrics = createMetrics('0', {
    keySets: () => [{ issuer, keys: 1, ageSeconds: 1 }],
    cachedTokens: () => 0,
    revocations: () => undefined,
  });
  return parseExposition((await metrics.page()).text);
}

export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** The labels of each series, in the order of the page. */
  readonly series: readonly ReadonlyMap<string, string>[];
}

export function parseExposition(text: string): readonly MetricFamily[] {
  const helps = new Map<string, string>();
  const families: { name: string; type: string; help: string; series: ReadonlyMap<string, string>[] }[] = [];
  for (const line of text.split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') helps.set(name, rest);
    else if (keyword === 'TYPE') families.push({ name, type: rest, help: helps.get(name) ?? '', series: [] });
    else if (line !== '' && !line.startsWith('#')) families.at(-1)?.series.push(labelsOf(line));
  }
  return families;
}

/** Every queryable name of these metrics: a histogram has three. */
export function seriesNames(families: readonly MetricFamily[]): ReadonlySet<string> {
  return new Set(
    families.flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

function labelsOf(line: string): ReadonlyMap<string, string> {
  return new Map(
    Array.from(line.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g), ([, name = '', value = '']) => [name, value]),
  );
}
