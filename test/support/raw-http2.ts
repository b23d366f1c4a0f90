// An HTTP/2 client that writes its own frames, with header fields exactly as given, which no client library would send.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { answerTimeoutMs, type HeaderField, type HttpAnswer, showRefusal } from '../../lab/raw-http.ts';

/**
 * One HTTP/2 request whose header fields are written as given: repeated names, upper case, any pseudo header, in any order.
 * Only the status and the body of the answer are read.
 */
export async function rawHttp2Exchange(
  port: number,
  fields: readonly HeaderField[],
): Promise<Pick<HttpAnswer, 'status' | 'body'>> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
    socket.write(frame(frameType.settings, 0, 0, Buffer.alloc(0)));
    socket.write(frame(frameType.headers, flagEndHeaders | flagEndStream, 1, headerBlock(fields)));
    const answer = await readHttp2Answer(socket);
    showRefusal({ ...answer, headers: [] });
    return answer;
  } finally {
    socket.destroy();
  }
}

// RFC 9113 section 6.
export const frameType = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
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

function readHttp2Answer(socket: Socket): Promise<Pick<HttpAnswer, 'status' | 'body'>> {
  let received = Buffer.alloc(0);
  let status = 0;
  let body = '';
  socket.setTimeout(answerTimeoutMs, () => socket.destroy(new Error(`no answer within ${answerTimeoutMs} ms`)));
  return new Promise((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 9 && received.length >= 9 + received.readUIntBE(0, 3)) {
        const length = received.readUIntBE(0, 3);
        const type = received.readUInt8(3);
        const flags = received.readUInt8(4);
        const payload = received.subarray(9, 9 + length);
        received = received.subarray(9 + length);
        if (type === frameType.headers && status === 0) status = hpackStatus(payload);
        if (type === frameType.data) body += payload.toString('utf8');
        const last = (type === frameType.headers || type === frameType.data) && (flags & flagEndStream) !== 0;
        if (last || type === frameType.rstStream || type === frameType.goaway) resolve({ status, body });
      }
    });
    socket.on('close', () => resolve({ status, body }));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve({ status, body }) : reject(error),
    );
  });
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
