// The default process metrics of the client library, without the names that promtool's lint rejects.
import { performance } from 'node:perf_hooks';
import { collectDefaultMetrics, Gauge, type Registry } from '@prometheus-io/client';

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

export function registerProcessMetrics(registry: Registry): void {
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
