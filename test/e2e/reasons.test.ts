// Every reason through a real Envoy is the same in the answer, the log, the metrics, Envoy's access log, and the output of `explain` for
// the request and for the log line.
import { expect } from 'chai';
import { runProduct } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { renderedEnvoyOf } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { secrets } from '../../lab/secrets.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import type { TestIssuer } from '../../lab/test-issuer.ts';
import { audience } from '../../lab/token.ts';
import { type Reason, refusalAnswers } from '../../src/authz/refusal.ts';
import { explanationOf } from '../offline/explain/explain-lab.ts';
import { bearer, configuration, reasonOf, startIssuer } from './lab.ts';

// Unique values: each output may show them only as documented, and the secret scan finds them elsewhere.
const identity = {
  uid: secrets.fresh('identity'),
  app: secrets.fresh('identity'),
  acc: secrets.fresh('identity'),
  role: secrets.fresh('identity'),
};
const unverified = { uid: secrets.fresh('claim'), app: secrets.fresh('claim'), role: secrets.fresh('claim') };
const query = `session=${secrets.fresh('query string')}`;
const cookie = `Cookie: session=${secrets.fresh('header')}`;

const path = `/api/subscriptions/accounts/${identity.acc}`;
const silentIssuer = 'https://deaf.test';

// No request makes the product itself fail, so the fault is injected into the runtime below it: for one token, with a message that quotes it.
const faultMark = 'ZmF1bHRz';
const faultySegment = `${faultMark}${secrets.fresh('token')}`;
const faultyRuntime = `
  const from = Buffer.from;
  Buffer.from = function (value, ...rest) {
    if (/^${faultMark}[A-Za-z0-9_-]{24}$/.test(value)) throw new TypeError('a broken runtime has read ' + value);
    return from.call(this, value, ...rest);
  };`;
const nodeOptions = [`--import=data:text/javascript,${encodeURIComponent(faultyRuntime)}`];

interface Row {
  readonly reason: Reason | 'allowed';
  readonly decision: string;
  readonly exitCode: number;
  readonly method?: string;
  readonly target?: string;
  /** The token is in the cookie. */
  readonly isCookie?: true;
  readonly authorization: () => Promise<string> | string;
}

const expired = (): Record<string, number> => {
  const now = Math.floor(Date.now() / 1000);
  return { iat: now - 900, exp: now - 300 };
};

const bearerOf = (claims: Readonly<Record<string, unknown>> = {}): Promise<string> =>
  bearer({ ...identity, scope: 'api', ...claims });

const rows: readonly Row[] = [
  { reason: 'allowed', decision: 'allow', exitCode: 0, authorization: () => bearerOf() },
  { reason: 'request_invalid', decision: 'deny', exitCode: 3, target: `${path};v=1`, authorization: () => bearerOf() },
  {
    reason: 'route_unknown',
    decision: 'deny',
    exitCode: 3,
    target: '/api/subscriptions',
    authorization: () => bearerOf(),
  },
  { reason: 'token_missing', decision: 'deny', exitCode: 3, authorization: () => '' },
  {
    reason: 'token_invalid',
    decision: 'deny',
    exitCode: 3,
    authorization: async () => `${await bearerOf(unverified)}A`,
  },
  { reason: 'token_expired', decision: 'deny', exitCode: 3, authorization: () => bearerOf(expired()) },
  { reason: 'token_revoked', decision: 'deny', exitCode: 3, authorization: () => bearerOf({ jti: 'revoked' }) },
  {
    reason: 'origin_forbidden',
    decision: 'deny',
    exitCode: 3,
    method: 'POST',
    isCookie: true,
    authorization: () => bearerOf(),
  },
  { reason: 'app_forbidden', decision: 'deny', exitCode: 3, authorization: () => bearerOf({ app: 'cli' }) },
  {
    reason: 'role_forbidden',
    decision: 'deny',
    exitCode: 3,
    method: 'DELETE',
    authorization: () => bearerOf({ role: 'member' }),
  },
  { reason: 'account_mismatch', decision: 'deny', exitCode: 3, authorization: () => bearerOf({ acc: 'acct2' }) },
  {
    reason: 'account_required',
    decision: 'deny',
    exitCode: 3,
    target: '/api/subscriptions/items',
    authorization: () => bearerOf({ acc: [identity.acc, 'acct2'] }),
  },
  { reason: 'scope_forbidden', decision: 'deny', exitCode: 3, authorization: () => bearerOf({ scope: 'other' }) },
  {
    reason: 'keys_unavailable',
    decision: 'unavailable',
    exitCode: 4,
    authorization: () => bearerOf({ ...unverified, iss: silentIssuer }),
  },
  {
    reason: 'internal',
    decision: 'unavailable',
    exitCode: 4,
    authorization: () => `Bearer ${[faultySegment, faultySegment, faultySegment].join('.')}`,
  },
];

