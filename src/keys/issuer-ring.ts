// A key ring as one of its issuers uses it: the keys for its algorithms, and their state.
import { maxKidLength, type VerificationKey } from './jwks.ts';
import { areUsable, type SelectedKeys, withoutKey } from './key-selection.ts';
import type { KeyLookup } from './key-set-state.ts';

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
  /** Of the usable keys. */
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

export function createIssuerRing(options: {
  readonly issuer: string;
  readonly maxAgeMs: number;
  readonly monotonicNow: () => number;
  /** The keys of the issuer now. */
  readonly selected: () => SelectedKeys;
  /** Asks the state machine of the source. */
  readonly ask: (kid: string) => KeyLookup | Promise<KeyLookup>;
}): IssuerRing {
  const { issuer, maxAgeMs, monotonicNow, selected, ask } = options;

  function current(kid: string): VerificationKey | undefined {
    const set = selected();
    return areUsable(set, maxAgeMs, monotonicNow()) ? set.keys.get(kid) : undefined;
  }

  function toOwn(kid: string, lookup: KeyLookup): KeyLookup {
    const key = current(kid);
    return key === undefined ? withoutKey(lookup, selected()) : { kind: 'key', key };
  }

  return {
    issuer,
    current,
    find(kid) {
      const key = current(kid);
      if (key !== undefined) return { kind: 'key', key };
      // No set holds a longer kid: no fetch, and no memory for it.
      if (kid.length > maxKidLength) return { kind: 'unknown' };
      const lookup = ask(kid);
      return lookup instanceof Promise ? lookup.then(answer => toOwn(kid, answer)) : toOwn(kid, lookup);
    },
    status() {
      const nowMs = monotonicNow();
      const { keys, confirmedMs, lastResult, lastProblem } = selected();
      const isUsable = areUsable(selected(), maxAgeMs, nowMs);
      const age = isUsable ? 'usable' : 'stale';
      return {
        issuer,
        state: confirmedMs === undefined ? 'loading' : age,
        keys: isUsable ? keys.size : 0,
        ageSeconds: confirmedMs === undefined ? undefined : (nowMs - confirmedMs) / 1000,
        lastResult,
        lastProblem,
        kids: isUsable ? [...keys.keys()] : [],
      };
    },
  };
}
