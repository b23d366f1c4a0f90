// One HTTP/2 connection whose every frame is made by hand, for what no client library would send. It answers nothing by itself:
// no acknowledgement, no flow control.
import { once } from 'node:events';
import { connect } from 'node:net';
import { frame, frameType } from './raw-http.ts';

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export interface Http2Connection {
  /** In the order in which they came. */
  readonly received: readonly ReceivedFrame[];
  readonly isOpen: boolean;
  /** Settles when the bytes are with the kernel, or the connection is gone. */
  write(...frames: readonly Buffer[]): Promise<void>;
  /** The first frame of this kind, waited for; undefined where the connection ends without one. */
  frameOf(isWanted: (frame: ReceivedFrame) => boolean): Promise<ReceivedFrame | undefined>;
  /** Reads nothing more: what the server sends fills the buffers of the kernel. */
  stopReading(): void;
  resumeReading(): void;
  /** Settles at the end of the connection, however it came. */
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
    for (const look of waiting) look();
  });
  // A reset is one of the ways in which a server ends what it does not want.
  socket.on('error', () => undefined);
  const closed = new Promise<void>(resolve => {
    socket.on('close', () => {
      isOpen = false;
      for (const look of waiting) look();
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
        const look = (): void => {
          const found = received.find(isWanted);
          if (found === undefined && isOpen) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    stopReading: () => socket.pause(),
    resumeReading: () => socket.resume(),
    destroy: () => socket.destroy(),
  };
}
