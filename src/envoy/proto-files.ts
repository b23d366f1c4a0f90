// Loads the two gRPC services from proto/, with their paths and serializers. The server replaces the decoder of a CheckRequest (request.ts).
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type Options } from '@grpc/proto-loader';
import { packageFile } from '../package.ts';
import {
  authorizationServiceName,
  type CheckRequestMessage,
  type CheckResponseMessage,
  type HealthCheckRequestMessage,
  type HealthCheckResponseMessage,
  healthServiceName,
} from './protocol.ts';

interface AuthorizationService extends ServiceDefinition {
  readonly Check: MethodDefinition<CheckRequestMessage, CheckResponseMessage>;
}

interface HealthService extends ServiceDefinition {
  readonly Check: MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage>;
  readonly Watch: MethodDefinition<HealthCheckRequestMessage, HealthCheckResponseMessage>;
}

const loaderOptions: Options = {
  includeDirs: [fileURLToPath(packageFile('proto/'))],
  keepCase: true,
  longs: String,
  // Without `enums: String`, an enum is a number. protobufjs encodes a misspelt word as 0: "append", or an invalid HTTP status.
  defaults: true,
};

const definitions = loadSync(
  ['envoy/service/auth/v3/external_auth.proto', 'grpc/health/v1/health.proto'],
  loaderOptions,
);

export const authorizationService = serviceDefinition<AuthorizationService>(authorizationServiceName);
export const healthService = serviceDefinition<HealthService>(healthServiceName);

// Asserts the types of protocol.ts for the messages of proto/; test/envoy/protocol.test.ts verifies that they agree.
function serviceDefinition<Service extends ServiceDefinition>(name: string): Service {
  const definition = definitions[name];
  if (definition === undefined || 'format' in definition) throw new Error(`proto/ has no service ${name}`);
  return definition as unknown as Service;
}
