// Watches files: polls them, and applies their content once it is stable and its bytes differ from those in use.
// A poll sees every kind of change, on every kind of mount.
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { errorCode } from '../text/problem.ts';
import { loadInSlices } from './bounded-file.ts';

/** A file with the signature that it has or had: a text that differs once the file is replaced or written. */
export interface FileVersion {
  readonly file: string;
  readonly signature: string;
  /** Of its bytes, where they were read: another file with the same bytes is no change, also before the first poll. */
  readonly digest?: string;
}

export type WatchOutcome =
  | { readonly kind: 'accepted' }
  /** Tried again once one of the watched files, or of `alsoWatch`, is no longer as it was at the last try. */
  | { readonly kind: 'refused'; readonly alsoWatch: readonly FileVersion[] }
  /** Tried again at each poll: the problem may be temporary, such as too many open files. */
  | { readonly kind: 'retry' };

export interface WatchedFiles<Content> {
  readonly files: readonly string[];
  /** The versions in use, of each file. */
  readonly known: readonly FileVersion[];
  /** Must not reject. What it returns is dropped if a file has changed meanwhile. */
  load(): Promise<Content>;
  /** Called for one content at a time. `isRetry` is true after the outcome `retry` if no file has changed. Must not reject. */
  apply(content: Content, isRetry: boolean): WatchOutcome | Promise<WatchOutcome>;
}

export interface FileWatch {
  /** Polls now, and does not wait until a change is stable. */
  applyNow(): void;
  stop(): void;
}

/**
 * Applies the content of the files once two successive polls have found them unchanged and their bytes are not those in use: a file
 * that is written in place can be seen half-written, and half of a configuration may permit more than the whole.
 */
export type WatchFiles = <Content>(watched: WatchedFiles<Content>) => FileWatch;

export const accepted: WatchOutcome = { kind: 'accepted' };

/** Of the largest file that is watched, a revocation list. */
const maxBytes = 128 * 1024 * 1024;
const notRegular = 'not a regular file';

export async function fileVersions(files: readonly string[]): Promise<readonly FileVersion[]> {
  return Promise.all(files.map(async file => ({ file, signature: await fileSignature(file) })));
}

export function digestOf(bytes: Uint8Array): string {
  const digest = createDigest();
  digest.add(bytes);
  return digest.text();
}

/** The same of a file that is read in slices. */
export function createDigest(): { add(slice: Uint8Array): void; text(): string } {
  const hash = createHash('sha256');
  return { add: slice => void hash.update(slice), text: () => hash.digest('base64') };
}

/** Follows symbolic links. Never rejects: if the file is not accessible, the signature is the error code. */
export async function fileSignature(file: string): Promise<string> {
  try {
    const stats = await stat(file);
    const { dev, ino, size, mtimeMs, ctimeMs } = stats;
    return stats.isFile() ? [dev, ino, size, mtimeMs, ctimeMs].join(' ') : notRegular;
  } catch (error) {
    return errorCode(error) ?? 'no code';
  }
}

/** A poll begins `pollMs` milliseconds after the one before has ended. `onMountedAlone` is called once for each such file. */
export function createFileWatch({
  pollMs = 1000,
  signatureOf = fileSignature,
  onMountedAlone = (_file: string): void => undefined,
} = {}): WatchFiles {
  const mountedAlone = new Set<string>();

  async function digestNow(file: string): Promise<string> {
    // No folder leads to it any more: the file behind a mount of its own was replaced, and the mount will show the old one for ever.
    const { nlink } = await stat(file).catch(() => ({ nlink: undefined }));
    if (nlink === 0 && !mountedAlone.has(file)) {
      mountedAlone.add(file);
      onMountedAlone(file);
    }
    const digest = createDigest();
    const unreadable = await loadInSlices(file, maxBytes, digest.add);
    return unreadable?.problem ?? digest.text();
  }

  return ({ files, known, load, apply }) => {
    let watched = files;
    /** The signatures in use, until the digest is known. */
    const assumed = toSignatures(known);
    /** The digests in use. */
    const inUse = new Map(known.flatMap(({ file, digest }) => (digest === undefined ? [] : [[file, digest]])));
    const digests = new Map<string, { readonly signature: string; readonly digest: string }>();
    let polled = toSignatures(known);
    let isRetry = false;
    let isStopped = false;
    let timer: NodeJS.Timeout | undefined;

    async function signaturesNow(): Promise<Signatures> {
      return new Map(await Promise.all(watched.map(async file => [file, await signatureOf(file)] as const)));
    }

    /** Undefined if the file has changed since it had this signature. */
    async function stableDigest(file: string, signature: string): Promise<string | undefined> {
      const last = digests.get(file);
      if (last?.signature === signature) return last.digest;
      const digest = await digestNow(file);
      if ((await signatureOf(file)) !== signature) return undefined;
      digests.set(file, { signature, digest });
      return digest;
    }

    async function look(isNow: boolean): Promise<void> {
      if (isStopped) return;
      const found = await signaturesNow();
      const isStable = isSame(found, polled);
      polled = found;
      if (!isStable && !isNow) return;
      const digestsNow = new Map<string, string>();
      for (const [file, signature] of found) {
        const digest = await stableDigest(file, signature);
        if (digest === undefined) return;
        digestsNow.set(file, digest);
        if (!inUse.has(file) && assumed.get(file) === signature) inUse.set(file, digest);
      }
      const isChanged = !isSame(digestsNow, inUse);
      if (isStopped || !(isChanged || isRetry)) return;
      const content = await load();
      const isTorn = !isSame(await signaturesNow(), found);
      if (isTorn || isStopped) return;
      for (const [file, digest] of digestsNow) inUse.set(file, digest);
      const outcome = await apply(content, !isChanged);
      isRetry = outcome.kind === 'retry';
      const others = toSignatures(outcome.kind === 'refused' ? outcome.alsoWatch : []);
      for (const file of files) others.delete(file);
      for (const [file, signature] of others) {
        assumed.set(file, signature);
        polled.set(file, signature);
        inUse.delete(file);
      }
      watched = [...files, ...others.keys()];
    }

    let inOrder = Promise.resolve();
    function next(isNow: boolean): void {
      inOrder = inOrder.then(() => look(isNow));
    }

    async function poll(): Promise<void> {
      next(false);
      await inOrder;
      if (!isStopped) timer = setTimeout(() => void poll(), pollMs).unref();
    }

    void poll();
    return {
      applyNow: () => next(true),
      stop() {
        isStopped = true;
        clearTimeout(timer);
      },
    };
  };
}

type Signatures = Map<string, string>;

function toSignatures(versions: readonly FileVersion[]): Signatures {
  return new Map(versions.map(({ file, signature }) => [file, signature]));
}

/** Whether each file has the same text in both. */
function isSame(texts: Signatures, others: Signatures): boolean {
  return [...texts].every(([file, text]) => others.get(file) === text);
}
