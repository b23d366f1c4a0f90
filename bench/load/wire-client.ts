// A minimal HTTP/2 client, so cheap per call that a server on its own core is the bottleneck and not the load: requests
// are encoded beforehand; of an answer only the end, the first status byte and the message are read.
// Only for servers of this bench on loopback.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** On 127.0.0.1. */
export interface WireTarget {
  readonly port: number;
  /** A Unix socket in the place of the port. */
  readonly socketPath?: string;
  /** Certificates of both sides, as PEM. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string; readonly servername: string };
}

/** A pre-encoded request for any connection. */
export interface WireRequest {
  /** Header blocks around the shared one: pseudo-headers come first (RFC 9113 section 8.3). May be empty. */
  readonly before: Buffer;
  readonly after: Buffer;
  /** With the gRPC prefix; undefined for a request without a body. */
  readonly body: Buffer | undefined;
}

export interface WireAnswer {
  /** First byte of the first header block: 0x88 is `:status: 200` (RFC 7541, static table), on every server. */
  readonly statusByte: number;
  /** Payload of the DATA frames; valid only during the callback. */
  readonly message: Buffer | undefined;
  /** False if the stream was reset or the connection was closed. */
  readonly isComplete: boolean;
}

export interface WireClient {
  /** Sends on the connection with this number; the answer carries the same `tag`. */
  send(connection: number, request: WireRequest, tag: number): void;
  close(): Promise<void>;
}

export interface WireClientOptions {
  readonly target: WireTarget;
  readonly connections: number;
  readonly shared: { readonly first: Buffer; readonly later: Buffer };
  onAnswer(tag: number, answer: WireAnswer, connection: number): void;
  /** Called when a connection is closed by the server. */
  onFault(error: Error): void;
}

const frameHeaderBytes = 9;
const frame = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 } as const;
const flag = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8 } as const;
const settingInitialWindow = 4;
// The default maximum frame size, which every peer accepts (RFC 9113 section 4.2).
const maxFrameBytes = 16_384;
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const receiveWindow = 0x3fff_ffff;

export async function connectWire(options: WireClientOptions): Promise<WireClient> {
  const connections = await Promise.all(
    Array.from({ length: options.connections }, (_, index) => connectOne(options, index)),
  );
  return {
    send: (connection, request, tag) => connections[connection]?.send(request, tag),
    async close() {
      await Promise.all(connections.map(connection => connection.close()));
    },
  };
}

interface Stream {
  readonly tag: number;
  statusByte: number;
  message: Buffer | undefined;
}

interface Connection {
  send(request: WireRequest, tag: number): void;
  close(): Promise<void>;
}

