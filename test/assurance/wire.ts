// Encodes and decodes the gRPC messages of a check with @grpc/proto-loader over proto/, independent of the product's own codec.
import { fileURLToPath } from 'node:url';
import type { MethodDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Answer } from './oracle/answer.ts';
import type { CheckMessage } from './oracle/message.ts';

const definitions = loadSync('envoy/service/auth/v3/external_auth.proto', {
  includeDirs: [fileURLToPath(new URL('../../proto/', import.meta.url))],
  keepCase: true,
  longs: String,
  defaults: true,
  arrays: true,
  oneofs: true,
});
const check = checkMethod();

export function requestBytes(message: CheckMessage): Buffer {
  return check.requestSerialize(message);
}

/** Throws if the bytes are not a CheckResponse, or contain a field that no answer of ours has. */
export function readAnswer(bytes: Buffer): Answer {
  refuseOtherFields(bytes, answerFields);
  const answer = check.responseDeserialize(bytes);
  const { ok_response = null, denied_response = null, error_response = null } = answer;
  return { ...answer, ok_response, denied_response, error_response };
}

function checkMethod(): MethodDefinition<CheckMessage, Answer> {
  const service = definitions['envoy.service.auth.v3.Authorization'];
  if (service === undefined || 'format' in service || service.Check === undefined)
    throw new Error('proto/ has no Check');
  return service.Check as unknown as MethodDefinition<CheckMessage, Answer>;
}

interface KnownFields {
  readonly [number: number]: KnownFields | 'any';
}

// proto-loader silently drops unknown fields, which Envoy may know: an error_response, a body to set, a new field.
const headerOption: KnownFields = { 1: { 1: 'any', 2: 'any' }, 2: 'any', 3: 'any' };
const answerFields: KnownFields = {
  1: { 1: 'any' },
  2: { 1: { 1: 'any' }, 2: headerOption, 3: 'any' },
  3: { 2: headerOption, 5: 'any' },
  4: 'any',
};

function refuseOtherFields(bytes: Buffer, known: KnownFields): void {
  for (const { number, value } of fieldsOf(bytes)) {
    const inside = known[number];
    if (inside === undefined) throw new Error(`a field ${number} that no answer of ours has`);
    if (inside !== 'any') refuseOtherFields(value, inside);
  }
}

/** The fields of an encoded message in order, with the bytes of length-delimited ones. */
function fieldsOf(bytes: Buffer): { readonly number: number; readonly value: Buffer }[] {
  const fields: { number: number; value: Buffer }[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = tag >>> 3;
    switch (tag & 7) {
      case 0:
        fields.push({ number, value: Buffer.alloc(0) });
        varint();
        break;
      case 2: {
        const length = varint();
        fields.push({ number, value: bytes.subarray(at, at + length) });
        at += length;
        break;
      }
      default:
        throw new Error(`a field of wire type ${tag & 7}`);
    }
  }
  return fields;
}
