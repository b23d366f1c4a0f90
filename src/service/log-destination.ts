// Standard output for the log, batched: one write per line costs about a third of a check (docs/dev/performance.md). The backlog for a
// slow reader is bounded.
import { write as writeInThread, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import { errorCode } from '../text/problem.ts';

/** How long a line waits for others, in milliseconds. */
const batchMs = 10;
/** Text batch beyond this is written at once, in characters. */
const batchLength = 64 * 1024;
/** Backlog for a reader that has stopped reading. Lines beyond it are dropped, and a line tells how many. */
const defaultMaxPendingBytes = 16 * 1024 * 1024;
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

interface Chunk {
  readonly bytes: Uint8Array;
  readonly lines: number;
}

// Not pino's own destination: the flushSync of sonic-boom 4.2.1 retries for ever once the reader is gone (EPIPE).
export function openLogDestination({ fd = 1, maxPendingBytes = defaultMaxPendingBytes } = {}): LogDestination {
  let batch: string[] = [];
  let length = 0;
  let timer: NodeJS.Timeout | undefined;
  let pending: Chunk[] = [];
  let pendingBytes = 0;
  let isWriting = false;
  let isRetrying = false;
  let lost = 0;

  function queueBatch(): void {
    clearTimeout(timer);
    timer = undefined;
    if (batch.length === 0) return;
    enqueue({ bytes: Buffer.from(batch.join('')), lines: batch.length });
    batch = [];
    length = 0;
  }

  function enqueue(chunk: Chunk): void {
    if (pendingBytes + chunk.bytes.length > maxPendingBytes) {
      lost += chunk.lines;
      return;
    }
    pending.push(chunk);
    pendingBytes += chunk.bytes.length;
  }

  function writePending(): void {
    const [chunk] = pending;
    if (isWriting || chunk === undefined) return;
    isWriting = true;
    // Asynchronous: a slow disk must not delay checks.
    writeInThread(fd, chunk.bytes, (error, count) => {
      isWriting = false;
      if (errorCode(error) === fullPipe) {
        retryLater();
        return;
      }
      // A reader that goes away must not end the service: its lines are dropped.
      release(chunk, error === null ? count : chunk.bytes.length);
      if (pending.length === 0 && lost > 0) {
        enqueue({ bytes: Buffer.from(lostLine(lost)), lines: 1 });
        lost = 0;
      }
      writePending();
    });
  }

  function retryLater(): void {
    if (isRetrying) return;
    isRetrying = true;
    setTimeout(() => {
      isRetrying = false;
      writePending();
    }, retryMs);
  }

  function release({ bytes, lines }: Chunk, count: number): void {
    // A flush has released it.
    if (pending[0]?.bytes !== bytes) return;
    pendingBytes -= count;
    if (count < bytes.length) pending[0] = { bytes: bytes.subarray(count), lines };
    else pending.shift();
  }

  return {
    write(line) {
      batch.push(line);
      length += line.length;
      if (length >= batchLength) {
        queueBatch();
        writePending();
      } else {
        timer ??= setTimeout(() => {
          queueBatch();
          writePending();
        }, batchMs);
      }
    },
    flushSync() {
      queueBatch();
      // The write in flight gets this time to complete; writing it again would duplicate it.
      if (isWriting) pause(retryMs);
      writeAllSync(fd, Buffer.concat(pending.slice(isWriting ? 1 : 0).map(({ bytes }) => bytes)));
      pending = [];
      pendingBytes = 0;
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
