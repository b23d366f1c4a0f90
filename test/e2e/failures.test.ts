// Whatever happens to account-authz, or runs in its place: no request that it did not allow reaches the upstream.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Document } from 'yaml';
import { checkCallHeaders } from '../../bench/speed/requests.ts';
import { authorizationService } from '../../src/envoy/proto-files.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../support/envoy.ts';
import { httpFilterPath } from '../support/envoy-bootstrap.ts';
import { freePorts } from '../support/free-ports.ts';
import { exchange, type HttpAnswer, requestBytes } from '../support/raw-http.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/recording-upstream.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts';
import type { TestIssuer } from '../support/test-issuer.ts';
import {
  type AnswerCheck,
  allowMessage,
  answersHttp,
  answersMessage,
  answersStatus,
  type FakeAuthorizer,
  framed,
  neverAnswers,
  startFakeAuthorizer,
} from './fake-authorizer.ts';
import {
  bearer,
  configuration,
  expectRefusal,
  identity,
  installEnvoys,
  onlyRequestOf,
  ownedFields,
  startIssuer,
} from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
const checkTimeoutMs = 500;

describe('failures of the authorizer', () => {
  let upstream: RecordingUpstream;
  let authorization: string;

  before(async () => {
    await installEnvoys();
    upstream = await startRecordingUpstream();
    authorization = `Authorization: ${await bearer()}`;
  });
  after(() => upstream.stop());
  beforeEach(() => upstream.clear());

  const ask = (envoy: RunningEnvoy): Promise<HttpAnswer> =>
    exchange(envoy.port, requestBytes('GET', path, [authorization, 'x-auth-acc: evil']));

  const expectUnavailable = (answers: readonly HttpAnswer[]): void => {
    expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 503));
    expect(upstream.requests).to.deep.equal([]);
  };

  describe('the process of account-authz, with every Envoy', () => {
    let authentication: TestIssuer;
    let config: Record<string, unknown>;
    let envoys: readonly RunningEnvoy[];
    let service: ServiceProcess | undefined;

    before(async () => {
      authentication = await startIssuer();
      const [port] = await freePorts(1);
      const listen = `127.0.0.1:${port}`;
      config = { ...configuration(authentication.jwksUrl), listen };
      envoys = await Promise.all(
        envoyVersions.map(version => startEnvoy({ version, upstream: upstream.port, authz: listen })),
      );
    });
    after(() => Promise.all([...envoys.map(envoy => envoy.stop()), authentication.stop()]));
    afterEach(() => service?.kill());

    const start = async (): Promise<ServiceProcess> => {
      service = await startServiceProcess(config);
      return service;
    };
    const askAll = (): Promise<HttpAnswer[]> => Promise.all(envoys.map(ask));
    const expectPassed = async (): Promise<void> => {
      const answers = await askAll();
      expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 200));
      expect(upstream.requests.map(ownedFields)).to.deep.equal(answers.map(() => identity));
      upstream.clear();
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
      expect(performance.now() - before).to.be.within(checkTimeoutMs * 0.8, checkTimeoutMs * 20);
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
        const envoy = await startEnvoy({ version, upstream: upstream.port, authz: `127.0.0.1:${unusedPort}`, edit });
        try {
          expect((await ask(envoy)).status).to.equal(403);
          expect(upstream.requests).to.deep.equal([]);
        } finally {
          await envoy.stop();
        }
      });
    }
  });

  describe('signing keys are unavailable', () => {
    it('gives the product’s own 503, with Retry-After', async () => {
      const [unusedPort] = await freePorts(1);
      const config = configuration(`http://127.0.0.1:${unusedPort}/jwks.json`);
      const service = await startServiceProcess(config, { ready: false });
      const envoy = await startEnvoy({ upstream: upstream.port, authz: service.address });
      try {
        const answer = await ask(envoy);
        expectRefusal(answer, 503, 'keys_unavailable');
        expect(Object.fromEntries(answer.headers)).to.have.property('retry-after');
        expect(upstream.requests).to.deep.equal([]);
      } finally {
        await Promise.all([envoy.stop(), service.kill()]);
      }
    });
  });

  describe('another server answers', () => {
    const allow = allowMessage();
    const withoutTrailers: AnswerCheck = stream => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.end(framed(allow));
    };
    const garbage: readonly { readonly name: string; readonly answer: AnswerCheck }[] = [
      { name: 'a page of HTML', answer: answersHttp(200, 'text/html', '<html>Welcome</html>') },
      {
        name: 'a page of HTML that claims to be gRPC',
        answer: answersHttp(200, 'application/grpc', '<html>Welcome</html>'),
      },
      { name: '404', answer: answersHttp(404, 'text/plain', 'not found') },
      { name: '503', answer: answersHttp(503, 'text/plain', 'overloaded') },
      { name: 'an allow without trailers', answer: withoutTrailers },
      { name: 'no trailers and no message', answer: answersHttp(200, 'application/grpc', '') },
      { name: 'trailers alone that say OK', answer: answersStatus(0) },
      ...[1, 2, 4, 7, 8, 12, 13, 14, 16].map(status => ({
        name: `gRPC status ${status}`,
        answer: answersStatus(status),
      })),
      { name: 'an allow, then gRPC status 14', answer: answersMessage(allow, 14) },
      { name: 'bytes that are no message', answer: answersMessage(Buffer.from('ffffffffff', 'hex')) },
      { name: 'half an allow', answer: answersMessage(allow.subarray(0, allow.length / 2)) },
      {
        name: 'a frame that ends too early',
        answer: stream => {
          stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
          stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
          stream.end(framed(allow).subarray(0, 20));
        },
      },
      { name: 'a message of 100 kB', answer: answersMessage(Buffer.concat([allow, Buffer.alloc(100_000, 'x')])) },
      { name: 'the end of the stream', answer: stream => stream.close(2) },
      { name: 'the end of the connection', answer: stream => stream.session?.destroy() },
      { name: 'nothing', answer: neverAnswers },
    ];

    // Parsed as an allow: code 0 is the default of every message.
    const emptyAllows: readonly { readonly name: string; readonly message: Buffer }[] = [
      { name: 'an empty message', message: Buffer.alloc(0) },
      { name: 'an unknown field', message: Buffer.from('7a0161', 'hex') },
      { name: 'status code 0 and nothing else', message: Buffer.from('0a020800', 'hex') },
      { name: 'code 0 beside a denied response', message: Buffer.from('0a02080012050a03089103', 'hex') },
      {
        name: 'an allow of some other server',
        message: Buffer.from('0a0208001a1d121b0a130a0a782d617574682d61636312056163637431120208001802', 'hex'),
      },
    ];

    for (const version of envoyVersions) {
      describe(`Envoy ${version}`, () => {
        let fake: FakeAuthorizer;
        let envoy: RunningEnvoy;

        before(async () => {
          fake = await startFakeAuthorizer();
          envoy = await startEnvoy({ version, upstream: upstream.port, authz: fake.address });
        });
        after(() => Promise.all([envoy.stop(), fake.stop()]));

        for (const { name, answer } of garbage) {
          it(`answers 503 to ${name}`, async () => {
            fake.answerWith(answer);
            expectUnavailable([await ask(envoy)]);
          });
        }

        for (const { name, message } of emptyAllows) {
          it(`refuses an allow that is not from account-authz: ${name}`, async () => {
            fake.answerWith(answersMessage(message));
            expect((await ask(envoy)).status).to.equal(403);
            expect(upstream.requests).to.deep.equal([]);
          });
        }

        it('passes the product’s own allow', async () => {
          fake.answerWith(answersMessage(allow));
          expect((await ask(envoy)).status).to.equal(200);
          expect(ownedFields(onlyRequestOf(upstream))).to.deep.equal(identity);
        });

        it('sends the authorizer no header that it does not use', async () => {
          fake.answerWith(answersMessage(allow));
          expect((await ask(envoy)).status).to.equal(200);
          const names = Object.keys(fake.headers()).sort();
          expect(names).to.deep.equal([':authority', ':method', ':path', ':scheme', 'content-type']);
          // The bench sends the same headers as this Envoy.
          const benched = Object.fromEntries(checkCallHeaders.map(({ name, value }) => [name, value]));
          expect(Object.fromEntries(Object.entries(fake.headers()))).to.deep.equal(benched);
        });

        it('truncates the body of a refusal at 4096 bytes', async () => {
          const body = 'x'.repeat(5000);
          const refusal = { status: { code: 16 }, denied_response: { status: { code: 401 }, headers: [], body } };
          fake.answerWith(answersMessage(authorizationService.Check.responseSerialize(refusal)));
          expect(await ask(envoy)).to.include({ status: 401, body: 'x'.repeat(4096) });
          expect(upstream.requests).to.deep.equal([]);
        });

        it('answers 500 if the authorizer changes a header that it may not change', async () => {
          const header = {
            header: { key: ':path', value: '/api/subscriptions/accounts/acct2' },
            append: { value: false },
          };
          const allowing = { status: { code: 0 }, ok_response: { headers: [header], headers_to_remove: [] } };
          fake.answerWith(answersMessage(authorizationService.Check.responseSerialize(allowing)));
          expect((await ask(envoy)).status).to.equal(500);
          expect(upstream.requests).to.deep.equal([]);
        });

        it('retries when the authorizer is unavailable', async () => {
          fake.answerWith((stream, attempt) =>
            (attempt < 3 ? answersStatus(14) : answersMessage(allow))(stream, attempt),
          );
          expect((await ask(envoy)).status).to.equal(200);
          expect(fake.attempts()).to.equal(3);
        });

        it('retries when the connection is closed in the middle of a check', async () => {
          const closes: AnswerCheck = stream => stream.session?.destroy();
          fake.answerWith((stream, attempt) => (attempt === 1 ? closes : answersMessage(allow))(stream, attempt));
          expect((await ask(envoy)).status).to.equal(200);
          expect(fake.attempts()).to.equal(2);
        });

        it('does not retry when the authorizer answers with another error', async () => {
          fake.answerWith(answersStatus(13));
          expectUnavailable([await ask(envoy)]);
          expect(fake.attempts()).to.equal(1);
        });

        it('times out a hanging attempt early enough for a retry', async () => {
          fake.answerWith((stream, attempt) => (attempt === 1 ? neverAnswers : answersMessage(allow))(stream, attempt));
          expect((await ask(envoy)).status).to.equal(200);
          expect(fake.attempts()).to.equal(2);
        });
      });
    }
  });

  describe('the server does not speak HTTP/2', () => {
    const greetings: readonly { readonly name: string; readonly greet: (socket: Socket) => void }[] = [
      { name: 'HTTP/1.1', greet: socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n') },
      { name: 'random bytes', greet: socket => socket.write(Buffer.alloc(4096, 0xa5)) },
      { name: 'silence', greet: () => undefined },
      { name: 'a reset', greet: socket => socket.resetAndDestroy() },
    ];
    for (const { name, greet } of greetings) {
      it(`answers 503 to ${name}`, async () => {
        const sockets = new Set<Socket>();
        const server = createServer(socket => {
          sockets.add(socket);
          socket.on('error', () => undefined);
          greet(socket);
        }).listen(0, '127.0.0.1');
        await once(server, 'listening');
        const authz = `127.0.0.1:${(server.address() as AddressInfo).port}`;
        const envoy = await startEnvoy({ upstream: upstream.port, authz });
        try {
          expectUnavailable([await ask(envoy)]);
        } finally {
          await envoy.stop();
          for (const socket of sockets) socket.destroy();
          server.close();
        }
      });
    }
  });

  describe('two authorizers behind one Envoy', () => {
    let authentication: TestIssuer;

    before(async () => {
      authentication = await startIssuer();
    });
    after(() => authentication.stop());

    it('loses no request once one is dead (SIGKILL), on every Envoy', async () => {
      const config = configuration(authentication.jwksUrl);
      const [one, two] = await Promise.all([startServiceProcess(config), startServiceProcess(config)]);
      const authz = [one.address, two.address];
      const envoys = await Promise.all(
        envoyVersions.map(version => startEnvoy({ version, upstream: upstream.port, authz })),
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
      const envoy = await startEnvoy({ upstream: upstream.port, authz: [one.address, two.address] });
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
      const authentication = await startIssuer();
      const listen = `unix:${join(tmpdir(), `authz-${randomUUID()}.sock`)}`;
      const service = await startServiceProcess({ ...configuration(authentication.jwksUrl), listen });
      const envoy = await startEnvoy({ upstream: upstream.port, authz: service.address });
      try {
        expect((await ask(envoy)).status).to.equal(200);
        upstream.clear();
        expect(await service.stop()).to.equal(0);
        expectUnavailable([await ask(envoy)]);
      } finally {
        await Promise.all([envoy.stop(), service.kill(), authentication.stop()]);
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
