// The built product with a revocation list: at start, mounted alone, on SIGHUP, and with a long list under load.
import { spawnSync } from 'node:child_process';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { checkRequest } from '../../lab/check-request.ts';
import { runProduct } from '../../lab/command.ts';
import { connect, type GrpcClient } from '../../lab/service.ts';
import { type LogLine, type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { until } from '../../lab/until.ts';
import { revocationList } from '../support/revocation-list.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, configuration, startIssuer } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';

describe('revocation list of the built product', () => {
  const issuer = useRunning(startIssuer);
  let folder: string;
  let service: ServiceProcess | undefined;
  let client: GrpcClient | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-revoked-'));
  });
  afterEach(async () => {
    client?.close();
    await service?.kill();
    [client, service] = [undefined, undefined];
    await rm(folder, { recursive: true });
  });

  async function start(file: string): Promise<ServiceProcess> {
    service = await startServiceProcess({ ...configuration(issuer.jwksUrl), revocation: { file } });
    client = connect(service.address);
    return service;
  }
  async function reasonOf(authorization: string): Promise<string | undefined> {
    const response = await client?.check(checkRequest({ path, raw: true, headers: { authorization } }));
    return response?.dynamic_metadata?.fields.reason?.stringValue;
  }
  const lines = (message: string): readonly LogLine[] => service?.log().filter(({ msg }) => msg === message) ?? [];

  it('is not reloaded, and says so, where it was mounted alone and its source was replaced', async function () {
    const file = join(folder, 'revoked.jsonl');
    const source = join(folder, 'source.jsonl');
    const mountedAlone = 'mounted alone, it never changes';
    await Promise.all([file, source].map(each => writeFile(each, '')));
    if (spawnSync('mount', ['--bind', source, file]).status !== 0) return this.skip();
    try {
      const running = await start(file);
      await writeFile(`${source}~`, '{"jti":"stolen"}\n');
      await rename(`${source}~`, source);
      await until(() => lines(mountedAlone).length > 0);
      running.hangUp();
      await running.stop();
      expect(lines(mountedAlone).map(line => line.file)).to.deep.equal([file]);
      expect(lines('revocation list reloaded')).to.deep.equal([]);
    } finally {
      spawnSync('umount', [file]);
    }
  });

  it('exits at start with 1 and prints every problem if the list is invalid', async () => {
    const file = join(folder, 'revoked.jsonl');
    const config = join(folder, 'config.yaml');
    await writeFile(file, '{"uid":1}\n{"jti":"a","until":"now"}\n');
    await writeFile(config, stringify({ ...configuration(issuer.jwksUrl), revocation: { file: 'revoked.jsonl' } }));
    const problems = `${file}:1:1: uid: must be text: put it in quotes\n${file}:2:1: until: is not a known member: the members are iss, uid, acc, app, sid, jti, issuedBefore, expires\n`;
    expect(await runProduct(['serve', '--config', config])).to.deep.equal({ code: 1, stdout: '', stderr: problems });
    expect(await runProduct(['check-config', '--config', config])).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: problems,
    });
  });

  it('loads 100,000 entries while it answers calls, and refuses a list that exceeds its limits', async () => {
    const file = join(folder, 'revoked.jsonl');
    await writeFile(file, '');
    const running = await start(file);
    const authorization = await bearer({ jti: 'stolen' });
    await writeFile(file, `${revocationList(99_999)}{"jti":"stolen"}\n`);
    running.hangUp();
    await until(async () => (await reasonOf(authorization)) === 'token_revoked');
    // Log lines are written in batches, so the line may come after the answer.
    await until(() => lines('revocation list reloaded').length > 0);
    expect(lines('revocation list reloaded')[0]).to.include({ entries: 100_000 });

    await writeFile(file, revocationList(100_001));
    running.hangUp();
    await until(async () => {
      expect(await reasonOf(authorization)).to.equal('token_revoked');
      return lines('revocation list refused, the old one stays in force').length > 0;
    });
  });
});
