// Types of the messages of the two gRPC services, as @grpc/proto-loader reads and writes them.
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import services from '../../proto/services.json' with { type: 'json' };

export interface CheckRequestMessage {
  readonly attributes: {
    /** `certificate` is filled with `include_peer_certificate`, where the client presents one: PEM, percent-encoded. */
    readonly source?: { readonly certificate: string } | null;
    readonly request: { readonly http: HttpRequestMessage | null } | null;
    /** From the route of Envoy's configuration, never from the client. */
    readonly context_extensions: Readonly<Record<string, string>>;
  } | null;
}

export interface HttpRequestMessage {
  readonly method: string;
  /** Path and query, undecoded; empty for a CONNECT. */
  readonly path: string;
  readonly host: string;
  readonly scheme: string;
  readonly protocol: string;
  /** Envoy leaves it empty: `path` contains the query, and clients send no fragment. */
  readonly query: string;
  readonly fragment: string;
  /** Filled with `encode_raw_headers` off. Own properties only, so that a header named `__proto__` is only a header. */
  readonly headers: Readonly<Record<string, string>>;
  /** Filled with `encode_raw_headers` on, null otherwise. */
  readonly header_map: { readonly headers: readonly HeaderValue[] } | null;
}

/** A header as Envoy sends it: the text is in `raw_value`, and `value` is empty. */
export interface HeaderValue {
  readonly key: string;
  readonly value: string;
  readonly raw_value: Buffer;
}

/** Omits `error_response` on purpose, since Envoy may turn it into an allow. */
export interface CheckResponseMessage {
  /** google.rpc.Code. A text would be encoded as 0, which is an allow. */
  readonly status: { readonly code: number };
  readonly denied_response?: {
    readonly status: { readonly code: number };
    readonly headers: readonly HeaderValueOption[];
    readonly body: string;
  };
  readonly ok_response?: {
    readonly headers: readonly HeaderValueOption[];
    readonly headers_to_remove: readonly string[];
  };
  readonly dynamic_metadata?: StructMessage | null;
}

export interface HeaderValueOption {
  /** Envoy reads `value` only: a `raw_value` would arrive as an empty header. */
  readonly header: { readonly key: string; readonly value: string };
  readonly append?: { readonly value: boolean } | null;
  readonly append_action?: number;
}

/** protobufjs reads the members of google.protobuf.Value in camelCase only, even with `keepCase`, and drops others silently. */
export interface StructMessage {
  readonly fields: Readonly<Record<string, { readonly stringValue: string }>>;
}

/** envoy.config.core.v3.HeaderValueOption.HeaderAppendAction. */
export const appendAction = {
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

/** The full name of the service that Envoy calls, also its name in gRPC health checks. */
export const authorizationServiceName = 'envoy.service.auth.v3.Authorization';

export const healthServiceName = 'grpc.health.v1.Health';

// From tools/derive/services.ts: to parse the files takes 5 ms of each start, and what we do not use 6 ms.
const definitions = fromJSON(services as object, {
  keepCase: true,
  longs: String,
  defaults: true,
});

export const authorizationService = serviceDefinition<{
  readonly Check: MethodDefinition<CheckRequestMessage, CheckResponseMessage>;
}>(authorizationServiceName);

type HealthMethod = MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage>;
export const healthService = serviceDefinition<{ readonly Check: HealthMethod; readonly Watch: HealthMethod }>(
  healthServiceName,
);

// Asserts the types of this file for the messages of proto/; test/envoy/protocol.test.ts verifies that they agree.
function serviceDefinition<Service>(name: string): ServiceDefinition & Service {
  const definition = definitions[name];
  if (definition === undefined || 'format' in definition) throw new Error(`proto/ has no service ${name}`);
  return definition as unknown as ServiceDefinition & Service;
}
