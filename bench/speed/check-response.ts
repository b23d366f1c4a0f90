// Decodes a CheckResponse for the preflight checks; by the .proto files alone, so that it is independent of the measured code.
import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';
import { projectDirectory } from './lab.ts';

export interface DecodedAnswer {
  readonly status: { readonly code: number } | null;
  readonly denied_response?: { readonly status: { readonly code: number } | null };
  readonly ok_response?: {
    readonly headers: readonly DecodedHeader[];
    readonly headers_to_remove: readonly string[];
  };
  readonly dynamic_metadata: unknown;
}

interface DecodedHeader {
  readonly header: { readonly key: string; readonly value: string } | null;
}

const definitions = loadSync('envoy/service/auth/v3/external_auth.proto', {
  includeDirs: [join(projectDirectory, 'proto')],
  keepCase: true,
  longs: String,
  defaults: true,
});

/** Of the bytes without the gRPC prefix. */
export function decodeAnswer(bytes: Buffer): DecodedAnswer {
  const service = definitions['envoy.service.auth.v3.Authorization'];
  if (service === undefined || 'format' in service || service.Check === undefined)
    throw new Error('proto/ has no Authorization service');
  return service.Check.responseDeserialize(bytes) as DecodedAnswer;
}

/** 200 for an allow, else the status of the refusal. */
export function httpStatusOf(answer: DecodedAnswer): number {
  return answer.ok_response === undefined || answer.ok_response === null
    ? (answer.denied_response?.status?.code ?? 0)
    : 200;
}

export function headerOf(answer: DecodedAnswer, name: string): string | undefined {
  return answer.ok_response?.headers.find(({ header }) => header?.key === name)?.header?.value;
}
