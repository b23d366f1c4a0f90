// The wire as types: loads proto/ and gives the two gRPC services that are spoken here, with their messages as read and written.
// Knows shapes only; what a request means is in request.ts, what an answer may say in response.ts.
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type Options } from '@grpc/proto-loader';

export interface CheckRequestMessage {
  readonly attributes: AttributeContextMessage | null;
}

export interface AttributeContextMessage {
  readonly request: RequestMessage | null;
  /** From the route in Envoy's configuration, never from the client. */
  readonly context_extensions: Readonly<Record<string, string>>;
}

export interface RequestMessage {
  readonly http: HttpRequestMessage | null;
}

export interface HttpRequestMessage {
  readonly method: string;
  /** Path and query, undecoded; empty for a CONNECT. */
  readonly path: string;
  readonly host: string;
  readonly scheme: string;
  readonly protocol: string;
  /** Empty in what Envoy sends: the query is in `path`, and a fragment never comes this far. */
  readonly query: string;
  readonly fragment: string;
  /** Filled where `encode_raw_headers` is off. An own property each, so that a header named `__proto__` is only a header. */
  readonly headers: Readonly<Record<string, string>>;
  /** Filled where `encode_raw_headers` is on, null otherwise. */
  readonly header_map: HeaderMapMessage | null;
}

export interface HeaderMapMessage {
  readonly headers: readonly HeaderValue[];
}

/** A header as Envoy shows it: the text is in `raw_value`, and `value` is empty. */
export interface HeaderValue {
  readonly key: string;
  readonly value: string;
  readonly raw_value: Buffer;
}

/** The oneof holds at most one answer; `error_response` is absent on purpose, since Envoy may turn it into an allow. */
export interface CheckResponseMessage {
  readonly status: StatusMessage;
  readonly denied_response?: DeniedHttpResponseMessage;
  readonly ok_response?: OkHttpResponseMessage;
  readonly dynamic_metadata?: StructMessage | null;
}

export interface StatusMessage {
  /** google.rpc.Code. A text would be encoded as 0, which allows. */
  readonly code: number;
}

export interface DeniedHttpResponseMessage {
  readonly status: { readonly code: number };
  readonly headers: readonly HeaderValueOption[];
  readonly body: string;
}

export interface OkHttpResponseMessage {
  readonly headers: readonly HeaderValueOption[];
  readonly headers_to_remove: readonly string[];
}

export interface HeaderValueOption {
  /** `value` alone is read: a `raw_value` would arrive as an empty header. */
  readonly header: { readonly key: string; readonly value: string };
  readonly append?: { readonly value: boolean } | null;
  readonly append_action?: number;
}

/** protobufjs knows the members of google.protobuf.Value in camelCase only, `keepCase` or not; others are dropped silently. */
export interface StructMessage {
  readonly fields: Readonly<Record<string, { readonly stringValue: string }>>;
}

/** envoy.config.core.v3.HeaderValueOption.HeaderAppendAction. */
export const headerAppendAction = {
  appendIfExistsOrAdd: 0,
  addIfAbsent: 1,
  overwriteIfExistsOrAdd: 2,
  overwriteIfExists: 3,
} as const;

export interface HealthCheckRequestMessage {
  readonly service: string;
}

export interface HealthCheckResponseMessage {
  readonly status: number;
}

/** grpc.health.v1.HealthCheckResponse.ServingStatus. */
export const servingStatus = { unknown: 0, serving: 1, notServing: 2, serviceUnknown: 3 } as const;

export interface AuthorizationService extends ServiceDefinition {
  readonly Check: MethodDefinition<CheckRequestMessage, CheckResponseMessage>;
}

export interface HealthService extends ServiceDefinition {
  readonly Check: MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage>;
  readonly Watch: MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage>;
}

/** The full name of the service that Envoy calls, which is also the name that its health is asked for. */
export const authorizationServiceName = 'envoy.service.auth.v3.Authorization';

// Of the package, seen from src/envoy/ or from the bundle in dist/. Nothing else is searched: no working directory, no environment.
const isSource = import.meta.url.endsWith('.ts');
const protoDirectory = fileURLToPath(new URL(isSource ? '../../proto/' : '../proto/', import.meta.url));

const loaderOptions: Options = {
  includeDirs: [protoDirectory],
  keepCase: true,
  longs: String,
  // `enums` is not set, so that an enum is a number when read as it is when written. With `enums: String` the words of a
  // message read could be written back, and a misspelt word is encoded as 0: "append", or an HTTP status that is none.
  defaults: true,
};

const definitions = loadSync(
  ['envoy/service/auth/v3/external_auth.proto', 'grpc/health/v1/health.proto'],
  loaderOptions,
);

export const authorizationService = serviceDefinition<AuthorizationService>(authorizationServiceName);
export const healthService = serviceDefinition<HealthService>('grpc.health.v1.Health');

// The one place where the shapes above are claimed for what proto/ describes; test/envoy/protocol.test.ts holds the claim.
function serviceDefinition<Service extends ServiceDefinition>(name: string): Service {
  const definition = definitions[name];
  if (definition === undefined || 'format' in definition) throw new Error(`proto/ has no service ${name}`);
  return definition as unknown as Service;
}
