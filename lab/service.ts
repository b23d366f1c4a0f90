// The service in this process, with a real issuer and a real gRPC client.
import { type ChannelCredentials, Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { expect } from 'chai';
import { type Config, configSchema } from '../src/config/schema.ts';
import {
  authorizationService,
  type CheckRequestMessage,
  type CheckResponseMessage,
  type HealthCheckResponseMessage,
  healthService,
} from '../src/envoy/protocol.ts';
import { createFileWatch, type WatchFiles } from '../src/files/file-watch.ts';
import { createLogger } from '../src/service/log.ts';
import { type Service, startService } from '../src/service/service.ts';
import { type CheckRequestParts, checkRequest } from './check-request.ts';
import { expectNoPartOf, invariants, tokenPartsOf } from './invariants.ts';
import { secrets } from './secrets.ts';
import { type SigningKey, signingKey } from './signing-key.ts';
import { startTestIssuer, type TestIssuer } from './test-issuer.ts';
import { audience, type TokenParts, token } from './token.ts';
import { until } from './until.ts';

export type LogLine = Readonly<Record<string, unknown>>;

export interface ServiceLab {
  readonly issuer: TestIssuer;
  readonly service: Service;
  readonly client: GrpcClient;
  readonly log: readonly LogLine[];
  /** A token that is valid now by the wall clock. */
  token(parts?: TokenParts): Promise<string>;
  /** Checks a request with this Authorization value. */
  check(authorization: string | undefined, parts?: CheckRequestParts): Promise<CheckResponseMessage>;
  admin(path: string, init?: RequestInit): Promise<Response>;
  /** Makes the log throw once, at the next matching line. */
  failLog(isMeant: (line: LogLine) => boolean): void;
  stop(): Promise<void>;
}

export interface GrpcClient {
  check(message: CheckRequestMessage, deadlineMs?: number): Promise<CheckResponseMessage>;
  health(service: string): Promise<HealthCheckResponseMessage>;
  readonly channel: Client;
  close(): void;
}

// A header that no check uses and no output may show.
const cookie = secrets.fresh('header');
const goodTarget = `/api/subscriptions/acct1?session=${secrets.fresh('query string')}`;

type ConfigInput = Parameters<typeof configSchema.parse>[0];

/** A valid configuration for an issuer at this URL; `changes` replaces whole sections. */
export function serviceConfig(
  issuer: { url: string; jwksUrl: string },
  changes: Readonly<Record<string, unknown>> = {},
): Config {
  const input: ConfigInput = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    issuers: [{ issuer: issuer.url, audiences: [audience], jwksUrl: issuer.jwksUrl }],
    routes: [{ path: '/api/subscriptions/:account_id/*' }],
    roles: { owner: ['*'], member: ['GET', 'HEAD'] },
    shutdown: { graceSeconds: 0 },
    ...changes,
  };
  return configSchema.parse(input);
}

/** Starts the service in this process; `write` gets each line of its log. */
export function startTestService(
  config: Config,
  write: (line: string) => void,
  { watchFiles = createFileWatch({ pollMs: 20 }), ...options }: { firstKeysMs?: number; watchFiles?: WatchFiles } = {},
): Promise<Service> {
  const logger = createLogger(config.log, { write });
  return startService({ config, version: '0.0.0-test', logger, proxy: {}, watchFiles, ...options });
}

/** A token of this issuer that is valid now by the wall clock. */
export function currentToken(issuer: string, parts: TokenParts): Promise<string> {
  const seconds = Math.floor(Date.now() / 1000);
  return token({ ...parts, claims: { iss: issuer, iat: seconds - 10, exp: seconds + 3600, ...parts.claims } });
}

export async function startServiceLab(
  options: {
    config?: Readonly<Record<string, unknown>>;
    keys?: readonly SigningKey[];
    ready?: boolean;
    /** True if the test changes the configuration such that a request that was allowed at the start is refused at the end. */
    changes?: boolean;
    watchFiles?: WatchFiles;
  } = {},
): Promise<ServiceLab> {
  const keys = options.keys ?? [await signingKey('k1')];
  const issuer = await startTestIssuer({ keys: keys.map(key => key.publicJwk) });
  const config = serviceConfig(issuer, options.config);
  const log: LogLine[] = [];
  let failsAt: ((line: LogLine) => boolean) | undefined;
  const write = (line: string): void => {
    secrets.show('log', line);
    const parsed = JSON.parse(line) as LogLine;
    if (failsAt?.(parsed)) {
      failsAt = undefined;
      throw new Error('a log that throws');
    }
    log.push(parsed);
  };
  const { watchFiles } = options;
  const service = await startTestService(config, write, watchFiles === undefined ? {} : { watchFiles });
  const client = connect(config.listen.startsWith('unix:') ? config.listen : `127.0.0.1:${service.ports.listen}`);
  const tokenParts = new Set<string>();
  let lastAllowed: CheckRequestMessage | undefined;
  const admin = (path: string, init?: RequestInit): Promise<Response> =>
    fetch(`http://127.0.0.1:${service.ports.admin}${path}`, init);
  if (options.ready ?? true) await until(async () => (await admin('/readyz')).ok);
  return {
    issuer,
    service,
    client,
    log,
    admin,
    failLog(isMeant) {
      failsAt = isMeant;
    },
    token: (parts = {}) => currentToken(issuer.url, parts),
    async check(authorization, parts = {}) {
      const headers = { cookie: `session=${cookie}`, ...(authorization === undefined ? {} : { authorization }) };
      const message = checkRequest({
        raw: true,
        path: goodTarget,
        ...parts,
        headers: { ...headers, ...parts.headers },
      });
      for (const part of tokenPartsOf(JSON.stringify([authorization, parts]))) tokenParts.add(part);
      const response = await client.check(message);
      if (response.status.code === 0) lastAllowed = message;
      return response;
    },
    async stop() {
      // I5: after any request, the next good one is allowed. I3: no output contains a token.
      if (lastAllowed !== undefined && options.changes !== true) {
        expect((await client.check(lastAllowed)).status.code, 'I5: the next good request').to.equal(0);
      }
      if (tokenParts.size > 0) {
        expectNoPartOf(tokenParts, `${JSON.stringify(log)}\n${await (await admin('/metrics')).text()}`);
      }
      client.close();
      for (const path of ['/', '/readyz']) await admin(path).catch(() => undefined);
      await service.stop();
      await issuer.stop();
    },
  };
}

export function connect(target: string, security: ChannelCredentials = credentials.createInsecure()): GrpcClient {
  const channel = new Client(target, security);
  return {
    channel,
    async check(message, deadlineMs = 100_000) {
      const response = await call(channel, authorizationService.Check, message, deadlineMs);
      invariants.hold(response, message);
      return response;
    },
    health: service => call(channel, healthService.Check, { service }, 20_000),
    close: () => channel.close(),
  };
}

interface Method<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

function call<Request, Response>(
  channel: Client,
  method: Method<Request, Response>,
  request: Request,
  deadlineMs: number,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const options = { deadline: Date.now() + deadlineMs };
    const done = (error: ServiceError | null, response?: Response): void => {
      secrets.show('refusal', JSON.stringify([error?.details, error?.metadata]));
      if (response !== undefined) resolve(response);
      else reject(error ?? new Error('no response'));
    };
    channel.makeUnaryRequest(method.path, method.requestSerialize, method.responseDeserialize, request, options, done);
  });
}

/** The reason of an answer, from its dynamic metadata. */
export function reasonOf({ dynamic_metadata }: CheckResponseMessage): string {
  return dynamic_metadata?.fields.reason?.stringValue ?? 'none';
}
