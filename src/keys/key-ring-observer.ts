// The events of a key ring: each refresh, a set that becomes usable, and warnings, each once until it changes.
import { listWords } from '../text/list.ts';
import { quotedPrintable } from '../text/printable.ts';
import type { SkippedKey, SkippedKeyReason } from './jwks.ts';

/** Errors of the hooks are ignored. An event names all issuers that it is about, at least one. */
export interface KeyRingObserver {
  onRefresh(event: {
    readonly issuers: readonly string[];
    readonly result: 'success' | 'failure';
    readonly problem: string | undefined;
    readonly keys: number;
    readonly skipped: number;
  }): void;
  /** The first usable set, or the first one after the set was too old. */
  onUsable(issuers: readonly string[]): void;
  onWarning(event: { readonly issuers: readonly string[]; readonly problem: string }): void;
}

/** Ignores errors of the observer, and does not repeat a warning until it changes. */
export function createSafeObserver(issuers: readonly string[], observer: KeyRingObserver) {
  const last = new Map<string, string | undefined>();
  const quietly = (hook: () => void): void => {
    try {
      hook();
    } catch {
      // An observer must not stop the keys.
    }
  };
  const warn = (topic: string, problem: string | undefined): void => {
    const isNews = last.get(topic) !== problem;
    last.set(topic, problem);
    if (isNews && problem !== undefined) quietly(() => observer.onWarning({ issuers, problem }));
  };
  return {
    refresh: (result: 'success' | 'failure', problem: string | undefined, keys: number, skipped: number) =>
      quietly(() => observer.onRefresh({ issuers, result, problem, keys, skipped })),
    usable: () => quietly(() => observer.onUsable(issuers)),
    seed: (problem: string | undefined) => warn('seed', problem),
    dropped: () =>
      quietly(() =>
        observer.onWarning({
          issuers,
          problem: 'keys dropped: fetched under a CA that is no longer trusted',
        }),
      ),
    skipped: (keys: readonly SkippedKey[]) => warn('skipped', skippedWarning(keys)),
  };
}

const maxNamedKeys = 5;
const maxNamedLength = 64;
const notForUs: ReadonlySet<SkippedKeyReason> = new Set([
  'for another use',
  'key type not supported',
  'curve not supported',
  'algorithm not allowed',
]);

/** One line that names the broken keys. Keys that are not for us get no warning. */
function skippedWarning(skipped: readonly SkippedKey[]): string | undefined {
  const wrong = skipped.filter(({ reason }) => !notForUs.has(reason));
  if (wrong.length === 0) return undefined;
  const named = wrong.map(({ kid, reason }) => {
    const shown = kid === undefined ? 'null' : quotedPrintable(kid, maxNamedLength);
    return `${reason} (kid ${shown})`;
  });
  return `keys not used: ${listWords(named, maxNamedKeys)}`;
}
