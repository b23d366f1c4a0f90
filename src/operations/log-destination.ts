// Standard output for the log: lines that come within a few milliseconds are written together, since a write of its own for each
// costs about a third of a whole check (docs/dev/performance.md). What the reader of the log does not take in is bounded.
import { write as writeInThread, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** How long a line may wait for others, in milliseconds. */
const gatherMs = 10;
/** Text gathered beyond this is written at once, in characters. */
const gatherLength = 64 * 1024;
/** Text held for a reader that has stopped reading, in bytes; beyond it lines are lost, and a line says how many. */
const defaultMaxHeldBytes = 16 * 1024 * 1024;
/** Between two tries to write to a pipe that is full. */
const retryMs = 20;
/** How long the end of the process waits for a reader. */
const flushMs = 500;

export interface LogDestination extends DestinationStream {
  /** Before the process ends. Never throws, and ends in time whatever the reader does. */
  flushSync(): void;
}

interface Chunk {
  readonly bytes: Uint8Array;
  readonly lines: number;
}

// Not pino's own destination: its flushSync does not end where the reader has gone (EPIPE), nor is it bounded where it has stopped.
export function openLogDestination({ fd = 1, maxHeldBytes = defaultMaxHeldBytes } = {}): LogDestination {
  let gathered: string[] = [];
  let length = 0;
  let timer: NodeJS.Timeout | undefined;
  let held: Chunk[] = [];
  let heldBytes = 0;
  let isWriting = false;
  let isRetrying = false;
  let lost = 0;

  function holdGathered(): void {
    clearTimeout(timer);
    timer = undefined;
    if (gathered.length === 0) return;
    hold({ bytes: Buffer.from(gathered.join('')), lines: gathered.length });
    gathered = [];
    length = 0;
  }

  function hold(chunk: Chunk): void {
    if (heldBytes + chunk.bytes.length > maxHeldBytes) {
      lost += chunk.lines;
      return;
    }
    held.push(chunk);
    heldBytes += chunk.bytes.length;
  }

  function writeHeld(): void {
    const [chunk] = held;
    if (isWriting || chunk === undefined) return;
    isWriting = true;
    // In a thread: a file on a slow disk must not make calls wait.
    writeInThread(fd, chunk.bytes, (error, count) => {
      isWriting = false;
      if (isFull(error)) {
        retryLater();
        return;
      }
      // A reader that goes away must not end the service: what it does not take is gone.
      release(chunk, error === null ? count : chunk.bytes.length);
      if (held.length === 0 && lost > 0) {
        hold({ bytes: Buffer.from(lostLine(lost)), lines: 1 });
        lost = 0;
      }
      writeHeld();
    });
  }

  function retryLater(): void {
    if (isRetrying) return;
    isRetrying = true;
    setTimeout(() => {
      isRetrying = false;
      writeHeld();
    }, retryMs);
  }

  function release({ bytes, lines }: Chunk, count: number): void {
    // A flush has released it.
    if (held[0]?.bytes !== bytes) return;
    heldBytes -= count;
    if (count < bytes.length) held[0] = { bytes: bytes.subarray(count), lines };
    else held.shift();
  }

  return {
    write(line) {
      gathered.push(line);
      length += line.length;
      if (length >= gatherLength) {
        holdGathered();
        writeHeld();
      } else {
        timer ??= setTimeout(() => {
          holdGathered();
          writeHeld();
        }, gatherMs);
      }
    },
    flushSync() {
      holdGathered();
      // What a thread is writing has had its time after this, and would be written twice.
      if (isWriting) pause(retryMs);
      writeAllSync(fd, Buffer.concat(held.slice(isWriting ? 1 : 0).map(({ bytes }) => bytes)));
      held = [];
      heldBytes = 0;
    },
  };
}

function lostLine(lines: number): string {
  const line = { level: 'error', time: new Date().toISOString(), lines, msg: 'log lines lost: nobody read them' };
  return `${JSON.stringify(line)}\n`;
}

function writeAllSync(fd: number, bytes: Uint8Array): void {
  const endMs = performance.now() + flushMs;
  for (let rest = bytes; rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (!isFull(error) || performance.now() >= endMs) return;
      pause(retryMs);
    }
  }
}

// Of a pipe, which Node makes non-blocking.
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
