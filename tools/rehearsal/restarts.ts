// Restarts authorizers behind one Envoy under load, by SIGTERM or SIGKILL in turn, and counts what a client notices.
// Everything is real: the built product, an Envoy with the shipped settings, keep-alive and one-request connections.
import { setTimeout as delay } from 'node:timers/promises';
import type { Document } from 'yaml';
import { startUpstream } from '../../demo/upstream.ts';
import { startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer } from '../../lab/test-issuer.ts';
import { audience, issuer as issuerName, token } from '../../lab/token.ts';
import { type Answered, createService, type LoadOptions, type Order, startLoad } from './load.ts';

export type EndSignal = 'SIGTERM' | 'SIGKILL';

export interface RestartsOptions {
  readonly authorizers: number;
  /** One restart each, round robin over the authorizers. */
  readonly signals: readonly EndSignal[];
  /** `shutdown.graceSeconds` */
  readonly graceSeconds: number;
  /**
   * Between two restarts, before the first and after the last. With health checks it must exceed two of their intervals:
   * their state is up to one interval old, and an authorizer that they consider dead is not used while the other is.
   */
  readonly steadyMs: number;
  readonly clients: LoadOptions['clients'];
  readonly pauseMs: number;
  readonly envoyVersion?: string;
  /** Edits Envoy's bootstrap last. */
  readonly edit?: (bootstrap: Document) => void;
  readonly onEvent?: (text: string) => void;
}

export interface Restart {
  readonly signal: EndSignal;
  /** 1-based. */
  readonly authorizer: number;
  /** By performance.now(): the signal, the exit of the process, and the readiness of its successor. */
  readonly signalledMs: number;
  readonly endedMs: number;
  readonly readyMs: number;
}

export interface Restarts {
  readonly answers: readonly Answered[];
  readonly restarts: readonly Restart[];
  /** Checks that Envoy retried. */
  readonly retries: number;
  /** Checks without an answer. */
  readonly errors: number;
}

export async function rehearseRestarts(options: RestartsOptions): Promise<Restarts> {
  const { signals, graceSeconds, steadyMs, envoyVersion, edit, onEvent = () => undefined } = options;
  const cleanUps: (() => Promise<unknown>)[] = [];
  try {
    const key = await signingKey('k1');
    const issuer = await startTestIssuer({ keys: [key.publicJwk] });
    cleanUps.push(() => issuer.stop());
    const upstream = await startUpstream({ keptRequests: 0 });
    cleanUps.push(() => upstream.stop());
    const ports = await freePorts(options.authorizers);
    const start = (port: number): Promise<ServiceProcess> =>
      startServiceProcess({
        listen: `127.0.0.1:${port}`,
        admin: '127.0.0.1:0',
        issuers: [{ issuer: issuerName, audiences: [audience], jwksUrl: issuer.jwksUrl }],
        routes: [{ path: '/api/subscriptions/*' }, { path: '/api/subscriptions/accounts/:account_id/*' }],
        roles: { owner: ['*'] },
        log: { allowed: false },
        shutdown: { graceSeconds },
      });
    const authorizers = await Promise.all(ports.map(start));
    cleanUps.push(() => Promise.all(authorizers.map(each => each.kill())));
    const envoy = await startEnvoy({
      ...(envoyVersion === undefined ? {} : { version: envoyVersion }),
      upstream: upstream.port,
      authz: authorizers.map(({ address }) => address),
      ...(edit === undefined ? {} : { edit }),
    });
    cleanUps.push(() => envoy.stop());

    const service = createService();
    service.add({ name: 'Envoy', address: '127.0.0.1', port: envoy.port });
    const load = startLoad({ service, orders: await ordersOf(), clients: options.clients, pauseMs: options.pauseMs });
    cleanUps.push(() => load.stop());
    const restarts: Restart[] = [];
    await delay(steadyMs);
    for (const [round, signal] of signals.entries()) {
      const number = round % authorizers.length;
      const [before, port] = [authorizers[number], ports[number]];
      if (before === undefined || port === undefined) throw new Error('no authorizer to restart');
      const signalledMs = performance.now();
      await (signal === 'SIGKILL' ? before.kill() : before.stop());
      const endedMs = performance.now();
      authorizers[number] = await start(port);
      const readyMs = performance.now();
      restarts.push({ signal, authorizer: number + 1, signalledMs, endedMs, readyMs });
      onEvent(`authorizer ${number + 1}: ${signal}, down for ${((readyMs - endedMs) / 1000).toFixed(1)} s`);
      await delay(steadyMs);
    }
    await load.stop();
    const stats = await envoy.stats();
    return {
      answers: load.answers,
      restarts,
      retries: stats.get('cluster.account-authz.upstream_rq_retry') ?? 0,
      errors: stats.get('http.public.ext_authz.account.error') ?? 0,
    };
  } finally {
    for (const cleanUp of cleanUps.toReversed()) await cleanUp();
  }
}

/** An allow and three refusals in turn, which only a working authorizer gives. */
async function ordersOf(): Promise<readonly Order[]> {
  const now = Math.floor(Date.now() / 1000);
  const good = await token({ claims: { iat: now - 10, exp: now + 7200 } });
  return [
    { path: '/api/subscriptions/accounts/acct1', token: good, status: 200 },
    { path: '/api/subscriptions', token: good, status: 200 },
    { path: '/api/subscriptions/accounts/acct2', token: good, status: 403 },
    { path: '/api/subscriptions', status: 401 },
  ];
}
