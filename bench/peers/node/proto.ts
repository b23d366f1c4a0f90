// The service definition as most people load it: proto-loader over the .proto files of this repository.
import { readFileSync } from 'node:fs';
import { loadPackageDefinition, type Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** What a peer is started with. */
export interface PeerOptions {
  readonly port: number;
  readonly protoDirectory: string;
  /** File with the bytes of a CheckResponse that the do-nothing ones answer. */
  readonly answerFile: string;
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: string;
}

/** From the one argument, which is JSON. */
export function peerOptions(): PeerOptions {
  return JSON.parse(process.argv[2] ?? '') as PeerOptions;
}

export function authorizationService({ protoDirectory }: PeerOptions): ServiceDefinition {
  const definitions = loadSync('envoy/service/auth/v3/external_auth.proto', {
    includeDirs: [protoDirectory],
    keepCase: true,
    longs: String,
    defaults: true,
    oneofs: true,
  });
  const loaded = loadPackageDefinition(definitions) as unknown as {
    envoy: { service: { auth: { v3: { Authorization: { service: ServiceDefinition } } } } };
  };
  return loaded.envoy.service.auth.v3.Authorization.service;
}

export function answerBytes({ answerFile }: PeerOptions): Buffer {
  return readFileSync(answerFile);
}

export function serve(server: Server, { port }: PeerOptions): void {
  server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), error => {
    if (error !== null) throw error;
  });
}
