// Which blocks of the product and of its parsers ran, as V8 counts them.
import { Session } from 'node:inspector';

export interface Coverage {
  /** The blocks that ran since the last look. It takes some milliseconds. */
  look(): ReadonlySet<string>;
  stop(): void;
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

const watched = /^(?!.*\/node_modules\/).*\/src\/|\/node_modules\/(?:yaml|protobufjs)\//;

export function startCoverage(): Coverage {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return {
    look() {
      const blocks = new Set<string>();
      // The session is of this very thread: it answers before `post` returns.
      session.post('Profiler.takePreciseCoverage', (error, answer) => {
        if (error !== null) throw error;
        for (const { scriptId, url, functions } of answer.result) {
          if (!watched.test(url)) continue;
          for (const { ranges } of functions) for (const range of ranges) note(blocks, scriptId, range);
        }
      });
      return blocks;
    },
    stop: () => session.disconnect(),
  };
}

function note(blocks: Set<string>, scriptId: string, { startOffset, endOffset, count }: Range): void {
  if (count > 0) blocks.add(`${scriptId}:${startOffset}:${endOffset}`);
}
