// Loads the service definition as usual: proto-loader over the .proto files of this repository.
import { readFileSync } from 'node:fs';
import { loadPackageDefinition, type Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** The options of a peer. */
export interface PeerOptions {
  readonly port: number;
  readonly protoDirectory: string;
  /** File with the encoded CheckResponse that the do-nothing services answer. */
  readonly answerFile: string;
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: string;
}

/** From the only argument, which is JSON. */
export function peerOptions(): PeerOptions {
  return JSON.parse(process.argv[2] ?? '') as PeerOptions;
}

export function authorizationService(options: PeerOptions): ServiceDefinition {
  return load(options, true);
}

/** The bytes of the product's allow. */
export function answerBytes({ answerFile }: PeerOptions): Buffer {
  return readFileSync(answerFile);
}

/** The product's allow as a plain object: without defaults, which would be encoded too. */
export function answerMessage(options: PeerOptions): unknown {
  const { Check } = load(options, false);
  if (Check === undefined) throw new Error('the Authorization service has no Check');
  return Check.responseDeserialize(answerBytes(options));
}

function load({ protoDirectory }: PeerOptions, defaults: boolean): ServiceDefinition {
  const definitions = loadSync('envoy/service/auth/v3/external_auth.proto', {
    includeDirs: [protoDirectory],
    keepCase: true,
    longs: String,
    defaults,
    oneofs: defaults,
  });
  const loaded = loadPackageDefinition(definitions) as unknown as {
    envoy: { service: { auth: { v3: { Authorization: { service: ServiceDefinition } } } } };
  };
  return loaded.envoy.service.auth.v3.Authorization.service;
}

export function serve(server: Server, { port }: PeerOptions): void {
  server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), error => {
    if (error !== null) throw error;
  });
}
