// One HTTP/2 connection with hand-made frames, for what no client library would send. It sends no acknowledgement and no window update
// by itself.
import { once } from 'node:events';
import { connect } from 'node:net';
import { frame, frameType } from './raw-http2.ts';

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export interface Http2Connection {
  /** In order of arrival. */
  readonly received: readonly ReceivedFrame[];
  readonly isOpen: boolean;
  /** Settles when the kernel has the bytes or the connection is closed. */
  write(...frames: readonly Buffer[]): Promise<void>;
  /** Waits for the first frame of this type; undefined when the connection closes without one. */
  frameOf(isWanted: (frame: ReceivedFrame) => boolean): Promise<ReceivedFrame | undefined>;
  /** Stops reading, so that the kernel's receive buffer fills. */
  stopReading(): void;
  resumeReading(): void;
  /** Settles when the connection is closed, whether or not by a reset. */
  readonly closed: Promise<void>;
  destroy(): void;
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** `settings` is the payload of the first SETTINGS frame; `silent` sends nothing at all. */
export async function openHttp2Connection(
  port: number,
  { settings = Buffer.alloc(0), silent = false }: { readonly settings?: Buffer; readonly silent?: boolean } = {},
): Promise<Http2Connection> {
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  const received: ReceivedFrame[] = [];
  const waiting = new Set<() => void>();
  let isOpen = true;
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3);
      received.push({
        type: rest.readUInt8(3),
        flags: rest.readUInt8(4),
        stream: rest.readUInt32BE(5) & 0x7fffffff,
        payload: rest.subarray(9, end),
      });
      rest = rest.subarray(end);
    }
    for (const check of waiting) check();
  });
  // A server may end an unwanted connection with a reset.
  socket.on('error', () => undefined);
  const closed = new Promise<void>(resolve => {
    socket.on('close', () => {
      isOpen = false;
      for (const check of waiting) check();
      resolve();
    });
  });
  const write = (bytes: Buffer): Promise<void> =>
    new Promise(resolve => {
      if (isOpen) socket.write(bytes, () => resolve());
      else resolve();
    });
  if (!silent) await write(Buffer.concat([preface, frame(frameType.settings, 0, 0, settings)]));
  return {
    received,
    closed,
    get isOpen() {
      return isOpen;
    },
    write: (...frames) => write(Buffer.concat(frames)),
    frameOf: isWanted =>
      new Promise(resolve => {
        const check = (): void => {
          const found = received.find(isWanted);
          if (found === undefined && isOpen) return;
          waiting.delete(check);
          resolve(found);
        };
        waiting.add(check);
        check();
      }),
    stopReading: () => socket.pause(),
    resumeReading: () => socket.resume(),
    destroy: () => socket.destroy(),
  };
}
