// Loads proto/: the two gRPC services with their paths and serializers. The server replaces one of them, the decoder of a
// CheckRequest (request.ts).
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type Options } from '@grpc/proto-loader';
import {
  authorizationServiceName,
  type CheckRequestMessage,
  type CheckResponseMessage,
  type HealthCheckRequestMessage,
  type HealthCheckResponseMessage,
  healthServiceName,
} from './protocol.ts';

export interface AuthorizationService extends ServiceDefinition {
  readonly Check: MethodDefinition<CheckRequestMessage, CheckResponseMessage>;
}

export interface HealthService extends ServiceDefinition {
  readonly Check: MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage>;
  readonly Watch: MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage>;
}

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
export const healthService = serviceDefinition<HealthService>(healthServiceName);

// The one place where the shapes of protocol.ts are claimed for what proto/ describes; test/envoy/protocol.test.ts holds the claim.
function serviceDefinition<Service extends ServiceDefinition>(name: string): Service {
  const definition = definitions[name];
  if (definition === undefined || 'format' in definition) throw new Error(`proto/ has no service ${name}`);
  return definition as unknown as Service;
}
