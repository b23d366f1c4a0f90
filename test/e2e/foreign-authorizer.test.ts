// Another server in the place of account-authz: whatever it answers, no request that account-authz did not allow reaches the upstream.
import { createServer, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Document, isMap, type YAMLMap, type YAMLSeq } from 'yaml';
import { envoyVersions, startEnvoy } from '../../lab/envoy.ts';
import { clusterPath, connectionManagerPath } from '../../lab/envoy-bootstrap.ts';
import { allowKey } from '../../src/authz/principal.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';
import { filterNames } from '../../src/toolkit/envoy-settings/authz-filter.ts';
import { listen } from '../support/listen.ts';
import { useRunning } from '../support/use-running.ts';
import { useUpstream } from './failure-lab.ts';
import {
  type AnswerCheck,
  allowMessage,
  answersHttp,
  answersMessage,
  answersStatus,
  framed,
  neverAnswers,
  startFakeAuthorizer,
} from './fake-authorizer.ts';
import { identity, onlyRequestOf, ownedFields } from './lab.ts';

describe('another server in the place of account-authz', () => {
  const suite = useUpstream();
  const { ask, expectUnavailable } = suite;

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
      ...[1, 2, 4, 7, 8, 12, 13, 14, 16].map(code => ({ name: `gRPC status ${code}`, answer: answersStatus(code) })),
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
        const fake = useRunning(startFakeAuthorizer);
        const envoy = useRunning(() => startEnvoy({ version, upstream: suite.upstream.port, authz: fake.address }));

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
            expect(suite.upstream.requests).to.deep.equal([]);
          });
        }

        it('passes the product’s own allow, and sends the authorizer no header that it does not use', async () => {
          fake.answerWith(answersMessage(allow));
          expect((await ask(envoy)).status).to.equal(200);
          expect(ownedFields(onlyRequestOf(suite.upstream))).to.deep.equal(identity);
          const names = Object.keys(fake.headers()).sort();
          expect(names).to.deep.equal([':authority', ':method', ':path', ':scheme', 'content-type']);
        });

        it('truncates the body of a refusal at 4096 bytes', async () => {
          const body = 'x'.repeat(5000);
          const refusal = { status: { code: 16 }, denied_response: { status: { code: 401 }, headers: [], body } };
          fake.answerWith(answersMessage(authorizationService.Check.responseSerialize(refusal)));
          expect(await ask(envoy)).to.include({ status: 401, body: 'x'.repeat(4096) });
          expect(suite.upstream.requests).to.deep.equal([]);
        });

        it('answers 500 if the authorizer changes a header that it may not change', async () => {
          const header = {
            header: { key: ':path', value: '/api/subscriptions/accounts/acct2' },
            append: { value: false },
          };
          const allowing = { status: { code: 0 }, ok_response: { headers: [header], headers_to_remove: [] } };
          fake.answerWith(answersMessage(authorizationService.Check.responseSerialize(allowing)));
          expect((await ask(envoy)).status).to.equal(500);
          expect(suite.upstream.requests).to.deep.equal([]);
        });

        const closes: AnswerCheck = stream => stream.session?.destroy();
        const attempts: readonly (readonly [name: string, first: AnswerCheck, attempts: number])[] = [
          ['is unavailable', answersStatus(14), 3],
          ['closes the connection in the middle of a check', closes, 2],
          ['hangs', neverAnswers, 2],
        ];
        for (const [name, first, count] of attempts) {
          it(`asks again, in time, when the authorizer ${name}`, async () => {
            fake.answerWith((stream, attempt) => (attempt < count ? first : answersMessage(allow))(stream, attempt));
            expect((await ask(envoy)).status).to.equal(200);
            expect(fake.attempts()).to.equal(count);
          });
        }

        it('does not retry when the authorizer answers with another error', async () => {
          fake.answerWith(answersStatus(13));
          expectUnavailable([await ask(envoy)]);
          expect(fake.attempts()).to.equal(1);
        });
      });
    }
  });

  // All ext_authz filters of an Envoy write one namespace of metadata, which the guard and the access log read.
  describe('a second authorizer', () => {
    const writing = (words: Readonly<Record<string, string>>): Buffer => {
      const fields = Object.fromEntries(Object.entries(words).map(([name, stringValue]) => [name, { stringValue }]));
      const ok_response = { headers: [], headers_to_remove: [] };
      const answer = { status: { code: 0 }, ok_response, dynamic_metadata: { fields } };
      return authorizationService.Check.responseSerialize(answer);
    };
    const [habit, forged, empty] = [{ decision: 'allow', uid: 'bob' }, { [allowKey]: 'allow' }, {}].map(writing);
    const own = allowMessage();
    type Row = readonly [what: string, other: Buffer | undefined, own: Buffer | undefined, status: number];
    const places: Readonly<Record<string, readonly Row[]>> = {
      'before the check': [
        ['an allow as others write it, then an empty answer', habit, empty, 403],
        ['an allow as others write it, then that of account-authz', habit, own, 200],
        ['what only account-authz writes, then an empty answer', forged, empty, 503],
        ['what only account-authz writes, then its allow', forged, own, 503],
      ],
      'between the check and the guard': [
        ['an empty answer, then an allow as others write it', habit, empty, 403],
        // The one place where the guard believes another: the lint finds such a filter.
        ['an empty answer, then what only account-authz writes', forged, empty, 200],
      ],
      'behind the guard': [['an empty answer, then what only account-authz writes', forged, empty, 403]],
    };
    for (const version of envoyVersions)
      for (const [i, [place, rows]] of Object.entries(places).entries())
        describe(`${place} of Envoy ${version}`, () => {
          const [authz, other] = [useRunning(startFakeAuthorizer), useRunning(startFakeAuthorizer)];
          const edit = (bootstrap: Document) => insertSecond(bootstrap, i, other.address);
          const envoy = useRunning(() =>
            startEnvoy({ version, upstream: suite.upstream.port, authz: authz.address, edit }),
          );
          for (const [what, others, owns, status] of rows)
            it(`answers ${status} to ${what}`, async () => {
              authz.answerWith(answersMessage(owns ?? own));
              other.answerWith(answersMessage(others ?? own));
              expect((await ask(envoy)).status).to.equal(status);
              expect(suite.upstream.requests).to.have.length(status === 200 ? 1 : 0);
            });
        });
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
        });
        const authz = `127.0.0.1:${await listen(server)}`;
        const envoy = await startEnvoy({ upstream: suite.upstream.port, authz });
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
});

/** Asks another server at the place of the check, of the guard, or behind it. */
function insertSecond(bootstrap: Document, place: number, address: string): void {
  const cluster = (bootstrap.getIn(clusterPath(bootstrap, 'account-authz')) as YAMLMap).toJS(bootstrap);
  const [host = '', port] = address.split(':');
  const endpoint = { address: { socket_address: { address: host, port_value: Number(port) } } };
  const load_assignment = { cluster_name: 'second', endpoints: [{ lb_endpoints: [{ endpoint }] }] };
  bootstrap.addIn(
    ['static_resources', 'clusters'],
    bootstrap.createNode({ ...cluster, name: 'second', load_assignment }),
  );
  const type = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz';
  const typed_config = { '@type': type, grpc_service: { envoy_grpc: { cluster_name: 'second' } } };
  const filters = bootstrap.getIn([...connectionManagerPath(bootstrap), 'http_filters']) as YAMLSeq;
  const first = filters.items.findIndex(each => isMap(each) && each.get('name') === filterNames.extAuthz);
  filters.items.splice(first + place, 0, bootstrap.createNode({ name: 'second', typed_config }));
}
