// Standard output for the log, batched: one write per line costs about a third of a check (docs/dev/performance.md). The backlog for a
// slow reader is bounded.
import { write as writeInThread, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import { errorCode } from '../text/problem.ts';

/** How long a line waits for others, in milliseconds. */
const batchMs = 10;
/** Text beyond this is written at once, in characters. */
const batchLength = 64 * 1024;
/** Backlog for a reader that has stopped reading, in characters. Lines beyond it are dropped, and a line tells how many. */
const defaultMaxPendingLength = 16 * 1024 * 1024;
/** Between two attempts to write to a full pipe. */
const retryMs = 20;
/** How long flushSync waits for a reader. */
const flushMs = 500;

/** Node makes pipes non-blocking. */
const fullPipe = 'EAGAIN';

export interface LogDestination extends DestinationStream {
  /** Before the process ends. Never throws. Waits at most half a second for a reader of a pipe; a write to a regular file on a hung mount blocks. */
  flushSync(): void;
}

// Not pino's own destination: the flushSync of sonic-boom 4.2.1 retries for ever once the reader is gone (EPIPE).
export function openLogDestination({ fd = 1, maxPendingLength = defaultMaxPendingLength } = {}): LogDestination {
  let batch = '';
  let timer: NodeJS.Timeout | undefined;
  /** What is being written; empty if nothing is. */
  let pending: Uint8Array = Buffer.alloc(0);
  let isInThread = false;
  let lost = 0;

  function writeBatch(): void {
    clearTimeout(timer);
    timer = undefined;
    if (pending.length > 0) return;
    pending = Buffer.from(lost > 0 ? batch + lostLine(lost) : batch);
    lost = 0;
    batch = '';
    if (pending.length > 0) writePending();
  }

  function writePending(): void {
    const bytes = pending;
    isInThread = true;
    // Asynchronous: a slow disk must not delay checks.
    writeInThread(fd, bytes, (error, count) => {
      isInThread = false;
      // A flush has taken it over.
      if (pending !== bytes) return;
      if (errorCode(error) === fullPipe) {
        setTimeout(() => pending === bytes && writePending(), retryMs);
        return;
      }
      // A reader that goes away must not end the service: its lines are dropped.
      pending = error === null ? bytes.subarray(count) : Buffer.alloc(0);
      if (pending.length > 0) writePending();
      else writeBatch();
    });
  }

  return {
    write(line) {
      if (pending.length + batch.length + line.length > maxPendingLength) {
        lost += 1;
        return;
      }
      batch += line;
      if (batch.length >= batchLength) writeBatch();
      else timer ??= setTimeout(writeBatch, batchMs);
    },
    flushSync() {
      // The write in flight gets this time to complete; writing it again would duplicate it.
      if (isInThread) pause(retryMs);
      writeAllSync(fd, Buffer.concat([isInThread ? Buffer.alloc(0) : pending, Buffer.from(batch)]));
      pending = Buffer.alloc(0);
      batch = '';
    },
  };
}

function lostLine(lines: number): string {
  const line = {
    level: 'error',
    time: new Date().toISOString(),
    lines,
    msg: 'log lines dropped: the log was not read fast enough',
  };
  return `${JSON.stringify(line)}\n`;
}

function writeAllSync(fd: number, bytes: Uint8Array): void {
  const endMs = performance.now() + flushMs;
  for (let rest = bytes; rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (errorCode(error) !== fullPipe || performance.now() >= endMs) return;
      pause(retryMs);
    }
  }
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
