// Block coverage of the product and of its parsers, from V8.
import { Session } from 'node:inspector';

export interface Coverage {
  /** The blocks that ran since the last call. Takes some milliseconds. */
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
      // The session inspects its own thread, so `post` calls back before it returns.
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
