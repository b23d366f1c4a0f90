// The metrics that the admin page shows, read from the registry as a scrape reads them, so that both agree.
import type { MetricValueWithName, Registry } from '@prometheus-io/client';

export interface MetricsSummary {
  readonly checks: readonly { readonly decision: string; readonly reason: string; readonly count: number }[];
  readonly latency: LatencySummary;
  /** By issuer; an issuer that was never asked is absent. */
  readonly refreshes: ReadonlyMap<string, { readonly success: number; readonly failure: number }>;
  readonly tokenCache: { readonly entries: number; readonly hits: number; readonly misses: number };
}

export interface LatencySummary {
  readonly count: number;
  readonly sumSeconds: number;
  /** Ascending, not cumulative. The bound of the last one is Infinity. */
  readonly buckets: readonly { readonly upToSeconds: number; readonly count: number }[];
}

export async function readMetricsSummary(registry: Registry): Promise<MetricsSummary> {
  const read = async (name: string): Promise<readonly MetricValueWithName<string>[]> =>
    (await registry.getSingleMetric<string>(`account_authz_${name}`)?.get())?.values ?? [];
  const [checks, durations, refreshes, lookups, entries] = await Promise.all([
    read('checks_total'),
    read('check_duration_seconds'),
    read('key_refreshes_total'),
    read('token_cache_total'),
    read('token_cache_entries'),
  ]);
  return {
    checks: checks.map(({ labels, value }) => ({
      decision: String(labels.decision),
      reason: String(labels.reason),
      count: value,
    })),
    latency: toLatency(durations),
    refreshes: byIssuer(refreshes),
    tokenCache: {
      entries: sumWhere(entries, {}),
      hits: sumWhere(lookups, { result: 'hit' }),
      misses: sumWhere(lookups, { result: 'miss' }),
    },
  };
}

// In one pass: there may be a thousand issuers.
function byIssuer(values: readonly MetricValueWithName<string>[]): MetricsSummary['refreshes'] {
  const counts = new Map<string, { success: number; failure: number }>();
  for (const { labels, value } of values) {
    const issuer = String(labels.issuer);
    const count = counts.get(issuer) ?? { success: 0, failure: 0 };
    counts.set(issuer, count);
    if (labels.result === 'success' || labels.result === 'failure') count[labels.result] += value;
  }
  return counts;
}

function sumWhere(
  values: readonly MetricValueWithName<string>[],
  wanted: Readonly<Record<string, string | number>>,
): number {
  return values
    .filter(({ labels }) => Object.entries(wanted).every(([name, value]) => labels[name] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

// The buckets of a Prometheus histogram are cumulative.
function toLatency(values: readonly MetricValueWithName<string>[]): LatencySummary {
  const of = (part: string) => values.filter(({ metricName = '' }) => metricName.endsWith(part));
  const cumulative = of('_bucket')
    .map(({ labels, value }) => ({ upToSeconds: toBound(labels.le), count: value }))
    .sort((a, b) => a.upToSeconds - b.upToSeconds);
  return {
    count: sumWhere(of('_count'), {}),
    sumSeconds: sumWhere(of('_sum'), {}),
    buckets: cumulative.map(({ upToSeconds, count }, index) => ({
      upToSeconds,
      count: count - (cumulative[index - 1]?.count ?? 0),
    })),
  };
}

function toBound(le: string | number | undefined): number {
  return le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le);
}
