// Watches files: polls them, and applies their content once it is stable. A poll sees every kind of change, on every kind of mount.
import { fileSignature } from './file-signature.ts';

/** A file with the signature that it has or had, see file-signature.ts. */
export interface FileVersion {
  readonly file: string;
  readonly signature: string;
}

export type WatchOutcome =
  | { readonly kind: 'accepted' }
  /** Tried again once one of the watched files, or of `alsoWatch`, is no longer as it was at the last try. */
  | { readonly kind: 'refused'; readonly alsoWatch: readonly FileVersion[] }
  /** Tried again at each poll: the problem may be temporary, such as too many open files. */
  | { readonly kind: 'retry' };

export interface WatchedFiles<Content> {
  readonly files: readonly string[];
  /** The versions in use. By default those of the first poll. */
  readonly known?: readonly FileVersion[];
  /** Must not reject. What it returns is dropped if a file has changed meanwhile. */
  load(): Promise<Content>;
  /** Called for one content at a time. `isRetry` is true after the outcome `retry` if no file has changed. Must not reject. */
  apply(content: Content, isRetry: boolean): WatchOutcome | Promise<WatchOutcome>;
}

export interface FileWatch {
  /** Loads and applies the content now, even if it is unchanged. */
  applyNow(): void;
  stop(): void;
}

/**
 * Applies the content of the files once two successive polls have found them unchanged but different from the versions in use: a file
 * that is written in place can be seen half-written, and half of a configuration may permit more than the whole.
 */
export type WatchFiles = <Content>(watched: WatchedFiles<Content>) => FileWatch;

export const accepted: WatchOutcome = { kind: 'accepted' };

interface PolledFile {
  /** Undefined until the first poll ends. */
  signature: string | undefined;
  /** Whether the last two polls found the same signature. */
  isStable: boolean;
  readonly listeners: Set<() => void>;
  stop(): void;
}

export async function fileVersions(files: readonly string[]): Promise<readonly FileVersion[]> {
  return Promise.all(files.map(async file => ({ file, signature: await fileSignature(file) })));
}

/** Watches of one file share its polls. A poll begins `pollMs` milliseconds after the one before has ended. */
export function createFileWatch({ pollMs = 1000, signatureOf = fileSignature } = {}): WatchFiles {
  const polledFiles = new Map<string, PolledFile>();

  function startPolling(file: string): PolledFile {
    let timer: NodeJS.Timeout | undefined;
    let isStopped = false;
    const listeners = new Set<() => void>();
    const stop = (): void => {
      isStopped = true;
      clearTimeout(timer);
      polledFiles.delete(file);
    };
    const polled: PolledFile = { signature: undefined, isStable: false, listeners, stop };
    const poll = async (): Promise<void> => {
      const signature = await signatureOf(file);
      if (isStopped) return;
      polled.isStable = signature === polled.signature;
      polled.signature = signature;
      for (const listener of listeners) listener();
      timer = setTimeout(() => void poll(), pollMs).unref();
    };
    polledFiles.set(file, polled);
    void poll();
    return polled;
  }

  function subscribe(file: string, listener: () => void): () => void {
    const polled = polledFiles.get(file) ?? startPolling(file);
    polled.listeners.add(listener);
    return () => {
      polled.listeners.delete(listener);
      if (polled.listeners.size === 0) polled.stop();
    };
  }

  async function versionsNow(files: Iterable<string>): Promise<Versions> {
    return new Map(await Promise.all([...files].map(async file => [file, await signatureOf(file)] as const)));
  }

  return ({ files, known = [], load, apply }) => {
    /** By file; undefined until its first poll ends. */
    let inUse = toVersions(known);
    let isRetry = false;
    let isBusy = false;
    let isDue = false;
    let isStopped = false;
    const subscriptions = new Map<string, () => void>();

    function watchOnly(wanted: readonly string[]): void {
      for (const file of wanted) if (!subscriptions.has(file)) subscriptions.set(file, subscribe(file, onPoll));
      for (const [file, unsubscribe] of subscriptions) {
        if (wanted.includes(file)) continue;
        unsubscribe();
        subscriptions.delete(file);
      }
    }

    function onPoll(): void {
      const polled = polledVersions();
      for (const [file, signature] of polled) if (!inUse.has(file)) inUse.set(file, signature);
      const isChanged = [...polled].some(([file, signature]) => signature !== inUse.get(file));
      const isStable = [...polled.keys()].every(file => polledFiles.get(file)?.isStable);
      if (isStable && (isChanged || isRetry)) void run(polled, isRetry && !isChanged);
    }

    function polledVersions(): Versions {
      const polled: Versions = new Map();
      for (const file of subscriptions.keys()) {
        const signature = polledFiles.get(file)?.signature;
        if (signature !== undefined) polled.set(file, signature);
      }
      return polled;
    }

    async function run(before: Versions | undefined, retries: boolean): Promise<void> {
      if (isBusy || isStopped) return;
      isBusy = true;
      await loadAndApply(before ?? (await versionsNow(subscriptions.keys())), retries);
      isBusy = false;
      if (!isDue) return;
      isDue = false;
      await run(undefined, false);
    }

    async function loadAndApply(before: Versions, retries: boolean): Promise<void> {
      const content = await load();
      const after = await versionsNow(before.keys());
      const isTorn = [...before].some(([file, signature]) => after.get(file) !== signature);
      if (isTorn || isStopped) return;
      inUse = new Map([...inUse, ...before]);
      const outcome = await apply(content, retries);
      isRetry = outcome.kind === 'retry';
      const others = outcome.kind === 'refused' ? outcome.alsoWatch : [];
      for (const [file, signature] of toVersions(others)) if (!files.includes(file)) inUse.set(file, signature);
      if (!isStopped) watchOnly([...files, ...others.map(({ file }) => file)]);
    }

    watchOnly(files);
    return {
      applyNow() {
        isDue = isBusy;
        void run(undefined, false);
      },
      stop() {
        isStopped = true;
        watchOnly([]);
      },
    };
  };
}

type Versions = Map<string, string>;

function toVersions(versions: readonly FileVersion[]): Versions {
  return new Map(versions.map(({ file, signature }) => [file, signature]));
}
