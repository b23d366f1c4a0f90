// What clients of an Envoy notice when an authorizer behind it is stopped or killed, and when that Envoy itself is replaced.
// Timeouts are wide, so that a busy machine is not taken for a lost request; a request that a kill loses fails at once.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type Document, parse } from 'yaml';
import { runProduct } from '../../lab/command.ts';
import { readSnippet } from '../../lab/document.ts';
import { defaultEnvoyVersion, envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { clusterPath, httpFilterPath } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { type Answered, type Order, startLoad } from '../../lab/load.ts';
import { at } from '../../lab/manifest.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { useRunning } from '../support/use-running.ts';
import { type AnswerCheck, allowMessage, answersMessage, framed, startFakeAuthorizer } from './fake-authorizer.ts';
import { bearer, configuration, installEnvoys, startLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
const pauseMs = 30;
const httpOptions = ['typed_extension_protocol_options', 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions'];

/** Of the cluster account-authz in the overlay for several authorizers. */
function filtersOfOverlay(): unknown {
  const bootstrap = parse(readFileSync('k8s/overlays/service/envoy.yaml', 'utf8'));
  return at(bootstrap, 'static_resources', 'clusters', 'account-authz', ...httpOptions, 'http_filters');
}

/** Keeps an answer back until it is whole. */
function addFilters(bootstrap: Document): void {
  bootstrap.setIn([...clusterPath(bootstrap, 'account-authz'), ...httpOptions, 'http_filters'], filtersOfOverlay());
}

function widenTimeouts(bootstrap: Document): void {
  const grpcService = [...httpFilterPath(bootstrap, 'envoy.filters.http.ext_authz'), 'grpc_service'];
  bootstrap.setIn([...grpcService, 'timeout'], '8s');
  bootstrap.setIn([...grpcService, 'retry_policy', 'retry_back_off', 'max_interval'], '4s');
}

function failuresOf(answers: readonly Answered[]): string[] {
  return answers.flatMap(({ failure = [] }) => failure);
}

describe('restarts', () => {
  before(installEnvoys);

  it('of two authorizers in turn, under load, lose no request and make Envoy ask again', async () => {
    const { answers, retries } = await restart(2, ['stop', 'kill'], addFilters);
    expect(failuresOf(answers)).to.deep.equal([]);
    expect(answers.length).to.be.greaterThan(200);
    expect(retries).to.be.greaterThan(2);
  });

  // After SIGTERM it still answers for at least half of the grace period, as long as requests come.
  it('of a single authorizer, under load, lose requests while it is away alone, each answered 503', async () => {
    const { answers, restarts } = await restart(1, ['stop', 'kill']);
    const failures = failuresOf(answers);
    expect(failures.length).to.be.greaterThan(0);
    expect(failures.filter(failure => !/^503 in the place of/.test(failure))).to.deep.equal([]);
    const isDown = ({ atMs, latencyMs }: Answered): boolean =>
      restarts.some(({ how, begunMs, readyMs }) => {
        const fromMs = begunMs + (how === 'stop' ? 900 : 0);
        return atMs + latencyMs >= fromMs && atMs <= readyMs + 100;
      });
    expect(answers.filter(each => each.failure !== undefined && !isDown(each))).to.deep.equal([]);
  });

  describe('an answer that is cut off by the end of its authorizer', () => {
    const upstream = useRunning(startRecordingUpstream);
    const allow = allowMessage();
    // Headers and message are written together, the trailers one turn of the event loop later: here they never are.
    const dies: AnswerCheck = stream => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.session?.destroy());
      stream.end(framed(allow));
    };
    const attempt = async (version: string, edit: (bootstrap: Document) => void) => {
      const fake = await startFakeAuthorizer();
      fake.answerWith((stream, number) => (number === 1 ? dies : answersMessage(allow))(stream, number));
      const envoy = await startEnvoy({ version, upstream: upstream.port, authz: fake.address, edit });
      try {
        const { status } = await exchange(envoy.port, requestBytes('GET', path, ['Authorization: Bearer any']));
        return { status, attempts: fake.attempts() };
      } finally {
        await Promise.all([envoy.stop(), fake.stop()]);
      }
    };

    it('has the filter of the overlay in docs/restarts.md', () => {
      const snippet = parse(readSnippet('docs/restarts.md', 'yaml', 'http_filters'));
      expect(snippet).to.deep.equal({ http_filters: filtersOfOverlay() });
    });

    for (const version of [envoyVersions[0], defaultEnvoyVersion]) {
      it(`is retried with the filter of the overlay, and a 503 without it, Envoy ${version}`, async () => {
        expect(await attempt(version, addFilters)).to.deep.equal({ status: 200, attempts: 2 });
        expect(await attempt(version, () => undefined)).to.deep.equal({ status: 503, attempts: 1 });
      });
    }
  });

  it('of Envoy itself, drained and replaced by another, lose no request', async () => {
    const lab = await startLab();
    const options = { upstream: lab.upstream.port, authz: lab.service.address, edit: widenTimeouts };
    const before: RunningEnvoy = await startEnvoy(options);
    const endpoint = (name: string, { port }: RunningEnvoy) => ({ name, address: '127.0.0.1', port });
    const endpoints = [endpoint('before', before)];
    const load = startLoad({ endpoints, orders: await orders(), pauseMs });
    const next = await startEnvoy(options);
    try {
      endpoints.push(endpoint('next', next));
      const admin = `http://127.0.0.1:${before.adminPort}`;
      const drained = runProduct(['drain', '--envoy-admin', admin, '--seconds', '15']);
      endpoints.shift();
      const { stdout } = await drained;
      await before.stop();
      await load.stop();
      expect(failuresOf(load.answers)).to.deep.equal([]);
      expect(new Set(load.answers.map(answer => answer.endpoint))).to.deep.equal(new Set(['before', 'next']));
      expect(stdout).to.equal('no connection is open\n');
    } finally {
      await load.stop();
      await Promise.all([before.kill(), next.stop()]);
      await lab.stop();
    }
  });

  // The kubelet runs preStop before a liveness restart too. Envoy must not close its listeners for good.
  it('of account-authz alone, after the drain of its preStop hook, leave Envoy serving', async () => {
    const lab = await startLab();
    const [port] = await freePorts(1);
    const listen = `127.0.0.1:${port}`;
    const start = (...more: readonly string[]): Promise<ServiceProcess> =>
      startServiceProcess({ ...configuration(lab.jwksUrl), listen }, { arguments: more });
    const first = await start();
    const envoy = await startEnvoy({ upstream: lab.upstream.port, authz: listen, arguments: ['--drain-time-s', '1'] });
    const idle = connect(envoy.port, '127.0.0.1');
    let second: ServiceProcess | undefined;
    try {
      await once(idle, 'connect');
      const admin = `http://127.0.0.1:${envoy.adminPort}`;
      const { stdout } = await runProduct(['drain', '--envoy-admin', admin, '--seconds', '3']);
      expect(stdout).to.contain('still open');
      await first.stop();
      second = await start('--envoy-admin', admin);
      const request = requestBytes('GET', path, [`Authorization: ${await bearer()}`]);
      expect((await exchange(envoy.port, request)).status).to.equal(200);
      expect((await exchange(envoy.readyPort, requestBytes('GET', '/ready'))).status).to.equal(200);
    } finally {
      idle.destroy();
      await Promise.all([first.kill(), second?.kill(), envoy.stop()]);
      await lab.stop();
    }
  });
});

interface Restarts {
  readonly answers: readonly Answered[];
  /** By performance.now(). */
  readonly restarts: readonly { readonly how: 'stop' | 'kill'; readonly begunMs: number; readonly readyMs: number }[];
  readonly retries: number;
}

/** Restarts authorizers behind one Envoy in turn. Without health checks, which would need seconds between two restarts. */
async function restart(
  authorizers: number,
  signals: readonly ('stop' | 'kill')[],
  edit?: (bootstrap: Document) => void,
): Promise<Restarts> {
  const lab = await startLab();
  const shutdown = { graceSeconds: 2 };
  const listens = (await freePorts(authorizers)).map(port => `127.0.0.1:${port}`);
  const start = (listen: string) => startServiceProcess({ ...configuration(lab.jwksUrl), listen, shutdown });
  const running = await Promise.all(listens.map(start));
  const envoy = await startEnvoy({
    upstream: lab.upstream.port,
    authz: listens,
    edit(bootstrap) {
      edit?.(bootstrap);
      widenTimeouts(bootstrap);
    },
  });
  const endpoints = [{ name: 'Envoy', address: '127.0.0.1', port: envoy.port }];
  const load = startLoad({ endpoints, orders: await orders(), pauseMs });
  const restarts: Restarts['restarts'][number][] = [];
  try {
    for (const [round, how] of signals.entries()) {
      await delay(300);
      const number = round % authorizers;
      const begunMs = performance.now();
      await running[number]?.[how]();
      running[number] = await start(listens[number] ?? '');
      restarts.push({ how, begunMs, readyMs: performance.now() });
    }
    await delay(300);
    await load.stop();
    const retries = (await envoy.stats()).get('cluster.account-authz.upstream_rq_retry') ?? 0;
    return { answers: load.answers, restarts, retries };
  } finally {
    await load.stop();
    await Promise.all([envoy.stop(), ...running.map(each => each.kill())]);
    await lab.stop();
  }
}

/** An allow and two refusals in turn, which only a working authorizer gives. */
async function orders(): Promise<readonly Order[]> {
  const token = (await bearer()).slice('Bearer '.length);
  return [
    { path, token, status: 200 },
    { path: '/api/subscriptions/accounts/acct2', token, status: 403 },
    { path: '/api/subscriptions', status: 401 },
  ];
}
