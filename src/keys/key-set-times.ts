// When a key set is fetched next: the background refresh, the retry after a failure, and the early refresh for unknown kids.
// `jitter` is a random number from 0 up to, not including, 1.
import type { KeySetLimits, KeySetState } from './key-set-state.ts';

/** After a success. Spread over the last fifth of the interval, and at least a fifth of maxAge before the set is too old. */
export function refreshDelayMs(limits: KeySetLimits, jitter: number): number {
  return Math.min(limits.refreshMs * (0.8 + 0.2 * jitter), limits.maxAgeMs * 0.8);
}

/** When to retry after this many failures in a row. The backoff is short from the moment when the set is too old. */
export function retryMs({ limits, confirmedMs }: KeySetState, failures: number, jitter: number, nowMs: number): number {
  const tooOldMs = confirmedMs === undefined ? nowMs : Math.max(nowMs, confirmedMs + limits.maxAgeMs);
  const longMs = backoffMs(limits, failures, limits.refreshMs, jitter);
  const shortMs = backoffMs(limits, failures, Math.min(limits.refreshMs, limits.maxRetryMs), jitter);
  return Math.min(nowMs + longMs, tooOldMs + shortMs);
}

// Between half of the doubled delay and all of it: [c, 2c], [2c, 4c] … [cap / 2, cap], and never below the cooldown.
function backoffMs({ cooldownMs }: KeySetLimits, failures: number, capMs: number, jitter: number): number {
  const highMs = Math.max(cooldownMs, Math.min(capMs, doubled(cooldownMs, failures)));
  return between(Math.max(cooldownMs, highMs / 2), highMs, jitter);
}

/**
 * After this many early refreshes in a row that brought nothing new: the cooldown, then up to twice that, four times … the cap.
 * Near the cap the jitter narrows to a fifth: half of it would let a flood cause a third more fetches.
 */
export function earlyDelayMs(limits: KeySetLimits, withoutNews: number, jitter: number): number {
  const { cooldownMs, maxEarlyMs } = limits;
  const stepMs = doubled(cooldownMs, withoutNews - 1);
  const lowMs = Math.max(cooldownMs, Math.min(stepMs / 2, maxEarlyMs * 0.8));
  return between(lowMs, Math.max(cooldownMs, Math.min(stepMs, maxEarlyMs)), jitter);
}

function doubled(ms: number, times: number): number {
  return ms * 2 ** Math.min(times, 32);
}

function between(lowMs: number, highMs: number, jitter: number): number {
  return lowMs + (highMs - lowMs) * jitter;
}
