// A real gRPC service behind Envoy with the bootstraps of `render --upstream-protocol`: calls reach it with the identity headers, and a
// client gets the gRPC status of each kind of refusal.
import { Client, credentials, Metadata, Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { envoyVersions, type RunningEnvoy, startRenderedEnvoy } from '../../lab/envoy.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { useRunning } from '../support/use-running.ts';
import { configuration, identity, reasonOf, useLab } from './lab.ts';

const asIs = (bytes: Buffer): Buffer => bytes;
const routes = [{ path: '/orders.v1.Orders/*' }, { path: '/billing.v1.Billing/:method/:account_id' }];

interface GrpcService {
  readonly port: number;
  /** The metadata of the calls that reached it. */
  readonly calls: Metadata[];
  stop(): void;
}

async function startGrpcService(): Promise<GrpcService> {
  const server = new Server();
  const calls: Metadata[] = [];
  const method = { path: '/orders.v1.Orders/Get', requestStream: false, responseStream: false };
  const raw = { requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs };
  server.addService(
    { Get: { ...method, ...raw } },
    {
      Get(call: { metadata: Metadata; request: Buffer }, answer: (error: null, message: Buffer) => void) {
        calls.push(call.metadata);
        answer(null, call.request);
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, calls, stop: () => server.forceShutdown() };
}

interface Outcome {
  readonly code: number;
  readonly reason: unknown;
}

function call(port: number, path: string, fields: Readonly<Record<string, string>>): Promise<Outcome> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
  return new Promise(resolve => {
    const done = (error: ServiceError | null, message?: Buffer): void => {
      client.close();
      if (error === null) resolve({ code: status.OK, reason: String(message) });
      else resolve({ code: error.code, reason: reasonOf({ body: error.details }) });
    };
    client.makeUnaryRequest(path, asIs, asIs, Buffer.from('hello'), metadata, { deadline: Date.now() + 10_000 }, done);
  });
}

describe('a gRPC service behind Envoy', () => {
  const suite = useLab({ routes });
  // Nobody listens on port 9 (RFC 863).
  const keyless = { ...configuration('http://127.0.0.1:9/jwks.json'), routes };
  const withoutKeys = useRunning(async () => {
    const service = await startServiceProcess(keyless, { ready: false });
    return { ...service, stop: service.kill };
  });
  const upstream = useRunning(startGrpcService);
  beforeEach(() => void upstream.calls.splice(0));

  async function start(version: string, protocol: string, authz: string): Promise<RunningEnvoy> {
    const config = { ...configuration('https://auth.example.com/jwks'), routes, listen: authz };
    return startRenderedEnvoy(config, { version, upstream: upstream.port }, ['--upstream-protocol', protocol]);
  }

  for (const version of envoyVersions) {
    for (const protocol of ['http2', 'auto']) {
      describe(`--upstream-protocol ${protocol}, Envoy ${version}`, () => {
        const envoy = useRunning(() => start(version, protocol, suite.lab.service.address));

        it('gets a call with the identity of the caller and without the token', async () => {
          const forged = { authorization: suite.owner, 'x-auth-uid': 'evil' };
          expect(await call(envoy.port, '/orders.v1.Orders/Get', forged)).to.deep.equal({
            code: status.OK,
            reason: 'hello',
          });
          const [metadata, ...more] = upstream.calls;
          expect(more).to.deep.equal([]);
          for (const [name, value] of identity) expect(metadata?.get(name)).to.deep.equal([value]);
          expect(metadata?.get('authorization')).to.deep.equal([]);
        });

        const get = '/orders.v1.Orders/Get';
        const by = (account?: string) => () => ({
          authorization: suite.owner,
          ...(account === undefined ? {} : { 'x-account-id': account }),
        });
        const refused = [
          ['no token', get, () => ({}), status.UNAUTHENTICATED, 'token_missing'],
          ['a bad token', get, () => ({ authorization: 'Bearer x' }), status.UNAUTHENTICATED, 'token_invalid'],
          ['another account', get, by('acct2'), status.PERMISSION_DENIED, 'account_mismatch'],
          ['an unknown route', '/billing.v1.Billing/Get', by(), status.NOT_FOUND, 'route_unknown'],
          ['two accounts in one header', get, by('acct1,acct1'), status.INVALID_ARGUMENT, 'request_invalid'],
        ] as const;
        for (const [name, path, fields, code, reason] of refused) {
          it(`answers a call with ${name} with ${status[code]}`, async () => {
            expect(await call(envoy.port, path, fields())).to.deep.equal({ code, reason });
            expect(upstream.calls).to.deep.equal([]);
          });
        }

        it('P-063 answers a call to a service without a route with UNIMPLEMENTED', async () => {
          const { code } = await call(envoy.port, '/other.v1.Other/Get', { authorization: suite.owner });
          expect(code).to.equal(status.UNIMPLEMENTED);
        });
      });
    }

    it(`answers UNAVAILABLE without signing keys, and while account-authz is down, Envoy ${version}`, async () => {
      const envoy = await start(version, 'http2', withoutKeys.address);
      const away = await start(version, 'http2', '127.0.0.1:9');
      const fields = { authorization: suite.owner };
      expect(await call(envoy.port, '/orders.v1.Orders/Get', fields)).to.deep.equal({
        code: status.UNAVAILABLE,
        reason: 'keys_unavailable',
      });
      expect((await call(away.port, '/orders.v1.Orders/Get', fields)).code).to.equal(status.UNAVAILABLE);
      expect(upstream.calls).to.deep.equal([]);
      await Promise.all([envoy.stop(), away.stop()]);
    });
  }
});
