// The Prometheus metrics of the product. Labels come from closed sets: no caller can create one.
import { performance } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { type Reason, refusalAnswers } from '../authz/refusal.ts';
import type { CheckRecord } from '../check/check.ts';

interface MetricsSources {
  /** The key set of each configured issuer; `ageSeconds` is undefined before the first one. */
  keySets(): readonly { readonly issuer: string; readonly keys: number; readonly ageSeconds: number | undefined }[];
  cachedTokens(): number;
  /** The revocation list in force; undefined without one. */
  revocations():
    | {
        readonly entries: number;
        readonly loadedAtSeconds: number | undefined;
        readonly source?: { readonly ageSeconds: number | undefined };
      }
    | undefined;
}

export interface Metrics {
  countCheck(record: CheckRecord): void;
  countKeyRefresh(issuer: string, result: 'success' | 'failure'): void;
  /** Ends the series of an issuer that is no longer configured. */
  forgetIssuer(issuer: string): void;
  countReload(result: 'success' | 'failure'): void;
  countRevocationReload(result: 'success' | 'failure'): void;
  /** A configuration has taken effect: at the start, or by a reload. */
  markLoaded(atSeconds: number): void;
  page(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** The number of checks by reason. */
  decisions(): Promise<ReadonlyMap<string, number>>;
}

const results = ['success', 'failure'] as const;
const reasons = Object.keys(refusalAnswers) as Reason[];
const decisionBuckets = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5];

