// Which blocks of the product and of its parsers ran, as V8 counts them: tells whether an input did what none did before.
import { Session } from 'node:inspector';

export interface Coverage {
  /** Whether anything ran since the last time that never ran so often. */
  isNew(): boolean;
  /** Blocks seen so far, each in every magnitude of its count. */
  size(): number;
  stop(): void;
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

const watched = /\/src\/(?!config\/schema\.ts)|\/node_modules\/(?:yaml|protobufjs|@protobufjs)\//;

export function startCoverage(): Coverage {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const seen = new Set<string>();

  function take(): boolean {
    const before = seen.size;
    // The session is of this very thread: it answers before `post` returns.
    session.post('Profiler.takePreciseCoverage', (error, answer) => {
      if (error !== null) throw error;
      for (const { scriptId, url, functions } of answer.result) {
        if (!watched.test(url)) continue;
        for (const { ranges } of functions) for (const range of ranges) note(scriptId, range);
      }
    });
    return seen.size > before;
  }

  function note(scriptId: string, { startOffset, endOffset, count }: Range): void {
    if (count > 0) seen.add(`${scriptId}:${startOffset}:${endOffset}:${magnitude(count)}`);
  }

  return {
    isNew: take,
    size: () => seen.size,
    stop: () => session.disconnect(),
  };
}

// Once, a few times, often: how often exactly says little.
function magnitude(count: number): number {
  return count < 4 ? count : Math.floor(Math.log2(count)) + 2;
}
