import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type LogLine, reasonOf, type ServiceLab, serviceConfig, startServiceLab } from '../../lab/service.ts';
import { until } from '../../lab/until.ts';
import type { CheckResponseMessage } from '../../src/envoy/protocol.ts';
import type { WatchOutcome } from '../../src/files/file-watch.ts';
import { RevocationFileError } from '../../src/service/revocations.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { mountSecret } from '../support/secret-mount.ts';

const refusedLine = 'revocation list refused, the old one stays in force';
const reloadedLine = 'revocation list reloaded';

describe('service with a revocation list', () => {
  let folder: string;
  let file: string;
  let lab: ServiceLab;

  beforeEach(async () => {
    folder = freshFolder();
    file = join(folder, 'revoked.jsonl');
  });
  afterEach(() => lab.stop());

  const config = (changes: Readonly<Record<string, unknown>> = {}) => ({
    shutdown: { graceSeconds: 0 },
    revocation: { file },
    ...changes,
  });
  async function start(list: string): Promise<void> {
    await writeFile(file, list);
    lab = await startServiceLab({ config: config(), changes: true });
  }
  async function replace(list: string, path = file): Promise<void> {
    await writeFile(`${path}.new`, list);
    await rename(`${path}.new`, path);
  }
  const lines = (message: string): readonly LogLine[] => lab.log.filter(({ msg }) => msg === message);
  const metric = async (name: string): Promise<number> => {
    const text = await (await lab.admin('/metrics')).text();
    const line = text.split('\n').find(each => each.startsWith(`account_authz_revocation_${name} `));
    return Number(line?.split(' ')[1]);
  };
  const reloads = async (): Promise<readonly number[]> => [
    await metric('reloads_total{result="success"}'),
    await metric('reloads_total{result="failure"}'),
  ];

  /** Sends checks with a token that the service has verified before. */
  async function knownToken(claims: Readonly<Record<string, unknown>> = {}) {
    const authorization = `Bearer ${await lab.token({ claims })}`;
    for (const cache of ['miss', 'hit']) {
      expect((await lab.check(authorization)).status.code).to.equal(0);
      expect(lines('check').at(-1)).to.include({ cache });
    }
    return (): Promise<CheckResponseMessage> => lab.check(authorization);
  }

  it('applies a changed list during shutdown, while calls are still answered', async () => {
    await start('');
    const stopping = await startServiceLab({ config: config({ shutdown: { graceSeconds: 120 } }), changes: true });
    const authorization = `Bearer ${await stopping.token({ claims: { jti: 'id-0002' } })}`;
    expect(reasonOf(await stopping.check(authorization))).to.equal('allowed');
    const ended = stopping.service.stop();
    await replace('{"jti":"id-0002"}\n');
    await until(async () => reasonOf(await stopping.check(authorization)) === 'token_revoked');
    stopping.client.close();
    await ended;
    await stopping.issuer.stop();
  });

  it('refuses a revoked cached token, and names the matching fields without their values', async () => {
    await start('');
    const check = await knownToken({ jti: 'id-0001' });
    await replace('{"jti":"id-0001","acc":"acct1"}\n');
    await until(async () => reasonOf(await check()) === 'token_revoked');

    const { denied_response: denied, status, dynamic_metadata: metadata } = await check();
    expect({ http: denied?.status.code, rpc: status.code }).to.deep.equal({ http: 401, rpc: 16 });
    const headers = Object.fromEntries(denied?.headers.map(({ header }) => [header.key, header.value]) ?? []);
    expect(headers['www-authenticate']).to.equal('Bearer realm="account-authz", error="invalid_token"');
    expect(JSON.parse(denied?.body ?? '')).to.include({ status: 401, reason: 'token_revoked' });
    expect(metadata?.fields).to.have.property('acc');
    expect(lines('check').at(-1)).to.include({
      decision: 'deny',
      reason: 'token_revoked',
      detail: 'the revocation list has an entry for acc, jti',
      cache: 'hit',
      acc: 'acct1',
    });
    expect(await (await lab.admin('/metrics')).text()).to.contain(
      'account_authz_checks_total{decision="deny",reason="token_revoked"} ',
    );

    await replace('');
    await until(async () => reasonOf(await check()) === 'allowed');
  });

  it('checks revocation after expiry and before app, role and account', async () => {
    await start('{"acc":"acct1"}\n');
    const seconds = Math.floor(Date.now() / 1000);
    const reason = async (claims: Readonly<Record<string, unknown>>, path?: string) =>
      reasonOf(await lab.check(`Bearer ${await lab.token({ claims })}`, path === undefined ? {} : { path }));
    expect(await reason({ role: 'nobody', app: 'none' })).to.equal('token_revoked');
    expect(await reason({ iat: seconds - 200, exp: seconds - 100 })).to.equal('token_expired');
    expect(await reason({ acc: 'acct2', role: 'nobody' }, '/api/subscriptions/acct2')).to.equal('role_forbidden');
    expect(await reason({}, '/api/other')).to.equal('route_unknown');
  });

  it('allows the token again when the entry expires, without a file change', async () => {
    const expires = new Date(Date.now() + 4000).toISOString();
    await start(`{"acc":"acct1","expires":"${expires}"}\n`);
    const authorization = `Bearer ${await lab.token()}`;
    expect(reasonOf(await lab.check(authorization))).to.equal('token_revoked');
    await until(async () => reasonOf(await lab.check(authorization)) === 'allowed');
    expect(await reloads()).to.deep.equal([0, 0]);
  });

  it('reloads a list that Kubernetes swaps, and reports the number of entries', async () => {
    const mount = await mountSecret({ 'revoked.jsonl': '{"uid":"nobody"}\n' });
    file = mount.path('revoked.jsonl');
    lab = await startServiceLab({ config: config(), changes: true });
    expect([await metric('entries'), ...(await reloads())]).to.deep.equal([1, 0, 0]);
    const loaded = await metric('last_reload_timestamp_seconds');
    expect(loaded).to.be.within(Date.now() / 1000 - 60, Date.now() / 1000);
    await mount.update({ 'revoked.jsonl': '{"uid":"nobody"}\n{"uid":"none"}\n{"jti":"x"}\n' });
    await until(() => lines(reloadedLine).length === 1);
    expect(lines(reloadedLine)[0]).to.include({ level: 'info', entries: 3 });
    expect([await metric('entries'), ...(await reloads())]).to.deep.equal([3, 1, 0]);
    expect(await metric('last_reload_timestamp_seconds')).to.be.above(loaded);
  });

  const broken: readonly (readonly [name: string, content: string | undefined, problem: (file: string) => string])[] = [
    ['with an invalid entry', '{"uid":"a"}\n{"uid":4711}\n', of => `${of}:2:1: uid: must be text: put it in quotes`],
    ['that is half-written', '{"uid":"a"}\n{"ui', of => `${of}:2:1: must be a JSON object on a line of its own`],
    ['that is gone', undefined, of => `${of}:1:1: the file does not exist`],
  ];
  for (const [name, content, problem] of broken) {
    it(`refuses a list ${name}, logs and counts it, and keeps the old list`, async () => {
      await start('{"acc":"acct1"}\n');
      await (content === undefined ? rm(file) : replace(content));
      await until(() => lines(refusedLine).length > 0);
      expect(lines(refusedLine)[0]).to.deep.include({ level: 'error', problems: [problem(file)], count: 1 });
      expect(await reloads()).to.deep.equal([0, 1]);
      expect(await metric('entries')).to.equal(1);
      expect(reasonOf(await lab.check(`Bearer ${await lab.token()}`))).to.equal('token_revoked');
      const page = await (await lab.admin('/')).text();
      expect(page).to.contain('The last change of the revocation list was refused');

      await replace('');
      await until(() => lines(reloadedLine).length === 1);
      expect(reasonOf(await lab.check(`Bearer ${await lab.token()}`))).to.equal('allowed');
      expect(await (await lab.admin('/')).text()).to.not.contain('was refused');
    });
  }

  it('reads its file on request, and neither reloads nor counts a list of the same bytes', async () => {
    await start('{"uid":"nobody"}\n');
    await replace('{"uid":"nobody"}\n');
    lab.service.reloadRevocations();
    await replace('{"uid":"other"}\n');
    lab.service.reloadRevocations();
    await until(() => lines(reloadedLine).length > 0);
    expect(await reloads()).to.deep.equal([1, 0]);
  });

  describe('and a configuration reload', () => {
    const reload = (changes: Readonly<Record<string, unknown>>): Promise<WatchOutcome> =>
      lab.service.reload({ kind: 'config', config: serviceConfig(lab.issuer, config(changes)) });

    it('loads the list of a new file with the other settings, and watches that file', async () => {
      await start('');
      const check = await knownToken();
      const other = join(folder, 'other.jsonl');
      await writeFile(other, '{"acc":"acct1"}\n');
      await reload({ revocation: { file: other }, apps: ['web'] });
      expect(reasonOf(await check())).to.equal('token_revoked');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      await replace('{"uid":"nobody"}\n');
      await replace('', other);
      await until(async () => reasonOf(await check()) === 'allowed');
      expect(lines(reloadedLine)).to.have.lengthOf(1);
    });

    it('refuses the whole reload when the list that it names is invalid', async () => {
      await start('{"acc":"acct1"}\n');
      const other = join(folder, 'other.jsonl');
      await writeFile(other, '{"acc":1}\n');
      await reload({ revocation: { file: other }, routes: [{ path: '/none' }] });
      const [refused] = lines('configuration refused, the old one stays in effect');
      expect(refused).to.deep.include({ problems: [`${other}:1:1: acc: must be text: put it in quotes`], count: 1 });
      expect(reasonOf(await lab.check(`Bearer ${await lab.token()}`))).to.equal('token_revoked');
      await replace('');
      await until(async () => reasonOf(await lab.check(`Bearer ${await lab.token()}`)) === 'allowed');
    });

    it('keeps the active list when the file name is unchanged, even if the file is gone', async () => {
      await start('{"acc":"acct1"}\n');
      await rm(file);
      await reload({ apps: ['none'] });
      expect(lines('configuration reloaded')).to.have.lengthOf(1);
      expect(reasonOf(await lab.check(`Bearer ${await lab.token()}`))).to.equal('token_revoked');
    });

    it('ends all revocations when the configuration names no list', async () => {
      await start('{"acc":"acct1"}\n');
      const withoutList = serviceConfig(lab.issuer, { shutdown: { graceSeconds: 0 } });
      await lab.service.reload({ kind: 'config', config: withoutList });
      expect(reasonOf(await lab.check(`Bearer ${await lab.token()}`))).to.equal('allowed');
      expect(await metric('entries')).to.equal(0);
    });
  });
});

describe('service with an unusable revocation list', () => {
  it('does not start when the file is missing', async () => {
    const file = '/nowhere/revoked.jsonl';
    const error: unknown = await startServiceLab({ config: { revocation: { file } } }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(RevocationFileError);
    expect(error)
      .to.have.nested.property('refused.problems')
      .that.deep.equals([`${file}:1:1: the file does not exist`]);
  });
});
