// Everything that the story needs, running: the authentication service and the upstream in this process, account-authz as it is
// built and a real Envoy as processes of their own. All of it on 127.0.0.1, on the documented ports where these are free.
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type Document, parseDocument } from 'yaml';
import { envoyBinary, startEnvoy } from '../test/support/envoy.ts';
import { type ServiceProcess, startServiceProcess } from '../test/support/service-process.ts';
import { type AuthenticationService, startAuthenticationService } from './authentication-service.ts';
import { jsonOf, send } from './http-client.ts';
import { choosePorts } from './ports.ts';
import { type SeenRequest, startUpstream } from './upstream.ts';

/** What a story is told on, wherever it runs. */
export interface Setting {
  readonly authentication: Omit<AuthenticationService, 'port' | 'discoveryUrl'>;
  /** How many requests have reached the upstream so far, and the last of them. */
  reached(): Promise<Reached>;
  /** Where clients call: Envoy. */
  readonly gateway: string;
  /** As it is until `stopAuthorizer`, and again from `startAuthorizer` on. */
  stopAuthorizer(): Promise<void>;
  startAuthorizer(): Promise<void>;
}

export interface Reached {
  readonly count: number;
  readonly last?: SeenRequest | undefined;
}

export interface Stage extends Setting {
  /** Ends every process and closes every port. */
  stop(): Promise<void>;
}

/** Who is told about the parts as they start. */
export interface Progress {
  starting(part: string): void;
  started(part: string, place: string): void;
}

const exampleConfig = new URL('../config.example.yaml', import.meta.url);
const accessTokenSeconds = 3600;
const startSeconds = 30;
const stopSeconds = 10;

/** Rejects where a part cannot start; nothing is left running then. */
export async function startStage(progress: Progress): Promise<Stage> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const config = parseDocument(await readFile(exampleConfig, 'utf8'));
    const audience = String(config.getIn(['issuers', 0, 'audiences', 0]));
    const ports = await choosePorts({
      authentication: 8090,
      upstream: 8000,
      listen: 9191,
      admin: 9192,
      gateway: 8080,
      ready: 8081,
      envoyAdmin: 9901,
    });

    progress.starting('authentication service');
    const authentication = await startAuthenticationService({
      port: ports.authentication,
      audience,
      accessTokenSeconds,
    });
    stops.push(() => authentication.stop());
    progress.started('authentication service', authentication.issuer);

    progress.starting('upstream');
    const upstream = await startUpstream({ port: ports.upstream });
    stops.push(() => upstream.stop());
    progress.started('upstream', `http://127.0.0.1:${upstream.port}`);

    // The example as it is shipped, but for the places and for keys that move at the pace of a story.
    config.set('listen', `127.0.0.1:${ports.listen}`);
    config.set('admin', `127.0.0.1:${ports.admin}`);
    config.setIn(['issuers', 0, 'issuer'], authentication.issuer);
    config.deleteIn(['issuers', 0, 'jwksUrl']);
    config.setIn(['issuers', 0, 'discoveryUrl'], authentication.discoveryUrl);
    config.set('keys', { refreshSeconds: 5, maxAgeSeconds: 600, cooldownSeconds: 1, timeoutSeconds: 3 });
    config.set('shutdown', { graceSeconds: 2 });

    progress.starting('account-authz');
    let authorizer: ServiceProcess | undefined = await startAuthorizer(config);
    stops.push(() => stopAuthorizer(authorizer));
    progress.started('account-authz', `grpc://127.0.0.1:${ports.listen}, http://127.0.0.1:${ports.admin}/readyz`);

    progress.starting('Envoy, installed the first time');
    await envoyBinary();
    const envoy = await startEnvoy({
      authz: `127.0.0.1:${ports.listen}`,
      upstream: upstream.port,
      listener: ports.gateway,
      ready: ports.ready,
      admin: ports.envoyAdmin,
    });
    stops.push(() => envoy.stop());
    const gateway = `http://127.0.0.1:${envoy.port}`;
    await untilAsked(gateway);
    const version = await envoyVersion(envoy.adminPort);
    progress.started(`Envoy ${version}`, `${gateway}, http://127.0.0.1:${envoy.readyPort}/ready`);

    return {
      authentication,
      gateway,
      reached: async () => ({ count: upstream.count, last: upstream.requests.at(-1) }),
      async stopAuthorizer() {
        await stopAuthorizer(authorizer);
        authorizer = undefined;
      },
      async startAuthorizer() {
        authorizer = await startAuthorizer(config);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

// A product that starts without ever being ready, or that does not stop when told, is an end of the demo and not its standstill.

async function startAuthorizer(config: Document): Promise<ServiceProcess> {
  const tooLate = delay(startSeconds * 1000, undefined, { ref: false }).then(() => {
    throw new Error(`account-authz is not ready after ${startSeconds} s`);
  });
  return Promise.race([startServiceProcess(config.toJS()), tooLate]);
}

async function stopAuthorizer(authorizer: ServiceProcess | undefined): Promise<void> {
  const tooLate = delay(stopSeconds * 1000, 'too late', { ref: false });
  if ((await Promise.race([authorizer?.stop(), tooLate])) === 'too late') await authorizer?.kill();
}

/** Until a request is refused for its missing token: then the whole way is there, Envoy's first connection to us included. */
async function untilAsked(gateway: string): Promise<void> {
  const deadline = performance.now() + startSeconds * 1000;
  while ((await send({ origin: gateway, target: '/api/subscriptions' })).status !== 401) {
    if (performance.now() > deadline) throw new Error('Envoy does not reach account-authz');
    await delay(50);
  }
}

async function envoyVersion(adminPort: number): Promise<string> {
  const info = jsonOf(await send({ origin: `http://127.0.0.1:${adminPort}`, target: '/server_info' }));
  return String(info.version).split('/')[1] ?? '';
}