async function connectOne(options: WireClientOptions, index: number): Promise<Connection> {
  const { shared } = options;
  const { port, socketPath, tls } = options.target;
  const plain = socketPath === undefined ? connect(port, '127.0.0.1') : connect(socketPath);
  const socket: Socket = tls === undefined ? plain : connectTls({ socket: plain, ALPNProtocols: ['h2'], ...tls });
  await once(socket, tls === undefined ? 'connect' : 'secureConnect');
  socket.setNoDelay(true);

  const streams = new Map<number, Stream>();
  let nextStream = 1;
  // The connection's send window (RFC 9113 section 6.9); requests are far below a stream's window.
  let sendWindow = 65_535;
  const queued: { request: WireRequest; tag: number }[] = [];
  let unreported = 0;
  let closing = false;
  let out: Buffer[] = [];
  let flushing = false;
  let rest: Buffer | undefined;

  const flush = (): void => {
    flushing = false;
    const bytes = out.length === 1 ? out[0] : Buffer.concat(out);
    out = [];
    if (bytes !== undefined && !socket.destroyed) socket.write(bytes);
  };

  function push(bytes: Buffer): void {
    out.push(bytes);
    if (flushing) return;
    flushing = true;
    // Batches the requests that this turn's answers triggered into one write.
    queueMicrotask(flush);
  }

  function send(request: WireRequest, tag: number): void {
    // The fault has been reported; later writes have no receiver.
    if (closing) return;
    if (queued.length > 0 || (request.body !== undefined && request.body.length > sendWindow))
      queued.push({ request, tag });
    else write(request, tag);
  }

  function write({ before, after, body }: WireRequest, tag: number): void {
    const id = nextStream;
    nextStream += 2;
    streams.set(id, { tag, statusByte: 0, message: undefined });
    const block = id === 1 ? shared.first : shared.later;
    const blockLength = before.length + block.length + after.length;
    const bodyFrames = body === undefined ? 0 : Math.max(1, Math.ceil(body.length / maxFrameBytes));
    const bytes = Buffer.allocUnsafe(
      frameHeaderBytes + blockLength + bodyFrames * frameHeaderBytes + (body?.length ?? 0),
    );
    frameHeader(bytes, 0, blockLength, frame.headers, flag.endHeaders | (body === undefined ? flag.endStream : 0), id);
    before.copy(bytes, frameHeaderBytes);
    block.copy(bytes, frameHeaderBytes + before.length);
    after.copy(bytes, frameHeaderBytes + before.length + block.length);
    if (body !== undefined) {
      let at = frameHeaderBytes + blockLength;
      for (let index = 0; index < bodyFrames; index++) {
        const part = body.subarray(index * maxFrameBytes, (index + 1) * maxFrameBytes);
        frameHeader(bytes, at, part.length, frame.data, index === bodyFrames - 1 ? flag.endStream : 0, id);
        part.copy(bytes, at + frameHeaderBytes);
        at += frameHeaderBytes + part.length;
      }
      sendWindow -= body.length;
    }
    push(bytes);
  }

  function sendQueued(): void {
    for (;;) {
      const next = queued[0];
      if (next === undefined || (next.request.body?.length ?? 0) > sendWindow) return;
      queued.shift();
      write(next.request, next.tag);
    }
  }

  function end(id: number, stream: Stream, isComplete: boolean): void {
    streams.delete(id);
    options.onAnswer(stream.tag, { statusByte: stream.statusByte, message: stream.message, isComplete }, index);
  }

  function receive(bytes: Buffer, at: number, length: number): void {
    const type = bytes[at + 3] ?? 0;
    const flags = bytes[at + 4] ?? 0;
    const id = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    const from = at + frameHeaderBytes;
    switch (type) {
      case frame.data: {
        unreported += length;
        if (unreported > receiveWindow / 2) {
          push(windowUpdate(unreported));
          unreported = 0;
        }
        const stream = streams.get(id);
        if (stream === undefined) return;
        const padding = (flags & flag.padded) === 0 ? 0 : (bytes[from] ?? 0) + 1;
        const payload = bytes.subarray(padding === 0 ? from : from + 1, from + length - Math.max(0, padding - 1));
        stream.message = stream.message === undefined ? payload : Buffer.concat([stream.message, payload]);
        if ((flags & flag.endStream) !== 0) end(id, stream, true);
        return;
      }
      case frame.headers: {
        const stream = streams.get(id);
        if (stream === undefined) return;
        if (stream.statusByte === 0) {
          // A dynamic table size update may come first (RFC 7541 section 6.3): one octet, since the sizes here are small or the default.
          let first = from;
          while (((bytes[first] ?? 0) & 0xe0) === 0x20) first += afterInteger(bytes, first);
          stream.statusByte = bytes[first] ?? 0;
        }
        if ((flags & flag.endStream) !== 0) end(id, stream, true);
        return;
      }
      case frame.reset: {
        const stream = streams.get(id);
        if (stream !== undefined) end(id, stream, false);
        return;
      }
      case frame.settings:
        if ((flags & flag.ack) !== 0) return;
        for (let entry = from; entry + 6 <= from + length; entry += 6) {
          if (bytes.readUInt16BE(entry) === settingInitialWindow && bytes.readUInt32BE(entry + 2) < 16_384)
            fail(new Error('the server takes less than a request on a stream'));
        }
        push(settingsAck);
        return;
      case frame.ping:
        if ((flags & flag.ack) !== 0) return;
        push(pingAck(bytes.subarray(from, from + length)));
        return;
      case frame.goaway:
        if (!closing) fail(new Error(`the server has said GOAWAY, code ${bytes.readUInt32BE(from + 4)}`));
        return;
      case frame.windowUpdate:
        if (id === 0) {
          sendWindow += bytes.readUInt32BE(from) & 0x7fff_ffff;
          sendQueued();
        }
        return;
    }
  }

  function fail(error: Error): void {
    if (closing) return;
    closing = true;
    socket.destroy();
    options.onFault(error);
    for (const [id, stream] of [...streams]) end(id, stream, false);
  }

  socket.on('data', chunk => {
    const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (bytes.length - at >= frameHeaderBytes) {
      const length = bytes.readUIntBE(at, 3);
      if (bytes.length - at < frameHeaderBytes + length) break;
      receive(bytes, at, length);
      at += frameHeaderBytes + length;
    }
    rest = at === bytes.length ? undefined : bytes.subarray(at);
  });
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('the server has closed the connection')));

  push(preface);
  push(ourSettings);
  push(windowUpdate(receiveWindow));
  return {
    send,
    async close() {
      if (closing) return;
      closing = true;
      const closed = once(socket, 'close');
      socket.destroy();
      await closed;
    },
  };
}

// ENABLE_PUSH 0, as Envoy's client sends; defaults for the rest.
const ourSettings = Buffer.of(0, 0, 6, frame.settings, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0);
const settingsAck = Buffer.of(0, 0, 0, frame.settings, flag.ack, 0, 0, 0, 0);

function windowUpdate(increment: number): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + 4);
  frameHeader(bytes, 0, 4, frame.windowUpdate, 0, 0);
  bytes.writeUInt32BE(increment, frameHeaderBytes);
  return bytes;
}

function pingAck(payload: Buffer): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + payload.length);
  frameHeader(bytes, 0, payload.length, frame.ping, flag.ack, 0);
  payload.copy(bytes, frameHeaderBytes);
  return bytes;
}

function frameHeader(bytes: Buffer, at: number, length: number, type: number, flags: number, id: number): void {
  bytes.writeUIntBE(length, at, 3);
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  bytes.writeUInt32BE(id, at + 5);
}

function afterInteger(bytes: Buffer, at: number): number {
  if (((bytes[at] ?? 0) & 0x1f) !== 0x1f) return 1;
  let length = 2;
  while (((bytes[at + length - 1] ?? 0) & 0x80) !== 0) length++;
  return length;
}
