// Bounds the file operations in flight. On a hung mount, each holds a thread of Node's pool, which checks signatures too.
import { dirname } from 'node:path';

/** Each on another directory: a hung one leaves a slot for the others. Node's pool has four threads by default. */
const maxInFlight = 2;

interface Waiting {
  readonly directory: string;
  begin(): void;
}

const inFlight = new Set<string>();
const waiting: Waiting[] = [];

/** Runs `work` once no other work on this file's directory is in flight. `work` must not take a slot itself. */
export async function withFileSlot<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  const directory = dirname(file);
  await new Promise<void>(begin => {
    waiting.push({ directory, begin });
    beginNext();
  });
  try {
    return await work();
  } finally {
    inFlight.delete(directory);
    beginNext();
  }
}

function beginNext(): void {
  if (inFlight.size >= maxInFlight) return;
  const at = waiting.findIndex(({ directory }) => !inFlight.has(directory));
  const [next] = at < 0 ? [] : waiting.splice(at, 1);
  if (next === undefined) return;
  inFlight.add(next.directory);
  next.begin();
}