describe('reasons', () => {
  let authentication: TestIssuer;
  let upstream: RecordingUpstream;
  let service: ServiceProcess;
  let envoy: RunningEnvoy;
  let configFile: string;
  let cookieConfigFile: string;

  before(async () => {
    authentication = await startIssuer();
    upstream = await startRecordingUpstream();
    const [unusedPort] = await freePorts(1);
    const base = configuration(authentication.jwksUrl);
    const deaf = { issuer: silentIssuer, audiences: [audience], jwksUrl: `http://127.0.0.1:${unusedPort}/jwks.json` };
    const config = {
      ...base,
      issuers: [...(base.issuers as unknown[]), deaf],
      routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }, { path: '/api/subscriptions/items/*' }],
      scopes: { api: ['*'] },
      roles: { [identity.role]: ['*'], member: ['GET'] },
      apps: [identity.app],
      revocation: { file: writeFixture('revoked.jsonl', '{"jti":"revoked"}\n') },
    };
    configFile = writeFixture('reasons.json', config);
    const inCookie = { from: [{ cookie: 'token' }], origins: ['https://app.example.com'] };
    cookieConfigFile = writeFixture('reasons-cookie.json', { ...config, token: inCookie });
    const token = { ...inCookie, from: ['authorization', ...inCookie.from] };
    service = await startServiceProcess({ ...config, token }, { nodeOptions });
    const shown = writeFixture('reasons-shown.json', {
      ...config,
      token,
      routes: [{ path: '/api/subscriptions/*' }],
      listen: service.address,
    });
    envoy = await startEnvoy({
      bootstrap: await renderedEnvoyOf(shown, []),
      upstream: upstream.port,
      authz: service.address,
    });
  });
  after(() => Promise.all([envoy.stop(), service.kill(), upstream.stop(), authentication.stop()]));

  const counted = async ({ decision, reason }: Row): Promise<number> => {
    const page = await (await fetch(`http://127.0.0.1:${service.adminPort}/metrics`)).text();
    const line = new RegExp(`^account_authz_checks_total\\{decision="${decision}",reason="${reason}"\\} (\\d+)$`, 'm');
    return Number(line.exec(page)?.[1] ?? 0);
  };

  it('each have a case here', () => {
    expect(rows.map(({ reason }) => reason)).to.have.members(['allowed', ...Object.keys(refusalAnswers)]);
  });

  for (const row of rows) {
    const { reason, decision, exitCode, method = 'GET', isCookie = false } = row;
    const target = `${row.target ?? path}?${query}`;
    it(`${reason} is the same in the answer, the logs, the metrics and explain`, async () => {
      const before = await counted(row);
      const authorization = await row.authorization();
      const sent = isCookie ? authorization.replace('Bearer ', 'Cookie: token=') : `Authorization: ${authorization}`;
      const answer = await exchange(envoy.port, requestBytes(method, target, [sent, cookie]));
      const [requestId = ''] = headerValues(answer, 'x-request-id');
      const [line, accessLine] = await Promise.all([service.logLine(requestId), envoy.accessLogLine(requestId)]);
      const asked = [
        '--config',
        isCookie ? cookieConfigFile : configFile,
        '--method',
        method,
        '--path',
        target,
        '--header',
        cookie,
      ];
      const explained = await runProduct(['explain', '--json', ...asked], { input: authorization, nodeOptions });

      expect(reasonOf(answer) ?? 'allowed').to.equal(reason);
      expect(line).to.include({ decision, reason, msg: 'check' });
      expect(accessLine).to.include({ decision, reason, status: answer.status });
      expect(await counted(row)).to.equal(before + 1);
      expect(explained.code).to.equal(exitCode);
      expect(explanationOf(explained)).to.include({ decision, reason, status: answer.status });
    });
  }
});
