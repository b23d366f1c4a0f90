// The Prometheus metrics of the product. Labels come from closed sets: no caller can create one.
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { type Reason, refusalAnswers } from '../authz/refusal.ts';
import type { CheckRecord } from './check-record.ts';
import { type MetricsSummary, readMetricsSummary } from './metrics-summary.ts';
import { registerProcessMetrics } from './process-metrics.ts';

interface MetricsSources {
  /** The key set of each configured issuer; `ageSeconds` is undefined before the first one. */
  keySets(): readonly { readonly issuer: string; readonly keys: number; readonly ageSeconds: number | undefined }[];
  cachedTokens(): number;
  /** The revocation list in force; undefined without one. */
  revocations(): { readonly entries: number; readonly loadedAtSeconds: number } | undefined;
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
  summary(): Promise<MetricsSummary>;
}

const results = ['success', 'failure'] as const;
const reasons = Object.keys(refusalAnswers) as Reason[];
const decisionBuckets = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5];

export function createMetrics(version: string, sources: MetricsSources): Metrics {
  const registry = new Registry();
  const registers = [registry];
  registerProcessMetrics(registry);

  // Every series exists from the start: Prometheus sees no increase if a series appears with 1. Checks are counted in tallies and handed
  // over at a scrape, because the library builds a key of the labels at each increment.
  const checks = createTallies(['allowed', ...reasons]);
  new Counter({
    name: 'account_authz_checks_total',
    help: 'Checks answered, by decision and reason.',
    labelNames: ['decision', 'reason'],
    registers,
    collect() {
      for (const [reason, count] of checks.take())
        this.inc({ decision: reason === 'allowed' ? 'allow' : refusalAnswers[reason].decision, reason }, count);
    },
  });
  const duration = new Histogram({
    name: 'account_authz_check_duration_seconds',
    help: 'Time from the decoded request of a check to its response.',
    buckets: decisionBuckets,
    registers,
  });
  const refreshes = new Counter({
    name: 'account_authz_key_refreshes_total',
    help: 'Fetches of the key set of an issuer, by result.',
    labelNames: ['issuer', 'result'],
    registers,
    collect() {
      for (const { issuer } of sources.keySets()) for (const result of results) this.inc({ issuer, result }, 0);
    },
  });
  const cacheLookups = createTallies(['hit', 'miss']);
  new Counter({
    name: 'account_authz_token_cache_total',
    help: 'Look-ups in the cache of verified tokens, by result.',
    labelNames: ['result'],
    registers,
    collect() {
      for (const [result, count] of cacheLookups.take()) this.inc({ result }, count);
    },
  });
  const reloads = new Counter({
    name: 'account_authz_config_reloads_total',
    help: 'Changed configurations that took effect (success) or were refused (failure). The start is not counted.',
    labelNames: ['result'],
    registers,
  });
  // From the start, so that Prometheus sees the first increase.
  for (const result of results) reloads.inc({ result }, 0);
  const loadedAt = new Gauge({
    name: 'account_authz_config_last_reload_timestamp_seconds',
    help: 'When the configuration in effect was loaded: at the start or by the last successful reload.',
    registers,
  });
  new Gauge({
    name: 'account_authz_key_set_age_seconds',
    help: 'Time since the key set of an issuer was last confirmed.',
    labelNames: ['issuer'],
    registers,
    collect() {
      this.reset();
      for (const { issuer, ageSeconds } of sources.keySets())
        if (ageSeconds !== undefined) this.set({ issuer }, ageSeconds);
    },
  });
  new Gauge({
    name: 'account_authz_key_set_keys',
    help: 'Usable keys in the key set of an issuer.',
    labelNames: ['issuer'],
    registers,
    collect() {
      this.reset();
      for (const { issuer, keys } of sources.keySets()) this.set({ issuer }, keys);
    },
  });
  new Gauge({
    name: 'account_authz_token_cache_entries',
    help: 'Tokens in the cache of verified tokens.',
    registers,
    collect() {
      this.set(sources.cachedTokens());
    },
  });
  new Gauge({
    name: 'account_authz_revocation_entries',
    help: 'Entries of the revocation list in force, including expired ones.',
    registers,
    collect() {
      this.set(sources.revocations()?.entries ?? 0);
    },
  });
  new Gauge({
    name: 'account_authz_revocation_last_reload_timestamp_seconds',
    help: 'When the revocation list in force was loaded: at the start or by the last successful reload. 0 without a list.',
    registers,
    collect() {
      this.set(sources.revocations()?.loadedAtSeconds ?? 0);
    },
  });
  const revocationReloads = new Counter({
    name: 'account_authz_revocation_reloads_total',
    help: 'Changed revocation lists that took effect (success) or were refused (failure). The start is not counted.',
    labelNames: ['result'],
    registers,
  });
  for (const result of results) revocationReloads.inc({ result }, 0);
  new Gauge({
    name: 'account_authz_build_info',
    help: 'Always 1. The labels are the version and the runtime.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.version }, 1);

  return {
    countCheck({ reason, cache, durationMs }) {
      checks.add(reason);
      duration.observe(durationMs / 1000);
      if (cache !== undefined) cacheLookups.add(cache);
    },
    countKeyRefresh(issuer, result) {
      refreshes.inc({ issuer, result });
    },
    forgetIssuer(issuer) {
      for (const result of results) refreshes.remove({ issuer, result });
    },
    countReload(result) {
      reloads.inc({ result });
    },
    countRevocationReload(result) {
      revocationReloads.inc({ result });
    },
    markLoaded(atSeconds) {
      loadedAt.set(atSeconds);
    },
    async page() {
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
    summary: () => readMetricsSummary(registry),
  };
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
