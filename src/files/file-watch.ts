// Polls files and reports when one of them has changed and is stable. Polling sees every kind of change, on every kind of mount.
import { fileSignature } from './file-signature.ts';

/**
 * Calls `onChange` once the files are the same at two looks and differ from those reported before: a file that is written in place can
 * be seen half-written. Returns the function that ends the watch.
 */
export type WatchFiles = (files: readonly string[], onChange: () => void) => () => void;

const defaultPollMs = 1000;

/** Watches of the same files share one timer. */
export function createFileWatch(pollMs = defaultPollMs): WatchFiles {
  const watched = new Map<string, { readonly listeners: Set<() => void>; readonly stop: () => void }>();
  return (files, onChange) => {
    if (files.length === 0) return () => undefined;
    const id = files.join('\0');
    const { listeners, stop } = watched.get(id) ?? startPolling(files, pollMs);
    watched.set(id, { listeners, stop });
    listeners.add(onChange);
    return () => {
      listeners.delete(onChange);
      if (listeners.size > 0) return;
      watched.delete(id);
      stop();
    };
  };
}

function startPolling(files: readonly string[], pollMs: number) {
  const listeners = new Set<() => void>();
  let reported: string | undefined;
  let seen: string | undefined;
  const look = async (): Promise<void> => {
    const signature = (await Promise.all(files.map(fileSignature))).join('\n');
    reported ??= signature;
    const isStable = signature === seen;
    seen = signature;
    if (!isStable || signature === reported) return;
    reported = signature;
    for (const onChange of listeners) onChange();
  };
  void look();
  const polling = setInterval(() => void look(), pollMs).unref();
  return { listeners, stop: () => clearInterval(polling) };
}
