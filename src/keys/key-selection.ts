// What the issuers of one source use of its documents. Pure but for the import of keys.
import type { DetailOf } from '../authz/checks.ts';
import { type KeySet, type KeySetProblem, type PublicJwk, parseKeySet, type VerificationKey } from './jwks.ts';
import type { KeyLookup } from './key-set-state.ts';
import type { IssuerKeySettings, SourceResult } from './key-source.ts';
import type { Anchors } from './key-trust.ts';
import type { FetchProblem } from './network-problem.ts';

/** Issuers of one source that use the same keys: their algorithms are the same. With discovery each issuer is by itself. */
export interface KeySelection {
  /** The same for the same selection of a later configuration. */
  readonly id: string;
  readonly issuers: readonly string[];
  readonly algorithms: readonly string[];
}

/** The keys that a selection has. */
export interface SelectedKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** The keys as JWKs, if they come from a fetch of this ring. */
  readonly publicJwks: readonly PublicJwk[];
  /** The start of the fetch that confirmed them, on the monotonic clock; undefined: no set yet. */
  readonly confirmedMs: number | undefined;
  readonly lastResult: 'success' | 'failure' | undefined;
  readonly lastProblem: string | undefined;
}

/** Keys that a ring starts with: from a seed or from the ring before. */
export interface FirstKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** Since the start of the fetch that confirmed them. */
  readonly ageMs: number;
  /** The authorities that vouch for them. */
  readonly anchors: Anchors;
}

/** What a fetch brought for a selection. */
export type SelectionResult = KeySet | { readonly kind: 'notModified' } | KeySetProblem | FetchProblem;

export const noKeys: SelectedKeys = {
  keys: new Map(),
  publicJwks: [],
  confirmedMs: undefined,
  lastResult: undefined,
  lastProblem: undefined,
};

export function toKeySelections(issuers: readonly IssuerKeySettings[]): readonly KeySelection[] {
  const members = new Map<string, { readonly algorithms: readonly string[]; readonly issuers: string[] }>();
  for (const { issuer, algorithms, discoveryUrl } of issuers) {
    const id = JSON.stringify([algorithms.toSorted(), discoveryUrl === undefined ? null : issuer]);
    const known = members.get(id);
    if (known === undefined) members.set(id, { algorithms, issuers: [issuer] });
    else known.issuers.push(issuer);
  }
  return Array.from(members, ([id, selection]) => ({ id, ...selection }));
}

/**
 * Keys that the selection already has are reused as the same objects. `refusal` is why the document that a 304 confirms has no keys for
 * the selection.
 */
export async function selectKeys(
  result: SourceResult,
  { algorithms, issuers }: KeySelection,
  { keys }: SelectedKeys,
  refusal: FetchProblem | undefined,
): Promise<SelectionResult> {
  switch (result.kind) {
    case 'problem':
      return result;
    case 'notModified':
      return refusal ?? result;
    case 'body':
      // RFC 8414 section 3.3: metadata of another issuer must not be used.
      if (result.metadataIssuer !== undefined && !issuers.includes(result.metadataIssuer))
        return { kind: 'problem', problem: 'discovery: issuer differs' };
      return parseKeySet(result.bytes, algorithms, keys);
  }
}

/** A failed refresh leaves the last good set, and its age. */
export function afterFetch(before: SelectedKeys, result: SelectionResult, fetchStartedMs: number): SelectedKeys {
  if (result.kind === 'problem') return { ...before, lastResult: 'failure', lastProblem: result.problem };
  const { keys, publicJwks } = result.kind === 'keySet' ? result : before;
  return { keys, publicJwks, confirmedMs: fetchStartedMs, lastResult: 'success', lastProblem: undefined };
}

export function areUsable({ confirmedMs }: SelectedKeys, maxAgeMs: number, nowMs: number): boolean {
  return confirmedMs !== undefined && nowMs - confirmedMs < maxAgeMs;
}

/** The end of the fetch for the state machine. It failed if it brought nothing for any selection. */
export function toFetchEnd(results: readonly SelectionResult[], sets: readonly SelectedKeys[]) {
  if (results.some(({ kind }) => kind === 'keySet')) return { kind: 'fetched', keys: mergeKeys(sets) } as const;
  const [first] = results;
  if (first?.kind !== 'problem' || results.some(({ kind }) => kind === 'notModified'))
    return { kind: 'notModified' } as const;
  return { kind: 'failed', problem: first.problem } as const;
}

/** The keys of all selections, for the state machine of their source. */
export function mergeKeys(sets: readonly SelectedKeys[]): ReadonlyMap<string, VerificationKey> {
  const [only] = sets;
  return sets.length === 1 && only !== undefined ? only.keys : new Map(sets.flatMap(({ keys }) => [...keys]));
}

/** The answer for a kid that the selection does not have, from the answer for all selections of its source. */
export function withoutKey(lookup: KeyLookup, { lastProblem, confirmedMs }: SelectedKeys): KeyLookup {
  if (lookup.kind === 'unavailable') return lookup;
  if (lastProblem === undefined) return { kind: 'unknown' };
  const detail: DetailOf<'keys_unavailable'> =
    confirmedMs === undefined
      ? `no key set yet, last refresh: ${lastProblem}`
      : `kid not in the key set, last refresh: ${lastProblem}`;
  return { kind: 'unavailable', detail };
}
