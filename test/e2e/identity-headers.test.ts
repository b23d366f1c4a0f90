// No client header under our prefix reaches the upstream, in any spelling, on any route, on every supported Envoy;
// the upstream gets exactly our headers.
import { expect } from 'chai';
import type { Document } from 'yaml';
import { envoyVersions, type RunningEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath, httpFilterPath, renderedEnvoy } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, type HttpAnswer, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { until } from '../../lab/until.ts';
import { rawHttp2Exchange } from '../support/raw-http2.ts';
import { useRunning } from '../support/use-running.ts';
import { identity, onlyRequestOf, ownedFields, useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
/** An empty gRPC message. */
const body = Buffer.alloc(5);

/** Header lines of HTTP/1.1 with a forged value. `refused`: Envoy itself refuses the request while underscores are rejected. */
const forgedLines: readonly { readonly name: string; readonly lines: readonly string[]; readonly refused?: boolean }[] =
  [
    { name: 'O-001 a value', lines: ['x-auth-acc: evil'] },
    { name: 'O-002 two lines', lines: ['x-auth-acc: evil', 'x-auth-acc: evil2'] },
    { name: 'O-003 odd case', lines: ['X-Auth-Acc: evil', 'x-AUTH-uid: evil', 'X-AUTH-ROLE: evil'] },
    { name: 'O-006 all five', lines: identity.map(([name]) => `${name}: evil`) },
    {
      name: 'O-007 another name under the prefix',
      lines: ['x-auth-email: evil', 'X-Auth-: evil', "x-auth-a.b!#$%&'*+^`|~: evil"],
    },
    { name: 'a list', lines: ['x-auth-acc: evil, acct1'] },
    { name: 'an empty value', lines: ['x-auth-acc:', 'x-auth-email:'] },
    { name: 'a tab before the value', lines: ['x-auth-acc:\tevil\t'] },
    { name: 'a folded line', lines: ['x-auth-acc: evil', ' evil'] },
    { name: 'a line that ends in a bare line feed', lines: ['x-other: a\nx-auth-acc: evil'] },
    { name: 'a carriage return in the value', lines: ['x-auth-acc: a\rx-auth-acc: evil'] },
    { name: 'a Connection header that names ours', lines: ['Connection: x-auth-acc, x-auth-uid', 'x-auth-acc: evil'] },
    { name: 'O-026 underscores', lines: ['x_auth_acc: evil'], refused: true },
    { name: 'O-026 one underscore', lines: ['x-auth_acc: evil'], refused: true },
    { name: 'O-026 the other underscore, in capitals', lines: ['X_AUTH-ACC: evil'], refused: true },
    { name: 'O-026 underscores in another name under the prefix', lines: ['x_auth_email: evil'], refused: true },
  ];

/** Malformed header lines: refused with every setting. */
const brokenLines: readonly { readonly name: string; readonly lines: readonly string[] }[] = [
  { name: 'O-005 a space before the colon', lines: ['x-auth-acc : evil'] },
  { name: 'O-005 a NUL in the name', lines: ['x-auth-acc\0: evil'] },
  { name: 'O-005 a NUL in the value', lines: ['x-auth-acc: evil\0'] },
  { name: 'a line without a colon', lines: ['x-auth-acc'] },
];

/** Underscores allowed and no early removal in Envoy, which shows all headers: only the product removes them. */
function withoutEarlyRemoval(bootstrap: Document): void {
  allowUnderscores(bootstrap);
  bootstrap.deleteIn([...connectionManagerPath(bootstrap), 'early_header_mutation_extensions']);
  bootstrap.deleteIn([...httpFilterPath(bootstrap, 'envoy.filters.http.ext_authz'), 'allowed_headers']);
}

/** The mistakes of O-022 and O-023: a filter that fails open without an authorizer, and an unchecked route. */
function withoutTheCheck(bootstrap: Document): void {
  allowUnderscores(bootstrap);
  const manager = connectionManagerPath(bootstrap);
  bootstrap.setIn([...httpFilterPath(bootstrap, 'envoy.filters.http.ext_authz'), 'failure_mode_allow'], true);
  const onlyAllowed = httpFilterPath(bootstrap, 'envoy.filters.http.rbac').slice(0, -1);
  bootstrap.deleteIn(onlyAllowed);
  const routes = [...manager, 'route_config', 'virtual_hosts', 0, 'routes'];
  const last = bootstrap.getIn([...routes, 1, 'typed_per_filter_config', 'envoy.filters.http.ext_authz']);
  bootstrap.setIn([...routes, 1], {
    match: { prefix: '/' },
    route: { cluster: 'upstream' },
    typed_per_filter_config: { 'envoy.filters.http.ext_authz': last },
  });
}

function allowUnderscores(bootstrap: Document): void {
  bootstrap.setIn(
    [...connectionManagerPath(bootstrap), 'common_http_protocol_options', 'headers_with_underscores_action'],
    'ALLOW',
  );
}

describe('forged identity headers', () => {
  const suite = useLab();
  const authorization = (): string => `Authorization: ${suite.owner}`;

  const ask = (envoy: RunningEnvoy, lines: readonly string[] = [], target = path): Promise<HttpAnswer> =>
    exchange(envoy.port, requestBytes('GET', target, [authorization(), ...lines]));
  const expectOnly = (fields: typeof identity): void => {
    const request = onlyRequestOf(suite.lab.upstream);
    expect(ownedFields(request)).to.deep.equal(fields);
    expect(JSON.stringify(request)).not.to.include('evil');
  };
  const expectOursOnly = (): void => expectOnly(identity);
  const expectRefused = (answer: Pick<HttpAnswer, 'status'>): void => {
    // 0: Envoy closes the HTTP/2 connection on such a field.
    expect(answer.status).to.be.oneOf([400, 0]);
    suite.expectNothingReached();
  };

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const shipped = useRunning(() => suite.start({ version }));
      const withGrpc = useRunning(async () =>
        suite.start({ version, bootstrap: await renderedEnvoy('--upstream-protocol', 'auto') }),
      );
      const bare = useRunning(() => suite.start({ version, edit: withoutEarlyRemoval }));
      const unchecked = useRunning(async () =>
        suite.start({ version, authz: `127.0.0.1:${(await freePorts(1))[0]}`, edit: withoutTheCheck }),
      );

      describe('with envoy.yaml as shipped', () => {
        for (const { name, lines, refused = false } of forgedLines) {
          it(`${refused ? 'refuses' : 'replaces'} ${name}`, async () => {
            const answer = await ask(shipped, lines);
            if (refused) expectRefused(answer);
            else expectOursOnly();
          });
        }

        for (const { name, lines } of brokenLines) {
          it(`refuses ${name}`, async () => {
            expectRefused(await ask(shipped, lines));
          });
        }

        it('replaces look-alikes of our names with other characters', async () => {
          const lines = ['x.auth.acc: evil', 'x-auth.acc: evil', 'x~auth-acc: evil'];
          await ask(shipped, lines);
          expectOursOnly();
        });

        it('O-010 O-025 sends each identity header of the token byte for byte, once, and no Authorization', async () => {
          await ask(shipped);
          const request = onlyRequestOf(suite.lab.upstream);
          expect(ownedFields(request)).to.deep.equal(identity);
          expect(request.headers.map(([name]) => name.toLowerCase())).not.to.include('authorization');
        });

        it('passes no client header with a refusal', async () => {
          const answer = await exchange(shipped.port, requestBytes('GET', path, ['x-auth-acc: acct1']));
          expect(answer.status).to.equal(401);
          expect(answer.headers.filter(([name]) => name.startsWith('x-auth-'))).to.deep.equal([]);
          suite.expectNothingReached();
        });

        it('L-025 passes no request for an unprotected path to the upstream', async () => {
          const answer = await ask(shipped, ['x-auth-acc: evil'], '/open');
          expect(answer.status).to.equal(404);
          suite.expectNothingReached();
        });

        it('O-027 drops a forged trailer of a chunked request', async () => {
          const lines = [authorization(), 'Transfer-Encoding: chunked', 'Trailer: x-auth-acc'];
          const head = requestBytes('POST', path, lines);
          await exchange(shipped.port, `${head}3\r\nabc\r\n0\r\nx-auth-acc: evil\r\nx-auth-email: evil\r\n\r\n`);
          expectOursOnly();
        });

        it('refuses a name in capitals in an HTTP/2 request', async () => {
          const first = { ':method': 'GET', ':scheme': 'http', ':authority': 'api.test', ':path': path };
          const fields = Object.entries({ ...first, authorization: suite.owner, 'X-Auth-Acc': 'evil' });
          expectRefused(await rawHttp2Exchange(shipped.port, fields));
        });

        const http2 = (envoy: RunningEnvoy, more: Readonly<Record<string, string | string[]>>, trailers = {}) =>
          http2Exchange(envoy.port, { headers: { ...grpcHeaders(), ...more }, body, trailers });
        it('O-027 replaces forged headers and drops forged trailers over HTTP/2, of gRPC and others', async () => {
          const headers = { 'x-auth-acc': ['evil', 'evil2'], 'x-auth-email': 'evil' };
          for (const [envoy, type] of [
            [shipped, 'text/plain'],
            [withGrpc, 'application/grpc'],
          ] as const) {
            suite.lab.upstream.clear();
            await http2(envoy, { ...headers, 'content-type': type }, { 'x-auth-acc': 'evil' });
            expectOursOnly();
          }
        });

        it('refuses an underscore spelling over HTTP/2', async () => {
          expectRefused(await http2(shipped, { x_auth_acc: 'evil' }));
        });

        it('O-027 drops forged trailers of a gRPC call, and only those', async () => {
          const trailers = { 'x-auth-acc': 'evil', 'x.auth.acc': 'evil', 'x-auth-email': 'evil', 'x-checksum': 'good' };
          await http2Exchange(withGrpc.port, { headers: grpcHeaders(), body, trailers });
          expectOursOnly();
          expect(onlyRequestOf(suite.lab.upstream).trailers).to.deep.equal([['x-checksum', 'good']]);
        });

        it('refuses an underscore spelling in the trailers of a gRPC call', async () => {
          const trailers = { x_auth_acc: 'evil' };
          const { status } = await http2Exchange(withGrpc.port, { headers: grpcHeaders(), body, trailers });
          expect(status).to.be.oneOf([400, 0]);
          // Headers and body were allowed and may arrive before the trailers: only the forged name must not arrive.
          // Wait for the late ones, so that they do not reach the next test.
          await until(() => suite.lab.upstream.requests.length > 0, 500).catch(() => undefined);
          expect(JSON.stringify(suite.lab.upstream.requests)).to.not.contain('evil');
        });

        it('O-012 removes headers of Envoy itself, and those that only ext_authz may set', async () => {
          const ofEnvoy = 'original-path internal downstream-service-cluster decorator-operation auth-partial-body';
          const names = `${ofEnvoy} auth-failure-mode-allowed`.split(' ').map(name => `X-Envoy-${name}: evil`);
          await ask(shipped, [...names, 'x-forwarded-client-cert: evil', 'x-request-id: evil']);
          expectOursOnly();
        });
      });

      describe('without early removal in Envoy, with underscores allowed and all headers shown', () => {
        for (const { name, lines } of forgedLines) {
          it(`the product replaces ${name}`, async () => {
            const answer = await ask(bare, lines);
            expect(answer.status).to.equal(200);
            expectOursOnly();
          });
        }

        it('the product replaces all mixtures of underscores at once, without an error', async () => {
          const separators = ['-', '_'];
          const names = separators.flatMap(one => separators.map(two => `x${one}auth${two}`));
          const lines = names.flatMap(prefix =>
            ['uid', 'app', 'acc', 'role', 'iss', 'email'].map(field => `${prefix}${field}: evil`),
          );
          const answer = await ask(bare, lines);
          expect(answer.status).to.equal(200);
          expectOursOnly();
        });
      });

      describe('without a check', () => {
        for (const { name, lines } of forgedLines) {
          it(`O-022 O-023 strips ${name} where the filter fails open and on an unchecked route`, async () => {
            for (const target of [path, '/open']) {
              suite.lab.upstream.clear();
              expect((await ask(unchecked, lines, target)).status).to.equal(200);
              expectOnly([]);
            }
          });
        }
      });
    });
  }

  function grpcHeaders(): Record<string, string> {
    const grpc = { te: 'trailers', 'content-type': 'application/grpc' };
    return { ':path': `${path}/List`, ':method': 'POST', ...grpc, authorization: suite.owner };
  }
});
