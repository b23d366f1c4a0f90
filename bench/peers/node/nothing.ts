// A do-nothing service with @grpc/grpc-js and @grpc/proto-loader: decodes the request and answers one fixed message.
import { readFileSync } from 'node:fs';
import { loadPackageDefinition, Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** `answerFile`: the encoded CheckResponse of account-authz's allow. */
const { port, protoDirectory, answerFile } = JSON.parse(process.argv[2] ?? '') as {
  readonly port: number;
  readonly protoDirectory: string;
  readonly answerFile: string;
};

function load(defaults: boolean): ServiceDefinition {
  const options = { includeDirs: [protoDirectory], keepCase: true, longs: String, defaults, oneofs: defaults };
  const loaded = loadPackageDefinition(loadSync('envoy/service/auth/v3/external_auth.proto', options)) as unknown as {
    envoy: { service: { auth: { v3: { Authorization: { service: ServiceDefinition } } } } };
  };
  return loaded.envoy.service.auth.v3.Authorization.service;
}

// Without defaults, which would be encoded too.
const answer = load(false).Check?.responseDeserialize(readFileSync(answerFile));
const server = new Server();
server.addService(load(true), {
  Check: (_: unknown, callback: (error: null, answer: unknown) => void) => callback(null, answer),
});
server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), error => {
  if (error !== null) throw error;
});
