// Account headers, and the headers by which frameworks override method or path, are as protected as identity headers: no
// spelling reaches the upstream unchecked, neither as a header nor as a trailer.
import { expect } from 'chai';
import type { Document } from 'yaml';
import { envoyVersions } from '../../lab/envoy.ts';
import { connectionManagerPath, renderedEnvoy, upstreamProtocolPath } from '../../lab/envoy-bootstrap.ts';
import { exchange, type HttpAnswer, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { until } from '../../lab/until.ts';
import { useRunning } from '../support/use-running.ts';
import { expectRefusal, onlyRequestOf, useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';

// Every character of a header name that is neither letter nor digit (RFC 9110 section 5.6.2), except the underscore, which Envoy refuses.
const signs = [..."!#$%&'*+.^`|~"];
const overrides = [
  ...'x-http-method-override x-http-method x-method-override x-original-url x-rewrite-url'.split(' '),
  ...'x-script-name script-name x-forwarded-prefix'.split(' '),
];

const accountLookAlikes = [
  ...signs.map(sign => `x${sign}account${sign}id`),
  'x.account-id',
  'x-account.id',
  'X.Account~Id',
];
const overrideLookAlikes = overrides.flatMap(name => [
  ...['!', '.', '~'].map(sign => name.replaceAll('-', sign)),
  name.replace('-', '.'),
  name.replace(/-(?=[^-]*$)/, '.'),
]);
const underscored = ['x_account_id', 'x-account_id', 'x_http_method_override', 'x-http_method', 'X_METHOD-OVERRIDE'];

/** In lower case, as HTTP/2 requires. */
const trailerNames = ['x-account-id', ...accountLookAlikes, ...overrides, ...overrideLookAlikes, 'authorization'].map(
  name => name.toLowerCase(),
);
const trailers = { ...Object.fromEntries(trailerNames.map(name => [name, 'evil'])), 'x-checksum': 'good' };
const trailerLines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);

/** Enables HTTP/1.1 trailers. */
function withHttp1Trailers(bootstrap: Document): void {
  bootstrap.setIn([...connectionManagerPath(bootstrap), 'http_protocol_options', 'enable_trailers'], true);
  bootstrap.setIn(upstreamProtocolPath(bootstrap), { http_protocol_options: { enable_trailers: true } });
}

describe('account and override headers', () => {
  const suite = useLab();
  const { expectNothingReached } = suite;

  const expectNoneOfIt = (): void => {
    expect(JSON.stringify(onlyRequestOf(suite.lab.upstream))).not.to.include('evil');
  };
  const expectGoodTrailerOnly = (): void => {
    expectNoneOfIt();
    const fields = onlyRequestOf(suite.lab.upstream).trailers.map(([name, value]) => [name.toLowerCase(), value]);
    expect(fields).to.deep.equal([['x-checksum', 'good']]);
  };

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const shipped = useRunning(() => suite.start({ version }));
      const withGrpc = useRunning(async () =>
        suite.start({ version, bootstrap: await renderedEnvoy('--upstream-protocol', 'auto') }),
      );
      const withTrailers = useRunning(() => suite.start({ version, edit: withHttp1Trailers }));

      const send = (line: string, target = path): Promise<HttpAnswer> =>
        exchange(
          shipped.port,
          requestBytes('POST', target, [`Authorization: ${suite.owner}`, line, 'Content-Length: 0']),
        );
      const sendHttp2 = (headers: Record<string, string>, more: Record<string, unknown> = {}, port = shipped.port) =>
        http2Exchange(port, {
          headers: { ':path': path, ':method': 'POST', authorization: suite.owner, ...headers },
          ...more,
        });
      const chunked = (port: number, lines: readonly string[] = []): Promise<HttpAnswer> => {
        const head = requestBytes('POST', path, [
          `Authorization: ${suite.owner}`,
          'Transfer-Encoding: chunked',
          'Trailer: x-account-id',
          ...lines,
        ]);
        return exchange(port, `${head}3\r\nabc\r\n0\r\n${trailerLines.join('')}\r\n`);
      };

      for (const name of accountLookAlikes) {
        it(`O-028 refuses ${name}, also with the account of the token`, async () => {
          for (const account of ['evil', 'acct1']) {
            expectRefusal(await send(`${name}: ${account}`), 400, 'request_invalid');
            const answer = await sendHttp2({ [name.toLowerCase()]: account, 'x-account-id': 'acct1' });
            expectRefusal(answer, 400, 'request_invalid');
          }
          expectNothingReached();
        });
      }

      for (const name of underscored) {
        it(`lets Envoy refuse ${name}`, async () => {
          expect((await send(`${name}: evil`)).status).to.equal(400);
          expectNothingReached();
        });
      }

      for (const name of [...overrides, ...overrideLookAlikes]) {
        it(`O-015 removes ${name}`, async () => {
          expect((await send(`${name}: evil`)).status).to.equal(200);
          expectNoneOfIt();
          suite.lab.upstream.clear();
          expect((await sendHttp2({ [name]: 'evil' })).status).to.equal(200);
          expectNoneOfIt();
        });
      }

      it('passes other names that only resemble them', async () => {
        const names = 'x-http-methods x-method x.accountid my.account.id x-original-urls x-https-method'.split(' ');
        for (const name of names) {
          suite.lab.upstream.clear();
          expect((await send(`${name}: good`)).status, name).to.equal(200);
          expect(onlyRequestOf(suite.lab.upstream).headers).to.deep.include([name, 'good']);
        }
      });

      it('O-015, O-028 sends no trailer to an HTTP/1.1 upstream', async () => {
        const sent = [() => sendHttp2({}, { body: 'abc', trailers }), () => chunked(shipped.port)];
        for (const send of sent) {
          suite.lab.upstream.clear();
          await send();
          expectNoneOfIt();
          expect(onlyRequestOf(suite.lab.upstream).trailers).to.deep.equal([]);
        }
      });

      const grpc = { te: 'trailers', 'content-type': 'application/grpc' };
      const forwarded: Readonly<Record<string, () => Promise<unknown>>> = {
        'HTTP/1.1 if Envoy forwards these': () => chunked(withTrailers.port),
        'HTTP/2 if an HTTP/1.1 upstream gets trailers': () =>
          sendHttp2({}, { body: 'abc', trailers }, withTrailers.port),
        'a gRPC call if gRPC is enabled': () => sendHttp2(grpc, { body: Buffer.alloc(5), trailers }, withGrpc.port),
      };
      for (const [name, send] of Object.entries(forwarded)) {
        it(`O-015, O-028 removes them from the trailers of ${name}`, async () => {
          await send();
          expectGoodTrailerOnly();
        });
      }

      for (const name of ['x_account_id', 'x-http-method_override']) {
        it(`does not pass the trailer ${name} of a gRPC call`, async () => {
          const answer = await sendHttp2(grpc, { body: Buffer.alloc(5), trailers: { [name]: 'evil' } }, withGrpc.port);
          expect(answer.status).to.be.oneOf([400, 0]);
          // Headers and body may arrive before the trailers; wait for them, so that late ones do not reach the next test.
          await until(() => suite.lab.upstream.requests.length > 0, 500).catch(() => undefined);
          expect(JSON.stringify(suite.lab.upstream.requests)).not.to.include('evil');
        });
      }
    });
  }
});
