// HTTP/2 connections with hand-made frames, and header fields exactly as given, for what no client library would send.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { answerTimeoutMs, type HeaderField, type HttpAnswer, showRefusal } from '../../lab/raw-http.ts';

// RFC 9113 section 6.
export const frameType = { data: 0, headers: 1, rstStream: 3, settings: 4, goaway: 7, continuation: 9 } as const;
export const flagEndStream = 0x1;
export const flagEndHeaders = 0x4;

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Literal fields without indexing and with literal names (RFC 7541 section 6.2.2). */
export function headerBlock(fields: readonly HeaderField[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), hpackString(name), hpackString(value)]));
}

// A string literal without Huffman coding (RFC 7541 section 5.2).
function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export type Http2Connection = Awaited<ReturnType<typeof openHttp2Connection>>;

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** It sends no acknowledgement and no window update by itself; with `silent` nothing at all. */
export async function openHttp2Connection(port: number, { silent = false }: { readonly silent?: boolean } = {}) {
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
  if (!silent) await write(Buffer.concat([preface, frame(frameType.settings, 0, 0, Buffer.alloc(0))]));
  return {
    received,
    closed,
    get isOpen() {
      return isOpen;
    },
    /** Settles when the kernel has the bytes or the connection is closed. */
    write: (...frames: readonly Buffer[]) => write(Buffer.concat(frames)),
    /** Waits for the first frame of this type; undefined when the connection closes without one. */
    frameOf: (isWanted: (frame: ReceivedFrame) => boolean) =>
      new Promise<ReceivedFrame | undefined>(resolve => {
        const check = (): void => {
          const found = received.find(isWanted);
          if (found === undefined && isOpen) return;
          waiting.delete(check);
          resolve(found);
        };
        waiting.add(check);
        check();
      }),
    destroy: () => socket.destroy(),
  };
}

/**
 * One HTTP/2 request whose header fields are written as given: repeated names, upper case, any pseudo header, in any order.
 * Only the status and the body of the answer are read.
 */
export async function rawHttp2Exchange(
  port: number,
  fields: readonly HeaderField[],
): Promise<Pick<HttpAnswer, 'status' | 'body'>> {
  const connection = await openHttp2Connection(port);
  const isLast = ({ type, flags }: ReceivedFrame): boolean =>
    type === frameType.rstStream ||
    type === frameType.goaway ||
    ((type === frameType.headers || type === frameType.data) && (flags & flagEndStream) !== 0);
  try {
    await connection.write(frame(frameType.headers, flagEndHeaders | flagEndStream, 1, headerBlock(fields)));
    await Promise.race([connection.frameOf(isLast), timeout()]);
    const payloads = (type: number) => connection.received.filter(each => each.type === type).map(each => each.payload);
    const [head] = payloads(frameType.headers);
    const body = Buffer.concat(payloads(frameType.data)).toString('utf8');
    const answer = { status: head === undefined ? 0 : hpackStatus(head), body };
    showRefusal({ ...answer, headers: [] });
    return answer;
  } finally {
    connection.destroy();
  }
}

async function timeout(): Promise<never> {
  await delay(answerTimeoutMs, undefined, { ref: false });
  throw new Error(`no answer within ${answerTimeoutMs} ms`);
}

const staticStatus = new Map([
  [8, 200],
  [9, 204],
  [10, 206],
  [11, 304],
  [12, 400],
  [13, 404],
  [14, 500],
]);

// `:status` comes first in an answer: an indexed field, or a literal with an indexed name (RFC 7541 appendix A).
function hpackStatus(block: Buffer): number {
  const first = block.readUInt8(0);
  if (first >= 0x80) return staticStatus.get(first & 0x7f) ?? Number.NaN;
  const length = block.readUInt8(1);
  const value = block.subarray(2, 2 + (length & 0x7f));
  return Number(length >= 0x80 ? huffmanDigits(value) : value.toString('latin1'));
}

// RFC 7541 appendix B, digits only: 0, 1 and 2 have five bits, the others six.
function huffmanDigits(bytes: Buffer): string {
  const bits = Array.from(bytes, byte => byte.toString(2).padStart(8, '0')).join('');
  let digits = '';
  let at = 0;
  while (at + 5 <= bits.length) {
    const five = Number.parseInt(bits.slice(at, at + 5), 2);
    const six = Number.parseInt(bits.slice(at, at + 6), 2);
    if (five <= 2) {
      digits += five;
      at += 5;
    } else if (six >= 0b011001 && six <= 0b011111) {
      digits += six - 0b011001 + 3;
      at += 6;
    } else break;
  }
  return digits;
}
