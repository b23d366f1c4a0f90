// The health service as it is spoken here, by the server and by the `health` command: the path of each method, and what reads and writes
// its messages.
import type { MethodDefinition } from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';
import { type HealthCheckRequestMessage, type HealthCheckResponseMessage, healthServiceName } from './protocol.ts';

function healthMethod(
  name: string,
  responseStream: boolean,
): MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage> {
  return {
    path: `/${healthServiceName}/${name}`,
    requestStream: false,
    responseStream,
    requestSerialize: ({ service }) => finish(protobuf.Writer.create().uint32(serviceTag).string(service)),
    requestDeserialize: bytes => ({ service: lastOf(bytes, serviceTag, reader => reader.string()) ?? '' }),
    responseSerialize: ({ status }) => finish(protobuf.Writer.create().uint32(statusTag).int32(status)),
    responseDeserialize: bytes => ({ status: lastOf(bytes, statusTag, reader => reader.int32()) ?? 0 }),
  };
}

// proto/grpc/health/v1/health.proto: the one field of each message.
const serviceTag = (1 << 3) | 2;
const statusTag = 1 << 3;

export const healthMethods = { Check: healthMethod('Check', false), Watch: healthMethod('Watch', true) };

/** What stands there last, as proto3 asks for; what else there is is skipped. Throws where the bytes are no message. */
function lastOf<Value>(bytes: Buffer, wanted: number, read: (reader: protobuf.Reader) => Value): Value | undefined {
  const reader = protobuf.Reader.create(bytes);
  let value: Value | undefined;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === wanted) value = read(reader);
    else reader.skipType(tag & 7);
  }
  return value;
}

function finish(writer: protobuf.Writer): Buffer {
  return Buffer.from(writer.finish());
}
