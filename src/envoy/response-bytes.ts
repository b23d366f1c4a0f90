// CheckResponse → its bytes: the only writer of what Envoy reads. test/envoy/response-bytes.test.ts holds it against proto/.
import protobuf from 'protobufjs/minimal.js';
import type {
  CheckResponseMessage,
  DeniedHttpResponseMessage,
  HeaderValueOption,
  OkHttpResponseMessage,
  StructMessage,
} from './protocol.ts';

type Writer = protobuf.Writer;

// Field numbers of proto/envoy/service/auth/v3/external_auth.proto, proto/envoy/config/core/v3/base.proto,
// proto/envoy/type/v3/http_status.proto, proto/google/rpc/status.proto and google/protobuf/struct.proto and wrappers.proto.
const numberTag = (fieldNumber: number): number => fieldNumber << 3;
const bytesTag = (fieldNumber: number): number => (fieldNumber << 3) | 2;

/** Every member that is there is written, also one with the default of its type. */
export function encodeCheckResponse(response: CheckResponseMessage): Buffer {
  const { status, denied_response, ok_response, dynamic_metadata } = response;
  const writer = protobuf.Writer.create();
  nest(writer, 1, () => writer.uint32(numberTag(1)).int32(status.code));
  if (denied_response !== undefined) nest(writer, 2, () => writeDenied(writer, denied_response));
  if (ok_response !== undefined) nest(writer, 3, () => writeOk(writer, ok_response));
  if (dynamic_metadata) nest(writer, 4, () => writeStruct(writer, dynamic_metadata));
  return Buffer.from(writer.finish());
}

function writeDenied(writer: Writer, { status, headers, body }: DeniedHttpResponseMessage): void {
  nest(writer, 1, () => writer.uint32(numberTag(1)).int32(status.code));
  for (const header of headers) nest(writer, 2, () => writeHeader(writer, header));
  writer.uint32(bytesTag(3)).string(body);
}

function writeOk(writer: Writer, { headers, headers_to_remove }: OkHttpResponseMessage): void {
  for (const header of headers) nest(writer, 2, () => writeHeader(writer, header));
  for (const name of headers_to_remove) writer.uint32(bytesTag(5)).string(name);
}

function writeHeader(writer: Writer, { header, append, append_action }: HeaderValueOption): void {
  nest(writer, 1, () => writer.uint32(bytesTag(1)).string(header.key).uint32(bytesTag(2)).string(header.value));
  if (append) nest(writer, 2, () => writer.uint32(numberTag(1)).bool(append.value));
  if (append_action !== undefined) writer.uint32(numberTag(3)).int32(append_action);
}

function writeStruct(writer: Writer, { fields }: StructMessage): void {
  for (const [name, { stringValue }] of Object.entries(fields)) {
    nest(writer, 1, () => {
      writer.uint32(bytesTag(1)).string(name);
      nest(writer, 2, () => writer.uint32(bytesTag(3)).string(stringValue));
    });
  }
}

/** A message as a field of another: its length goes before it, which is known when it is written. */
function nest(writer: Writer, fieldNumber: number, write: () => void): void {
  writer.uint32(bytesTag(fieldNumber)).fork();
  write();
  writer.ldelim();
}
