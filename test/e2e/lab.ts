// The whole request path for the end-to-end tests: an issuer, the built product, a recording upstream; each test file adds its Envoys.
import { expect } from 'chai';
import { writeFixture } from '../../lab/config-file.ts';
import {
  type EnvoyOptions,
  envoyBinary,
  envoyVersions,
  type RunningEnvoy,
  startEnvoy,
  startRenderedEnvoy,
} from '../../lab/envoy.ts';
import { expectNoPartOf, tokenPartsOf } from '../../lab/invariants.ts';
import { type HeaderField, type HttpAnswer, headerValues } from '../../lab/raw-http.ts';
import { type RecordedRequest, type RecordingUpstream, startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { audience, issuer, token, uid } from '../../lab/token.ts';
import { useRunning } from '../support/use-running.ts';

/** The five identity headers for the tokens of `bearer`, in the order in which they are set. */
export const identity: readonly HeaderField[] = [
  ['x-auth-uid', uid],
  ['x-auth-app', 'web'],
  ['x-auth-acc', 'acct1'],
  ['x-auth-role', 'owner'],
  ['x-auth-iss', issuer],
];

/** A currently valid Authorization value, by default for account acct1 and role owner. */
export async function bearer(claims: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const value = `Bearer ${await token({ claims: { iat: now - 10, exp: now + 600, ...claims } })}`;
  for (const part of tokenPartsOf(value)) tokenParts.add(part);
  return value;
}

const tokenParts = new Set<string>();

/** Starts everything but Envoy. `config` replaces members of the configuration; an undefined one is left out. */
export async function startLab(config: Readonly<Record<string, unknown>> = {}) {
  const authentication = await startIssuer();
  const upstream = await startRecordingUpstream();
  const stop = (): Promise<unknown> => Promise.all([upstream.stop(), authentication.stop()]);
  try {
    const running = await startServiceProcess({ ...configuration(authentication.jwksUrl), ...config });
    let ended = false;
    const ending = <Result>(end: () => Promise<Result>): (() => Promise<Result>) => {
      return () => {
        ended = true;
        return end();
      };
    };
    const service = { ...running, stop: ending(running.stop), kill: ending(running.kill) };
    return {
      jwksUrl: authentication.jwksUrl,
      service,
      upstream,
      async stop() {
        try {
          if (!ended) await expectAlive(service);
          expectNoPartOf(tokenParts, JSON.stringify(service.log()));
        } finally {
          await service.kill();
          await stop();
        }
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts a lab before the tests of this suite, with every Envoy installed, and stops it after them. Before each test its upstream forgets. */
export function useLab(settings: Readonly<Record<string, unknown>> = {}) {
  let owner: string;
  const lab = useRunning(async () => {
    await installEnvoys();
    owner = await bearer();
    return startLab(settings);
  });
  beforeEach(() => lab.upstream.clear());
  const suite = {
    lab,
    /** A valid Authorization value. */
    get owner(): string {
      return owner;
    },
    /** The configuration of the service, with its address. */
    get config(): Readonly<Record<string, unknown>> {
      return { ...configuration(lab.jwksUrl), ...settings, listen: lab.service.address };
    },
    /** The same, in a file. */
    get file(): string {
      return writeFixture('lab.yaml', suite.config);
    },
    /** The shipped Envoy in front of the service. */
    start: (options?: EnvoyOptions): Promise<RunningEnvoy> =>
      startEnvoy({ upstream: lab.upstream.port, authz: lab.service.address, ...options }),
    /** An Envoy with what `render envoy` prints for the configuration with these options. */
    startRendered: (renderOptions?: readonly string[], options?: EnvoyOptions): Promise<RunningEnvoy> =>
      startRenderedEnvoy(suite.config, { upstream: lab.upstream.port, ...options }, renderOptions),
    expectNothingReached: () => expect(lab.upstream.requests).to.deep.equal([]),
  };
  return suite;
}

// I5: requests through Envoy have left it unharmed. Its other pages are fetched for the secret scan.
async function expectAlive({ adminPort }: ServiceProcess): Promise<void> {
  for (const page of ['/', '/metrics']) await fetch(`http://127.0.0.1:${adminPort}${page}`);
  expect((await fetch(`http://127.0.0.1:${adminPort}/readyz`)).status, 'I5: the service is ready').to.equal(200);
}

export function configuration(jwksUrl: string): Record<string, unknown> {
  return {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    issuers: [{ issuer, audiences: [audience], jwksUrl }],
    routes: [{ path: '/api/subscriptions/*' }, { path: '/api/subscriptions/accounts/:account_id/*', roles: ['owner'] }],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    roles: { owner: ['*'], member: ['GET', 'HEAD'] },
    apps: ['web'],
    shutdown: { graceSeconds: 0 },
  };
}

/** An issuer that publishes the key of `bearer`. */
export async function startIssuer(): Promise<TestIssuer> {
  return startTestIssuer({ keys: [(await signingKey('k1')).publicJwk] });
}

/** Installs every Envoy that these tests use; the first run downloads them. */
export async function installEnvoys(): Promise<void> {
  for (const version of envoyVersions) await envoyBinary(version);
}

/** Every header and trailer that a server could take for one under our prefix, with any separators. */
export function ownedFields(request: RecordedRequest): HeaderField[] {
  return [...request.headers, ...request.trailers].filter(([name]) => /^x[^a-z0-9]auth[^a-z0-9]/i.test(name));
}

/** The only request that reached the upstream. */
export function onlyRequestOf(upstream: RecordingUpstream): RecordedRequest {
  expect(upstream.requests).to.have.length(1);
  const [request] = upstream.requests;
  if (request === undefined) throw new Error('no request');
  return request;
}

/** Asserts that an answer is the product's own refusal: its status, its reason, its form (docs/explain.md). */
export function expectRefusal(answer: HttpAnswer, status: number, reason: string): void {
  expect({ status: answer.status, body: answer.body }).to.deep.include({ status });
  const problem: Record<string, unknown> = JSON.parse(answer.body);
  expect(problem).to.include({ status, reason });
  expect(problem.request_id).to.equal(headerValues(answer, 'x-request-id')[0]);
  expect(headerValues(answer, 'content-type')).to.deep.equal(['application/problem+json']);
  expect(headerValues(answer, 'cache-control')).to.deep.equal(['no-store']);
  expect(
    answer.headers.filter(([name]) => /^x[-_]auth[-_]/i.test(name)),
    'I2: no identity',
  ).to.deep.equal([]);
  expectNoPartOf(tokenParts, JSON.stringify(answer));
}

/** The reason of the product's own refusal; `undefined` if Envoy itself answered. */
export function reasonOf(answer: Pick<HttpAnswer, 'body'>): unknown {
  return answer.body.startsWith('{') ? JSON.parse(answer.body).reason : undefined;
}

/** The pseudo headers of a GET, for requests made field by field. */
export function http2Fields(target: string): [string, string][] {
  return [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':authority', 'api.test'],
    [':path', target],
  ];
}
