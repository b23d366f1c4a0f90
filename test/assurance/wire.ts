// Encodes and decodes the gRPC messages of a check with @grpc/proto-loader over proto/, independent of the product's own codec.
import { fileURLToPath } from 'node:url';
import type { MethodDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Answer } from './oracle/answer.ts';
import type { CheckMessage } from './oracle/message.ts';
import { fieldsOf } from './oracle/request-bytes.ts';

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

function refuseOtherFields(message: Buffer, known: KnownFields): void {
  for (const { number, bytes } of fieldsOf(message)) {
    const inside = known[number];
    if (inside === undefined) throw new Error(`a field ${number} that no answer of ours has`);
    if (inside !== 'any') refuseOtherFields(bytes ?? Buffer.alloc(0), inside);
  }
}
