// Watches a file of the operator and reports new content. Kubernetes swaps a symbolic link beside the file, editors replace the
// file or write into it: the watch covers the directory, and polls the file too because some mounts have no change events.
import { webcrypto } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { dirname } from 'node:path';
import { type FileContent, loadBoundedFile } from '../files/bounded-file.ts';
import { fileSignature, notARegularFile } from '../files/file-signature.ts';

export interface FileWatchOptions {
  readonly file: string;
  /** 1 MiB by default. */
  readonly maxBytes?: number;
  /** The content in effect, which is not reported. */
  readonly known: FileContent;
  /** Called for one content at a time; of several changes during a call, only the newest content is reported. Must not reject. */
  readonly onContent: (content: FileContent) => Promise<unknown>;
  readonly onProblem: (problem: string) => void;
  /** How long new content must be stable before it is reported. */
  readonly settleMs?: number;
  readonly pollMs?: number;
}

export interface FileWatch {
  /** Reports the present content even if it is unchanged: a file that it names may have changed. */
  reportNow(): void;
  stop(): void;
}

interface Candidate {
  readonly digest: string;
  readonly sinceMs: number;
}

// A file that is written in place can be read half-written, and half of a configuration may permit more than the whole.
const defaultSettleMs = 500;
const defaultPollMs = 1000;
const debounceMs = 50;

export async function startFileWatch(options: FileWatchOptions): Promise<FileWatch> {
  const { file, maxBytes, onContent, onProblem, settleMs = defaultSettleMs, pollMs = defaultPollMs } = options;
  let reportedDigest = await digestOf(options.known);
  let seenSignature: string | undefined;
  let candidate: Candidate | undefined;
  let pending: 'check' | 'report' | undefined;
  let isRunning = false;
  let isStopped = false;
  let debounce: NodeJS.Timeout | undefined;
  let watcher: FSWatcher | undefined;

  function request(what: 'check' | 'report'): void {
    if (pending !== 'report') pending = what;
    void run();
  }

  async function run(): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    while (pending !== undefined && !isStopped) {
      const isForced = pending === 'report';
      pending = undefined;
      await check(isForced);
    }
    isRunning = false;
  }

  async function check(isForced: boolean): Promise<void> {
    const signature = await fileSignature(file);
    // Settled content is read once more: a change within one tick of the file system's clock keeps the signature.
    if (!isForced && signature === seenSignature && candidate === undefined) return;
    seenSignature = isForced ? undefined : signature;
    const content = await readRegularFile(signature);
    const digest = await digestOf(content);
    if (isStopped) return;
    const nowMs = performance.now();
    if (!isForced && digest === reportedDigest) {
      candidate = undefined;
      return;
    }
    const sinceMs = candidate?.digest === digest ? candidate.sinceMs : nowMs;
    if (isForced || nowMs - sinceMs >= settleMs) {
      candidate = undefined;
      reportedDigest = digest;
      await onContent(content);
      return;
    }
    candidate = { digest, sinceMs };
    checkIn(settleMs);
  }

  // Opening a pipe would block until somebody writes to it.
  async function readRegularFile(signature: string): Promise<FileContent> {
    if (signature !== notARegularFile) return loadBoundedFile(file, maxBytes);
    return { kind: 'problem', reason: 'other', problem: 'the file is not a regular file' };
  }

  function checkIn(delayMs: number): void {
    clearTimeout(debounce);
    debounce = setTimeout(() => request('check'), delayMs).unref();
  }

  if ((await fileSignature(file)) === notARegularFile) {
    onProblem('not a regular file: a change needs a restart');
    return { reportNow: () => undefined, stop: () => undefined };
  }
  try {
    watcher = watch(dirname(file), { persistent: false }, () => checkIn(debounceMs));
    watcher.on('error', () => onProblem('the watch of the directory has ended: the file is polled each second'));
  } catch {
    onProblem('the directory cannot be watched: the file is polled each second');
  }
  const polling = setInterval(() => request('check'), pollMs).unref();

  return {
    reportNow: () => request('report'),
    stop() {
      isStopped = true;
      clearTimeout(debounce);
      clearInterval(polling);
      watcher?.close();
    },
  };
}

// In a thread of Node, because a revocation list may have many megabytes.
async function digestOf(content: FileContent): Promise<string> {
  if (content.kind === 'problem') return content.problem;
  return Buffer.from(await webcrypto.subtle.digest('SHA-256', content.bytes)).toString('hex');
}
