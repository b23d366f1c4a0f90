// Encodes a CheckRequest as Envoy 1.40 sends it, including fields that proto/ leaves out, and reads the verdict of an encoded CheckResponse.
import protobuf from 'protobufjs';

export interface CheckMessageParts {
  readonly method: string;
  readonly path: string;
  /** Without the pseudo-headers, which the encoder adds. */
  readonly headers: Readonly<Record<string, string>>;
  /** The request time, in seconds since the epoch. */
  readonly atSeconds?: number;
}

export const authority = 'api.example.com';

export function checkMessage({ method, path, headers, atSeconds = 1_795_252_428 }: CheckMessageParts): Buffer {
  const lines = Object.entries({
    ':authority': authority,
    ':method': method,
    ':path': path,
    ':scheme': 'http',
    ...headers,
  });
  // Field numbers of envoy/service/auth/v3/attribute_context.proto and envoy/config/core/v3/address.proto.
  const http = message(writer => {
    writer.uint32(tag(1)).string('3755588983843614144');
    writer.uint32(tag(2)).string(method);
    for (const [name, value] of lines)
      writer.uint32(tag(3)).bytes(message(entry => entry.uint32(tag(1)).string(name).uint32(tag(2)).string(value)));
    writer.uint32(tag(4)).string(path);
    writer.uint32(tag(5)).string(authority);
    writer.uint32(tag(6)).string('http');
    writer.uint32(tag(10)).string('HTTP/1.1');
  });
  const time = message(writer =>
    writer
      .uint32(1 << 3)
      .int64(atSeconds)
      .uint32(2 << 3)
      .int32(560_506_000),
  );
  const attributes = message(writer => {
    writer.uint32(tag(1)).bytes(peer('192.0.2.17', 41_576));
    writer.uint32(tag(2)).bytes(peer('198.51.100.4', 8080));
    writer.uint32(tag(4)).bytes(message(request => request.uint32(tag(1)).bytes(time).uint32(tag(2)).bytes(http)));
    writer.uint32(tag(11)).bytes(Buffer.alloc(0));
    writer.uint32(tag(13)).bytes(Buffer.alloc(0));
  });
  return message(writer => writer.uint32(tag(1)).bytes(attributes));
}

/** The gRPC message prefix: uncompressed flag and length. */
export function grpcFrame(bytes: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

export type CheckVerdict = 'allow' | 'deny' | 'neither';

/** Reads the oneof tag of a framed CheckResponse without decoding it. */
export function verdictOf(framed: Buffer): CheckVerdict {
  for (let at = 5; at < framed.length; ) {
    const field = framed[at];
    if (field === tag(2)) return 'deny';
    if (field === tag(3)) return 'allow';
    let length = 0;
    let shift = 0;
    let byte: number;
    do {
      byte = framed[++at] ?? 0;
      length |= (byte & 0x7f) << shift;
      shift += 7;
    } while ((byte & 0x80) !== 0);
    at += length + 1;
  }
  return 'neither';
}

function peer(address: string, port: number): Buffer {
  const socket = message(writer =>
    writer
      .uint32(tag(2))
      .string(address)
      .uint32(3 << 3)
      .uint32(port),
  );
  return message(writer => writer.uint32(tag(1)).bytes(message(inner => inner.uint32(tag(1)).bytes(socket))));
}

/** A length-delimited field (wire type 2). */
function tag(field: number): number {
  return (field << 3) | 2;
}

function message(write: (writer: protobuf.Writer) => unknown): Buffer {
  const writer = protobuf.Writer.create();
  write(writer);
  return Buffer.from(writer.finish());
}
