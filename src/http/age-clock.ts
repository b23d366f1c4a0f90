// The clock of the ages of documents.
import { uptime } from 'node:os';

/** Between two looks at the uptime, which is read from a file: a check asks the clock. */
const sampleMs = 100;

/**
 * In milliseconds since any start: monotonic, and it counts the time for which the machine was suspended. On Linux
 * `performance.now()` stands still then (CLOCK_MONOTONIC), and `os.uptime()` goes on (CLOCK_BOOTTIME): the larger of the two advances counts.
 */
export function createAgeClock(monotonicNow = (): number => performance.now(), uptimeSeconds = uptime): () => number {
  const aheadMs = (): number => uptimeSeconds() * 1000 - monotonicNow();
  const firstMs = aheadMs();
  let suspendedMs = 0;
  let sampledMs = monotonicNow();
  return () => {
    const nowMs = monotonicNow();
    if (nowMs - sampledMs >= sampleMs) {
      sampledMs = nowMs;
      suspendedMs = Math.max(suspendedMs, aheadMs() - firstMs);
    }
    return nowMs + suspendedMs;
  };
}
