// docs/example: its table of requests passes `account-authz test`, and a real Envoy answers each request in the same way.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { startRenderedEnvoy } from '../../lab/envoy.ts';
import { exchange, type HttpAnswer, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { until } from '../../lab/until.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, installEnvoys, onlyRequestOf, reasonOf, startIssuer } from './lab.ts';

interface Case {
  readonly name: string;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly request: {
    readonly method?: string;
    readonly host: string;
    readonly path: string;
    readonly headers?: Readonly<Record<string, string>>;
  };
  readonly expect: string;
}

const folder = fileURLToPath(new URL('../../docs/example/', import.meta.url));
const settings = parse(readFileSync(`${folder}config.yaml`, 'utf8'));
const { cases } = parse(readFileSync(`${folder}cases.yaml`, 'utf8')) as { readonly cases: readonly Case[] };
const [{ issuer, audiences }] = settings.issuers;

describe('the example of docs/example', () => {
  before(installEnvoys);
  const authentication = useRunning(startIssuer);
  const upstream = useRunning(startRecordingUpstream);
  const config = () => {
    // Both issuers publish the key of `bearer`.
    const { jwksUrl } = authentication;
    const issuers = settings.issuers.map((each: object) => ({ ...each, discoveryUrl: undefined, jwksUrl }));
    const addresses = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', shutdown: { graceSeconds: 0 } };
    return JSON.parse(JSON.stringify({ ...settings, issuers, ...addresses }));
  };
  const service = useRunning(() => startServiceProcess(config()));
  const envoy = useRunning(() => {
    return startRenderedEnvoy({ ...config(), listen: service.address }, { upstream: upstream.port });
  });
  beforeEach(() => upstream.clear());

  it('passes account-authz test', async () => {
    const { code, stdout } = await runCommand('test', ['--config', `${folder}config.yaml`, `${folder}cases.yaml`]);
    expect(stdout).to.include(`# ${cases.length} passed, 0 failed`);
    expect(code).to.equal(0);
  });

  async function send({ claims, request }: Pick<Case, 'claims' | 'request'>): Promise<HttpAnswer> {
    const { method = 'GET', host, path, headers = {} } = request;
    const own = { uid: undefined, app: undefined, acc: undefined, role: undefined };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    lines.push(`authorization: ${await bearer({ ...own, iss: issuer, aud: audiences[0], ...claims })}`);
    return exchange(envoy.port, requestBytes(method, path, lines).replace('Host: api.test', `Host: ${host}`));
  }

  const ids: Readonly<Record<string, string>> = {
    'the partner does not speak for acme': 'C-080 ',
    'the owner of one tenant is a member in the other': 'C-081 ',
    'the subdomain and the path name one tenant': 'C-082 ',
  };
  // What Envoy itself refuses has the status alone.
  const statusOf: Readonly<Record<string, number>> = { allowed: 200, request_invalid: 400, route_unknown: 404 };
  for (const each of cases) {
    it(`${ids[each.name] ?? ''}is answered ${each.expect} by Envoy: ${each.name}`, async () => {
      const answer = await send(each);
      const status = statusOf[each.expect];
      if (status === undefined) expect(reasonOf(answer)).to.equal(each.expect);
      else expect(answer.status).to.equal(status);
      expect(upstream.requests).to.have.length(each.expect === 'allowed' ? 1 : 0);
    });
  }

  it('tells the API, the log and the access log of Envoy who acts for the user', async () => {
    const staff = cases.find(({ claims }) => 'act' in claims);
    if (staff === undefined) throw new Error('no such case');
    const [requestId = ''] = headerValues(await send(staff), 'x-request-id');
    expect(onlyRequestOf(upstream).headers.map(([name, value]) => `${name}: ${value}`)).to.include.members([
      'x-auth-uid: alice',
      'x-auth-acc: globex',
      'x-auth-role: member',
      'x-auth-actor: sam',
    ]);
    // Envoy has its answer before the line can be read.
    await until(() => service.log().some(({ actor }) => actor === 'sam'));
    const line = service.log().findLast(({ actor }) => actor === 'sam');
    const identity = { decision: 'allow', uid: 'alice', app: 'support', acc: 'globex', role: 'member', actor: 'sam' };
    expect(line).to.include(identity);
    expect(await envoy.accessLogLine(requestId)).to.include({ ...identity, iss: issuer });
  });
});
