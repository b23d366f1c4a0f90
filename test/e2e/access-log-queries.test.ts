// Runs the queries of docs/envoy-access-log.md on the access log of a real Envoy, which has every kind of request.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { readSnippet } from '../../lab/document.ts';
import { type AccessLogLine, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { uid } from '../../lab/token.ts';
import { answersMessage, startFakeAuthorizer } from './fake-authorizer.ts';
import { bearer, configuration, installEnvoys, startLab } from './lab.ts';

const page = 'docs/envoy-access-log.md';
const own = '/api/subscriptions/accounts/acct1';
const others = '/api/subscriptions/accounts/acct2';
const run = promisify(execFile);

describe('the queries of docs/envoy-access-log.md', () => {
  let directory: string;
  let lines: readonly AccessLogLine[];

  before(async () => {
    await installEnvoys();
    directory = await mkdtemp(join(tmpdir(), 'access-log-'));
    lines = await writtenLines();
    await writeFile(join(directory, 'access.log'), lines.map(line => `${JSON.stringify(line)}\n`).join(''));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  /** The output lines of a query of the page, without the padding of `uniq -c`. */
  const query = async (holding: string, change = (code: string): string => code): Promise<readonly string[]> => {
    const code = change(readSnippet(page, 'sh', holding));
    const { stdout } = await run('bash', ['-c', code], { cwd: directory });
    return stdout
      .trimEnd()
      .split('\n')
      .map(line => line.trim());
  };

  it('shows why a request was refused', async () => {
    const line = lines.find(({ reason }) => reason === 'account_mismatch');
    const printed = await query('REQUEST_ID', code => code.replace('REQUEST_ID', String(line?.requestId)));
    expect(JSON.parse(printed.join(''))).to.deep.equal({
      status: 403,
      decision: 'deny',
      reason: 'account_mismatch',
      acc: 'acct1',
      details: 'ext_authz_denied',
    });
  });

  it('counts the refusals by reason', async () => {
    expect(await query("| .reason' access.log")).to.deep.equal([
      '3 token_missing',
      '2 account_mismatch',
      '1 keys_unavailable',
    ]);
  });

  it('shows who requests accounts of others', async () => {
    expect(await query('account_mismatch')).to.deep.equal([`2 ${uid} of acct1`]);
  });

  it('lists the slowest checks first', async () => {
    const printed = (await query('sort_by')).map(text => Number(text.split(' ')[0]));
    expect(printed).to.have.lengthOf(10);
    expect(printed).to.deep.equal(printed.toSorted((a, b) => b - a));
    expect(printed[0]).to.equal(Math.max(...lines.map(line => Number(line.authzMicroseconds ?? 0))));
  });

  it('prints the quantiles of the check duration', async () => {
    const { checks, p50, p99, max } = JSON.parse((await query('p99')).join(''));
    expect(checks).to.equal(lines.filter(({ authzMicroseconds }) => authzMicroseconds !== null).length);
    expect([p50, p99, max]).to.deep.equal([p50, p99, max].toSorted((a, b) => a - b));
  });

  it('shows where a 503 comes from', async () => {
    expect([...(await query('.status == 503'))].sort()).to.deep.equal(
      [
        '1 account-authz gave no answer',
        '1 account-authz: keys_unavailable',
        '1 the service',
        '1 the service cannot be reached: UF',
      ].sort(),
    );
  });

  it('lists every request that the check ended', async () => {
    const printed = (await query('UAEX')).map(line => JSON.parse(line));
    expect(printed.map(([status]) => status).sort()).to.deep.equal([401, 401, 401, 403, 403, 503, 503]);
    expect(printed).to.deep.include([503, null, 'GET', own]);
  });

  it('has the response details that the page names for other sources', () => {
    expect(lines.find(({ details }) => String(details).startsWith('rbac'))).to.include({
      status: 403,
      decision: null,
      details: 'rbac_access_denied_matched_policy[none]',
    });
  });
});

/** Access log lines of real Envoys: allows, refusals, a 503 of each kind, unchecked requests, and an allow of another authorizer. */
async function writtenLines(): Promise<readonly AccessLogLine[]> {
  const lab = await startLab();
  const authorization = `Authorization: ${await bearer()}`;
  const [unusedPort = 0, noService = 0] = await freePorts(2);
  const keyless = await startServiceProcess(configuration(`http://127.0.0.1:${unusedPort}/jwks.json`), {
    ready: false,
  });
  const stranger = await startFakeAuthorizer();
  stranger.answerWith(answersMessage(Buffer.alloc(0)));
  const busy = createServer((_, response) => response.writeHead(503).end()).listen(0, '127.0.0.1');
  await once(busy, 'listening');

  const upstream = lab.upstream.port;
  const authz = lab.service.address;
  const envoys = await Promise.all([
    startEnvoy({ upstream, authz }),
    startEnvoy({ upstream, authz: keyless.address }),
    startEnvoy({ upstream, authz: `127.0.0.1:${unusedPort}` }),
    startEnvoy({ upstream: (busy.address() as AddressInfo).port, authz }),
    startEnvoy({ upstream: noService, authz }),
    startEnvoy({ upstream, authz: stranger.address }),
  ]);
  const lines: AccessLogLine[] = [];
  const ask = async (envoy: RunningEnvoy, target: string, headers: readonly string[]): Promise<void> => {
    const answer = await exchange(envoy.port, requestBytes('GET', target, headers));
    lines.push(await envoy.accessLogLine(headerValues(answer, 'x-request-id')[0] ?? ''));
  };
  try {
    const [whole, ...others503] = envoys;
    for (const target of [own, own, own, others, others]) await ask(whole, target, [authorization]);
    for (const target of [own, own, '/api/subscriptions']) await ask(whole, target, []);
    await ask(whole, '/nothing', []);
    for (const envoy of others503) await ask(envoy, own, [authorization]);
    return lines;
  } finally {
    await Promise.all([...envoys.map(envoy => envoy.stop()), keyless.kill(), stranger.stop()]);
    busy.close();
    await lab.stop();
  }
}
