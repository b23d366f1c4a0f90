// Standard output for the log: lines that come within a few milliseconds are written together, since a write of its own for each
// costs about a third of a whole check (docs/performance.md). What the reader of the log does not take in is bounded.
import { type DestinationStream, pino } from 'pino';

/** How long a line may wait for others, in milliseconds. */
const gatherMs = 10;
/** Text gathered beyond this is written at once, in characters. */
const gatherLength = 64 * 1024;
/** Text held for a reader that has stopped reading, in bytes; beyond it lines are lost, and a line says how many. */
const defaultMaxHeldBytes = 16 * 1024 * 1024;

export interface LogDestination extends DestinationStream {
  /** Before the process ends. */
  flushSync(): void;
}

export function openLogDestination({ fd = 1, maxHeldBytes = defaultMaxHeldBytes } = {}): LogDestination {
  const output = pino.destination({ dest: fd, sync: false, maxLength: maxHeldBytes });
  // A reader of the log that goes away must not end the service.
  output.on('error', () => undefined);
  let gathered: string[] = [];
  let length = 0;
  let timer: NodeJS.Timeout | undefined;
  let lost = 0;

  output.on('drop', (text: string) => {
    lost += text.split('\n').length - 1;
  });

  function writeGathered(): void {
    clearTimeout(timer);
    timer = undefined;
    if (gathered.length === 0) return;
    const text = gathered.join('');
    gathered = [];
    length = 0;
    output.write(text);
  }

  output.on('drain', () => {
    if (lost === 0) return;
    const line = {
      level: 'error',
      time: new Date().toISOString(),
      lines: lost,
      msg: 'log lines lost: nobody read them',
    };
    lost = 0;
    output.write(`${JSON.stringify(line)}\n`);
  });

  return {
    write(line) {
      gathered.push(line);
      length += line.length;
      if (length >= gatherLength) writeGathered();
      else timer ??= setTimeout(writeGathered, gatherMs);
    },
    flushSync() {
      writeGathered();
      output.flushSync();
    },
  };
}
