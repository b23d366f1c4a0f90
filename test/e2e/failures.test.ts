// Whatever happens to account-authz, or runs in its place: no request that it did not allow reaches the upstream.
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Document } from 'yaml';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { httpFilterPath } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import type { HttpAnswer } from '../../lab/raw-http.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { useRunning } from '../support/use-running.ts';
import { useUpstream } from './failure-lab.ts';
import { configuration, identity, ownedFields, startIssuer } from './lab.ts';

const checkTimeoutMs = 500;

describe('failures of the authorizer', () => {
  const suite = useUpstream();
  const { ask, expectUnavailable } = suite;

  const authentication = useRunning(startIssuer);

  describe('the process of account-authz, with every Envoy', () => {
    let config: Record<string, unknown>;
    let envoys: readonly RunningEnvoy[];
    let service: ServiceProcess | undefined;

    before(async () => {
      const [port] = await freePorts(1);
      const listen = `127.0.0.1:${port}`;
      config = { ...configuration(authentication.jwksUrl), listen };
      envoys = await Promise.all(
        envoyVersions.map(version => startEnvoy({ version, upstream: suite.upstream.port, authz: listen })),
      );
    });
    after(() => Promise.all(envoys.map(envoy => envoy.stop())));
    afterEach(() => service?.kill());

    const start = async (): Promise<ServiceProcess> => {
      service = await startServiceProcess(config);
      return service;
    };
    const askAll = (): Promise<HttpAnswer[]> => Promise.all(envoys.map(ask));
    const expectPassed = async (): Promise<void> => {
      const answers = await askAll();
      expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 200));
      expect(suite.upstream.requests.map(ownedFields)).to.deep.equal(answers.map(() => identity));
      suite.upstream.clear();
    };

    it('is not running: 503, until it starts', async () => {
      expectUnavailable(await askAll());
      await start();
      await expectPassed();
    });

    it('is stopped (SIGSTOP): 503 within the time of a check, until it resumes', async () => {
      const running = await start();
      await expectPassed();
      running.pause();
      const before = performance.now();
      expectUnavailable(await askAll());
      expect(performance.now() - before).to.be.within(checkTimeoutMs * 0.8, checkTimeoutMs * 100);
      running.resume();
      await expectPassed();
    });

    it('is killed (SIGKILL) in the middle of a check: 503, for that request and later ones', async () => {
      const running = await start();
      await expectPassed();
      running.pause();
      const asked = askAll();
      await Promise.all(envoys.map(envoy => untilCheckInFlight(envoy, asked)));
      await running.kill();
      expectUnavailable(await asked);
      expectUnavailable(await askAll());
    });

    it('gets SIGTERM: it exits with 0, and 503 follows', async () => {
      const running = await start();
      await expectPassed();
      expect(await running.stop()).to.equal(0);
      expectUnavailable(await askAll());
    });
  });

  describe('a filter that fails open by mistake', () => {
    for (const version of envoyVersions) {
      it(`lets nothing through, Envoy ${version}`, async () => {
        const [unusedPort] = await freePorts(1);
        const edit = (bootstrap: Document): void =>
          bootstrap.setIn([...httpFilterPath(bootstrap, 'envoy.filters.http.ext_authz'), 'failure_mode_allow'], true);
        const authz = `127.0.0.1:${unusedPort}`;
        const envoy = await startEnvoy({ version, upstream: suite.upstream.port, authz, edit });
        try {
          expect((await ask(envoy)).status).to.equal(403);
          expect(suite.upstream.requests).to.deep.equal([]);
        } finally {
          await envoy.stop();
        }
      });
    }
  });

  describe('two authorizers behind one Envoy', () => {
    it('loses no request once one is dead (SIGKILL), on every Envoy', async () => {
      const config = configuration(authentication.jwksUrl);
      const [one, two] = await Promise.all([startServiceProcess(config), startServiceProcess(config)]);
      const authz = [one.address, two.address];
      const envoys = await Promise.all(
        envoyVersions.map(version => startEnvoy({ version, upstream: suite.upstream.port, authz })),
      );
      try {
        for (const envoy of envoys) await sendRequests(envoy, 4);
        await one.kill();
        await Promise.all(
          envoys.flatMap(envoy => [sendRequests(envoy, 10), sendRequests(envoy, 10), sendRequests(envoy, 10)]),
        );
        const retries = await Promise.all(envoys.map(retriesOf));
        for (const count of retries) expect(count).to.be.greaterThan(0);
      } finally {
        await Promise.all([...envoys.map(envoy => envoy.stop()), one.kill(), two.kill()]);
      }
    });

    it('loses no request while one shuts down (SIGTERM)', async () => {
      const config = { ...configuration(authentication.jwksUrl), shutdown: { graceSeconds: 2 } };
      const [one, two] = await Promise.all([startServiceProcess(config), startServiceProcess(config)]);
      const envoy = await startEnvoy({ upstream: suite.upstream.port, authz: [one.address, two.address] });
      let over = false;
      const untilOver = async (): Promise<void> => {
        while (!over) await sendRequests(envoy, 1);
      };
      try {
        await sendRequests(envoy, 4);
        const clients = Promise.all([untilOver(), untilOver(), untilOver(), untilOver()]);
        expect(await one.stop()).to.equal(0);
        await sendRequests(envoy, 20);
        over = true;
        await clients;
      } finally {
        over = true;
        await Promise.all([envoy.stop(), one.kill(), two.kill()]);
      }
    });

    const sendRequests = async (envoy: RunningEnvoy, count: number): Promise<void> => {
      for (let i = 0; i < count; i += 1) expect((await ask(envoy)).status).to.equal(200);
    };
  });

  describe('a Unix socket', () => {
    it('carries the checks, and 503 follows when its owner exits', async () => {
      const listen = `unix:${join(tmpdir(), `authz-${randomUUID()}.sock`)}`;
      const service = await startServiceProcess({ ...configuration(authentication.jwksUrl), listen });
      const envoy = await startEnvoy({ upstream: suite.upstream.port, authz: service.address });
      try {
        expect((await ask(envoy)).status).to.equal(200);
        suite.upstream.clear();
        expect(await service.stop()).to.equal(0);
        expectUnavailable([await ask(envoy)]);
      } finally {
        await Promise.all([envoy.stop(), service.kill()]);
      }
    });
  });
});

async function retriesOf(envoy: RunningEnvoy): Promise<number | undefined> {
  return (await envoy.stats()).get('cluster.account-authz.upstream_rq_retry');
}

// Envoy counts the check as active once it is sent; if its answer came first, there is nothing to wait for.
async function untilCheckInFlight(envoy: RunningEnvoy, asked: Promise<unknown>): Promise<void> {
  let answered = false;
  void asked.finally(() => {
    answered = true;
  });
  while (!answered && (await envoy.stats()).get('cluster.account-authz.upstream_rq_active') !== 1);
}
