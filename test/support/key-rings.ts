// Key rings with a key thread for all of them, and without waits for the first keys and between polls of files: what a test does not name stays silent.

import { getDocument } from '../../lab/key-thread.ts';
import { createFileWatch } from '../../src/files/file-watch.ts';
import type { KeyRingObserver } from '../../src/keys/key-ring-observer.ts';
import { createKeyRings, type KeyRings } from '../../src/keys/key-rings.ts';

type Options = Partial<Parameters<typeof createKeyRings>[0]>;

/** Adds the end of the rings to `ends`. */
export function startKeyRings(
  ends: (() => Promise<unknown>)[],
  { observer, ...options }: Omit<Options, 'observer'> & { readonly observer?: Partial<KeyRingObserver> } = {},
): KeyRings {
  const rings = createKeyRings({
    observer: { onRefresh: () => undefined, onUsable: () => undefined, onWarning: () => undefined, ...observer },
    proxy: {},
    headStartMs: 0,
    watchFiles: createFileWatch({ pollMs: 20 }),
    getDocument,
    ...options,
  });
  ends.push(() => rings.stop());
  return rings;
}
