// What one issuer sees of its key ring: the lookup of its keys, and their state.
import { maxKidLength, type VerificationKey } from './jwks.ts';
import type { KeySetDriver } from './key-set-driver.ts';
import { isUsable, type KeyLookup, usableKey } from './key-set-state.ts';

export interface KeyRingStatus {
  readonly issuer: string;
  /** `loading`: no set yet; `stale`: a set not confirmed for maxAgeSeconds, which is not used. */
  readonly state: 'loading' | 'usable' | 'stale';
  /** The number of usable keys. */
  readonly keys: number;
  /** Since the start of the fetch that confirmed the set. */
  readonly ageSeconds: number | undefined;
  readonly lastResult: 'success' | 'failure' | undefined;
  readonly lastProblem: string | undefined;
  /** The kids of the usable keys. */
  readonly kids: readonly string[];
}

export interface IssuerRing {
  readonly issuer: string;
  /** The key under this kid if it is usable now. Synchronous, for the verified-token cache. */
  current(kid: string): VerificationKey | undefined;
  /** Synchronous if the answer is known; a promise, for at most 150 ms, while an early refresh decides. Never rejects. */
  find(kid: string): KeyLookup | Promise<KeyLookup>;
  status(): KeyRingStatus;
}

export function createIssuerRing(issuer: string, { state, ask }: KeySetDriver, monotonicNow: () => number): IssuerRing {
  const current = (kid: string): VerificationKey | undefined => usableKey(state(), kid, monotonicNow());
  return {
    issuer,
    current,
    find(kid) {
      const key = current(kid);
      if (key !== undefined) return { kind: 'key', key };
      // No set holds a longer kid: no fetch, and no memory for it.
      return kid.length > maxKidLength ? { kind: 'unknown' } : ask(kid);
    },
    status() {
      const nowMs = monotonicNow();
      const { keys, confirmedMs, lastResult, lastProblem } = state();
      const kids = isUsable(state(), nowMs) ? [...keys.keys()] : [];
      const last = { issuer, keys: kids.length, lastResult, lastProblem, kids };
      if (confirmedMs === undefined) return { ...last, state: 'loading', ageSeconds: undefined };
      const ageSeconds = (nowMs - confirmedMs) / 1000;
      return { ...last, state: isUsable(state(), nowMs) ? 'usable' : 'stale', ageSeconds };
    },
  };
}