export function createMetrics(version: string, sources: MetricsSources): Metrics {
  const registry = new Registry();
  registerProcessMetrics(registry);
  const { countCheck } = checkMetrics(registry);
  const refreshes = keyMetrics(registry, sources);
  const countReload = reloadCounter(registry, 'config_reloads_total', 'Changed configurations');
  const loadedAt = new Gauge({
    ...named('config_last_reload_timestamp_seconds', registry),
    help: 'When the configuration in effect was loaded: at the start or by the last successful reload.',
  });
  for (const [name, help, read] of gaugesOf(sources)) {
    new Gauge({
      ...named(name, registry),
      help,
      collect() {
        const value = read();
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
  }
  const countRevocationReload = reloadCounter(registry, 'revocation_reloads_total', 'Changed revocation lists');
  new Gauge({
    ...named('build_info', registry),
    help: 'Always 1. The labels are the version and the runtime.',
    labelNames: ['version', 'node'],
  }).set({ version, node: process.version }, 1);
  return {
    countCheck,
    countKeyRefresh: (issuer, result) => refreshes.inc({ issuer, result }),
    forgetIssuer(issuer) {
      for (const result of results) refreshes.remove({ issuer, result });
    },
    countReload,
    countRevocationReload,
    markLoaded: atSeconds => loadedAt.set(atSeconds),
    page: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
    async decisions() {
      const counted = await registry.getSingleMetric<string>('account_authz_checks_total')?.get();
      return new Map((counted?.values ?? []).map(({ labels, value }) => [String(labels.reason), value]));
    },
  };
}

function named(name: string, registry: Registry) {
  return { name: `account_authz_${name}`, registers: [registry] };
}

// Every series exists from the start: Prometheus sees no increase if a series appears with 1. Checks are counted in tallies and handed over
// at a scrape, because the library builds a key of the labels at each increment.
function checkMetrics(registry: Registry): Pick<Metrics, 'countCheck'> {
  const checks = createTallies(['allowed', ...reasons]);
  new Counter({
    ...named('checks_total', registry),
    help: 'Checks answered, by decision and reason.',
    labelNames: ['decision', 'reason'],
    collect() {
      for (const [reason, count] of checks.take())
        this.inc({ decision: reason === 'allowed' ? 'allow' : refusalAnswers[reason].decision, reason }, count);
    },
  });
  const duration = new Histogram({
    ...named('check_duration_seconds', registry),
    help: 'Time from the decoded request of a check to its response.',
    buckets: decisionBuckets,
  });
  const cacheLookups = createTallies(['hit', 'miss']);
  new Counter({
    ...named('token_cache_total', registry),
    help: 'Look-ups in the cache of verified tokens, by result.',
    labelNames: ['result'],
    collect() {
      for (const [result, count] of cacheLookups.take()) this.inc({ result }, count);
    },
  });
  return {
    countCheck({ reason, cache, durationMs }) {
      checks.add(reason);
      duration.observe(durationMs / 1000);
      if (cache !== undefined) cacheLookups.add(cache);
    },
  };
}

/** Returns the counter of fetches; the rest is read at each scrape. */
function keyMetrics(registry: Registry, { keySets }: MetricsSources): Counter<'issuer' | 'result'> {
  new Gauge({
    ...named('key_set_age_seconds', registry),
    help: 'Time since the key set of an issuer was last confirmed.',
    labelNames: ['issuer'],
    collect() {
      this.reset();
      for (const { issuer, ageSeconds } of keySets()) if (ageSeconds !== undefined) this.set({ issuer }, ageSeconds);
    },
  });
  new Gauge({
    ...named('key_set_keys', registry),
    help: 'Usable keys in the key set of an issuer.',
    labelNames: ['issuer'],
    collect() {
      this.reset();
      for (const { issuer, keys } of keySets()) this.set({ issuer }, keys);
    },
  });
  return new Counter({
    ...named('key_refreshes_total', registry),
    help: 'Fetches of the key set of an issuer, by result.',
    labelNames: ['issuer', 'result'],
    collect() {
      for (const { issuer } of keySets()) for (const result of results) this.inc({ issuer, result }, 0);
    },
  });
}

function reloadCounter(registry: Registry, name: string, what: string): (result: 'success' | 'failure') => void {
  const reloads = new Counter({
    ...named(name, registry),
    help: `${what} that took effect (success) or were refused (failure). The start is not counted.`,
    labelNames: ['result'],
  });
  for (const result of results) reloads.inc({ result }, 0);
  return result => reloads.inc({ result });
}

type GaugeRow = readonly [name: string, help: string, read: () => number | undefined];

function gaugesOf({ cachedTokens, revocations }: MetricsSources): readonly GaugeRow[] {
  return [
    ['token_cache_entries', 'Tokens in the cache of verified tokens.', cachedTokens],
    [
      'revocation_entries',
      'Entries of the revocation list in force, including expired ones.',
      () => revocations()?.entries ?? 0,
    ],
    [
      'revocation_last_reload_timestamp_seconds',
      'When the revocation list in force was loaded, or last confirmed where it comes by URL. 0 without a list.',
      () => revocations()?.loadedAtSeconds ?? 0,
    ],
    [
      'revocation_age_seconds',
      'Time since the revocation list by URL was last confirmed. Absent without one.',
      () => revocations()?.source?.ageSeconds,
    ],
  ];
}

interface Tallies<Name> {
  add(name: Name): void;
  /** The counts since the last call. */
  take(): Map<Name, number>;
}

function createTallies<Name extends string>(names: readonly Name[]): Tallies<Name> {
  const none = (): Map<Name, number> => new Map(names.map(name => [name, 0]));
  let counts = none();
  return {
    add(name) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    },
    take() {
      const taken = counts;
      counts = none();
      return taken;
    },
  };
}

// Gauges must not end in _total, and a name must not repeat its type. The first three are the sums of the gauges beside them.
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
];

// The timer never fires: the metrics that it feeds are removed below.
const neverMs = 2 ** 31 - 1;

/** The default process metrics of the client library, without the names that promtool's lint rejects. */
function registerProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: neverMs });
  for (const name of misnamed) registry.removeSingleMetric(name);
  let before = performance.eventLoopUtilization();
  new Gauge({
    name: 'nodejs_eventloop_utilization_ratio',
    help: 'Share of the time since the last scrape in which the event loop was busy.',
    registers: [registry],
    collect() {
      const now = performance.eventLoopUtilization();
      this.set(performance.eventLoopUtilization(now, before).utilization);
      before = now;
    },
  });
}
