// Every reason through a real Envoy is the same in the answer, the log, the metrics, Envoy's access log, and the output of `explain` for
// the request and for the log line.
import { expect } from 'chai';
import { runProduct } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { type RunningEnvoy, startRenderedEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { secrets } from '../../lab/secrets.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { audience } from '../../lab/token.ts';
import { until } from '../../lab/until.ts';
import { type Reason, refusalAnswers } from '../../src/authz/refusal.ts';
import { useRunning } from '../support/use-running.ts';
import { explanationOf } from '../toolkit/explain/explain-lab.ts';
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
  readonly method?: string;
  readonly target?: string;
  /** The token is in the cookie. */
  readonly isCookie?: true;
  /** From here on the list is one by URL that cannot be fetched. */
  readonly isWithoutList?: true;
  readonly authorization: () => Promise<string> | string;
}

const expired = (): Record<string, number> => {
  const now = Math.floor(Date.now() / 1000);
  return { iat: now - 900, exp: now - 300 };
};

const bearerOf = (claims: Readonly<Record<string, unknown>> = {}): Promise<string> =>
  bearer({ ...identity, scope: 'api', ...claims });

const rows: readonly Row[] = [
  { reason: 'allowed', authorization: () => bearerOf() },
  { reason: 'request_invalid', target: `${path};v=1`, authorization: () => bearerOf() },
  { reason: 'route_unknown', target: '/api/subscriptions', authorization: () => bearerOf() },
  { reason: 'token_missing', authorization: () => '' },
  { reason: 'token_invalid', authorization: async () => `${await bearerOf(unverified)}A` },
  { reason: 'token_expired', authorization: () => bearerOf(expired()) },
  { reason: 'token_revoked', authorization: () => bearerOf({ jti: 'revoked' }) },
  { reason: 'origin_forbidden', method: 'POST', isCookie: true, authorization: () => bearerOf() },
  { reason: 'app_forbidden', authorization: () => bearerOf({ app: 'cli' }) },
  { reason: 'role_forbidden', method: 'DELETE', authorization: () => bearerOf({ role: 'member' }) },
  { reason: 'account_mismatch', authorization: () => bearerOf({ acc: 'acct2' }) },
  {
    reason: 'account_required',
    target: '/api/subscriptions/items',
    authorization: () => bearerOf({ acc: [identity.acc, 'acct2'] }),
  },
  { reason: 'scope_forbidden', authorization: () => bearerOf({ scope: 'other' }) },
  { reason: 'keys_unavailable', authorization: () => bearerOf({ ...unverified, iss: silentIssuer }) },
  { reason: 'revocation_unavailable', isWithoutList: true, authorization: () => bearerOf() },
  { reason: 'internal', authorization: () => `Bearer ${Array(3).fill(faultySegment).join('.')}` },
];

function decisionOf(reason: string): { readonly decision: string; readonly exitCode: number } {
  if (reason === 'allowed') return { decision: 'allow', exitCode: 0 };
  const isOpen = reason.endsWith('_unavailable') || reason === 'internal';
  return isOpen ? { decision: 'unavailable', exitCode: 4 } : { decision: 'deny', exitCode: 3 };
}

describe('reasons', () => {
  const authentication = useRunning(startIssuer);
  const upstream = useRunning(startRecordingUpstream);
  let service: ServiceProcess;
  let envoy: RunningEnvoy;
  let configFile: string;
  let cookieConfigFile: string;
  let configWithoutList: Readonly<Record<string, unknown>>;

  before(async () => {
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
    configWithoutList = { ...config, token, revocation: { url: `http://127.0.0.1:${unusedPort}/revoked.jsonl` } };
    const shown = { ...config, token, routes: [{ path: '/api/subscriptions/*' }], listen: service.address };
    envoy = await startRenderedEnvoy(shown, { upstream: upstream.port });
  });
  after(() => Promise.all([envoy.stop(), service.kill()]));

  const counted = async (decision: string, reason: string): Promise<number> => {
    const page = await (await fetch(`http://127.0.0.1:${service.adminPort}/metrics`)).text();
    const line = new RegExp(`^account_authz_checks_total\\{decision="${decision}",reason="${reason}"\\} (\\d+)$`, 'm');
    return Number(line.exec(page)?.[1] ?? 0);
  };

  it('each have a case here', () => {
    expect(rows.map(({ reason }) => reason)).to.have.members(['allowed', ...Object.keys(refusalAnswers)]);
  });

  for (const row of rows) {
    const { reason, method = 'GET', isCookie = false, isWithoutList = false } = row;
    const { decision, exitCode } = decisionOf(reason);
    const target = `${row.target ?? path}?${query}`;
    it(`${reason} is the same in the answer, the logs, the metrics and explain`, async () => {
      const authorization = await row.authorization();
      const sent = isCookie ? authorization.replace('Bearer ', 'Cookie: token=') : `Authorization: ${authorization}`;
      const ask = () => exchange(envoy.port, requestBytes(method, target, [sent, cookie]));
      if (isWithoutList) {
        await service.configure(configWithoutList);
        service.hangUp();
        configFile = writeFixture('reasons-without-list.json', configWithoutList);
        await until(async () => reasonOf(await ask()) === reason);
      }
      const before = await counted(decision, reason);
      const answer = await ask();
      const [requestId = ''] = headerValues(answer, 'x-request-id');
      const [line, accessLine] = await Promise.all([service.logLine(requestId), envoy.accessLogLine(requestId)]);
      const file = isCookie ? cookieConfigFile : configFile;
      const asked = ['explain', '--json', '--config', file, '--method', method, '--path', target, '--header', cookie];
      const explained = await runProduct(asked, { input: authorization, nodeOptions });

      expect(reasonOf(answer) ?? 'allowed').to.equal(reason);
      expect(line).to.include({ decision, reason, msg: 'check' });
      expect(accessLine).to.include({ decision, reason, status: answer.status });
      expect(await counted(decision, reason)).to.equal(before + 1);
      expect(explained.code).to.equal(exitCode);
      expect(explanationOf(explained)).to.include({ decision, reason, status: answer.status });
    });
  }
});
