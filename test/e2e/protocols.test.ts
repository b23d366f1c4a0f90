// Protocols through the whole path: HTTP/2, the protocol that the upstream gets, and upgrades. A gRPC service is in grpc-service.test.ts.
import { expect } from 'chai';
import { envoyVersions } from '../../lab/envoy.ts';
import { renderedEnvoy } from '../../lab/envoy-bootstrap.ts';
import { exchange, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { rawHttp2Exchange } from '../support/raw-http2.ts';
import { useRunning } from '../support/use-running.ts';
import { expectRefusal, http2Fields, identity, onlyRequestOf, ownedFields, useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1/items';
const otherPath = '/api/subscriptions/accounts/acct2/items';

describe('protocols through Envoy', () => {
  const suite = useLab();
  const { expectNothingReached } = suite;

  const authorization = (): string => `Authorization: ${suite.owner}`;

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(() => suite.start({ version }));
      const rendered = async (...options: readonly string[]) =>
        suite.start({ version, bootstrap: await renderedEnvoy(...options) });
      const withGrpc = useRunning(() => rendered('--upstream-protocol', 'auto'));
      const withWebsockets = useRunning(() => rendered('--upgrade', 'websocket'));

      const send = (method: string, target: string, lines: readonly string[] = [], body = '') =>
        exchange(envoy.port, requestBytes(method, target, lines, body));

      describe('HTTP/2', () => {
        it('passes a request to an upstream that speaks HTTP/1.1', async () => {
          const answer = await http2Exchange(envoy.port, { headers: { ':path': path, authorization: suite.owner } });
          expect(answer.status).to.equal(200);
          const request = onlyRequestOf(suite.lab.upstream);
          expect(request).to.include({ httpVersion: '1.1', method: 'GET', path });
          expect(ownedFields(request)).to.deep.equal(identity);
        });

        it('refuses a request without a token', async () => {
          expectRefusal(await http2Exchange(envoy.port, { headers: { ':path': path } }), 401, 'token_missing');
          expectNothingReached();
        });

        it('R-009 closes the connection on an extended CONNECT', async () => {
          const connect = [
            [':method', 'CONNECT'],
            [':protocol', 'websocket'],
          ] as const;
          const fields = [...connect, ...http2Fields(path).slice(1), ['authorization', suite.owner]] as const;
          expect((await rawHttp2Exchange(envoy.port, fields)).status).to.equal(0);
          expectNothingReached();
        });
      });

      describe('content of gRPC', () => {
        const contents = ['', '; charset=utf-8', '-web']
          .map(end => `application/grpc${end}`)
          .concat('APPLICATION/GRPC');
        for (const content of contents) {
          it(`R-021 goes to the upstream over HTTP/1.1 as shipped: ${content}`, async () => {
            const expected = { httpVersion: '1.1', method: 'POST', body: '\0\0\0\0\0' };
            const lines = [authorization(), `Content-Type: ${content}`, 'TE: trailers', 'Connection: TE'];
            expect((await send('POST', path, lines, expected.body)).status).to.equal(200);
            expect(onlyRequestOf(suite.lab.upstream)).to.include(expected);
            suite.lab.upstream.clear();
            const headers = { ':path': path, ':method': 'POST', authorization: suite.owner, te: 'trailers' };
            const body = Buffer.alloc(5);
            const answer = await http2Exchange(envoy.port, { headers: { ...headers, 'content-type': content }, body });
            expect(answer.status).to.equal(200);
            expect(onlyRequestOf(suite.lab.upstream)).to.include(expected);
          });
        }

        it('leaves everything else at HTTP/1.1 if gRPC is enabled', async () => {
          expect((await exchange(withGrpc.port, requestBytes('GET', path, [authorization()]))).status).to.equal(200);
          expect(onlyRequestOf(suite.lab.upstream)).to.include({ httpVersion: '1.1' });
        });
      });

      describe('upgrades', () => {
        const upgrade = [
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: eA==',
        ];

        it('R-020 are refused as shipped, to any protocol, with and without a token', async () => {
          for (const kind of ['spdy/3.1', 'tls/1.0', 'x'])
            expect(
              (await send('GET', path, ['Connection: Upgrade', `Upgrade: ${kind}`, authorization()])).status,
            ).to.equal(403);
          for (const lines of [[...upgrade, authorization()], upgrade])
            expect((await send('GET', path, lines)).status).to.equal(403);
          expect((await send('GET', '/open', upgrade)).status).to.equal(403);
          expectNothingReached();
        });

        it('R-007 R-008 are checked first if websockets are enabled', async () => {
          expectRefusal(await exchange(withWebsockets.port, requestBytes('GET', path, upgrade)), 401, 'token_missing');
          const mismatch = requestBytes('GET', otherPath, [...upgrade, authorization()]);
          expectRefusal(await exchange(withWebsockets.port, mismatch), 403, 'account_mismatch');
          for (const name of ['x-auth-acc', 'X-Auth-Role', 'x-account-id']) {
            const lines = [`Connection: Upgrade, ${name}`, 'Upgrade: websocket', authorization()];
            const answer = await exchange(withWebsockets.port, requestBytes('GET', path, lines));
            expectRefusal(answer, 400, 'request_invalid');
          }
          expectNothingReached();
        });

        it('R-021 to h2c are not forwarded: the request is answered over HTTP/1.1', async () => {
          const lines = [
            'Content-Type: application/grpc',
            'Connection: Upgrade, HTTP2-Settings',
            'Upgrade: h2c',
            'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
          ];
          expect((await send('GET', path, [...lines, authorization()])).status).to.equal(200);
          expect(onlyRequestOf(suite.lab.upstream).httpVersion).to.equal('1.1');
          const names = onlyRequestOf(suite.lab.upstream).headers.map(([name]) => name.toLowerCase());
          for (const name of ['upgrade', 'http2-settings', 'connection']) expect(names).not.to.include(name);
        });
      });
    });
  }
});
