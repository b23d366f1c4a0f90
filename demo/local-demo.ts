// Runs all parts of the demo on 127.0.0.1, on the documented ports if these are free: the authentication service and the upstream in this
// process, the built account-authz and a real Envoy as child processes.
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type Document, parse, parseDocument } from 'yaml';
import { envoyBinary, startEnvoy } from '../lab/envoy.ts';
import { type ServiceProcess, startServiceProcess } from '../lab/service-process.ts';
import type { Config } from '../src/config/schema.ts';
import { type AuthenticationService, startAuthenticationService } from './authentication-service.ts';
import { jsonOf, send } from './http-client.ts';
import { choosePorts } from './ports.ts';
import type { Terminal } from './terminal.ts';
import { type SeenRequest, startUpstream } from './upstream.ts';

/** What the steps of the demo use, on this machine or in containers. */
export interface Demo {
  readonly authentication: Omit<AuthenticationService, 'port' | 'discoveryUrl'>;
  /** The issuer of a partner, which may speak for its own accounts alone. */
  readonly partner: Pick<AuthenticationService, 'issuer' | 'signToken'>;
  upstreamState(): Promise<UpstreamState>;
  /** The origin of Envoy. */
  readonly gateway: string;
  /** Absent where nothing can end account-authz. */
  readonly authorizer?: Readonly<Record<'stop' | 'start', () => Promise<void>>>;
}

export interface UpstreamState {
  /** The number of requests so far. */
  readonly count: number;
  /** The last request. */
  readonly last?: SeenRequest | undefined;
}

export interface LocalDemo extends Demo {
  /** Stops every process and closes every port. */
  stop(): Promise<void>;
}

const exampleConfig = new URL('../config.example.yaml', import.meta.url);
const composeConfig = new URL('compose/account-authz/config.yaml', import.meta.url);
const accessTokenSeconds = 3600;
const startSeconds = 30;
const stopSeconds = 10;

/** Rejects if a part cannot start, after it has stopped the others. */
export async function startLocalDemo(progress: Pick<Terminal, 'starting' | 'started'>): Promise<LocalDemo> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const config = parseDocument(await readFile(exampleConfig, 'utf8'));
    const audience = String(config.getIn(['issuers', 0, 'audiences', 0]));
    const ports = await choosePorts({
      authentication: 8090,
      partner: 8092,
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

    const partner = await startAuthenticationService({ port: ports.partner, audience });
    stops.push(() => partner.stop());
    progress.started("a partner's issuer", partner.issuer);

    progress.starting('upstream');
    const upstream = await startUpstream({ port: ports.upstream });
    stops.push(() => upstream.stop());
    progress.started('upstream', `http://127.0.0.1:${upstream.port}`);

    // The shipped example with other addresses, the issuer of a partner, and scopes, and with shorter times for keys, so that the demo
    // takes seconds.
    const compose: Config = parse(await readFile(composeConfig, 'utf8'));
    config.set('listen', `127.0.0.1:${ports.listen}`);
    config.set('admin', `127.0.0.1:${ports.admin}`);
    config.setIn(['issuers', 0, 'issuer'], authentication.issuer);
    config.deleteIn(['issuers', 0, 'jwksUrl']);
    config.setIn(['issuers', 0, 'discoveryUrl'], authentication.discoveryUrl);
    const [, partnerIssuer] = compose.issuers;
    config.addIn(['issuers'], { ...partnerIssuer, issuer: partner.issuer, discoveryUrl: partner.discoveryUrl });
    config.set('scopes', compose.scopes);
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
    await waitUntilChecked(gateway);
    const version = await envoyVersion(envoy.adminPort);
    progress.started(`Envoy ${version}`, `${gateway}, http://127.0.0.1:${envoy.readyPort}/ready`);

    return {
      authentication,
      partner,
      gateway,
      upstreamState: async () => ({ count: upstream.count, last: upstream.requests.at(-1) }),
      authorizer: {
        async stop() {
          await stopAuthorizer(authorizer);
          authorizer = undefined;
        },
        async start() {
          authorizer = await startAuthorizer(config);
        },
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startAuthorizer(config: Document): Promise<ServiceProcess> {
  const timedOut = delay(startSeconds * 1000, undefined, { ref: false }).then(() => {
    throw new Error(`account-authz is not ready after ${startSeconds} s`);
  });
  return Promise.race([startServiceProcess(config.toJS()), timedOut]);
}

async function stopAuthorizer(authorizer: ServiceProcess | undefined): Promise<void> {
  const timedOut = delay(stopSeconds * 1000, 'timed out', { ref: false });
  if ((await Promise.race([authorizer?.stop(), timedOut])) === 'timed out') await authorizer?.kill();
}

/** Waits until a request without a token gets 401: then Envoy is connected to account-authz. */
async function waitUntilChecked(gateway: string): Promise<void> {
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
