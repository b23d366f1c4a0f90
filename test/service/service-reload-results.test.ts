// What a reload of the configuration reports, what it refuses, and reloads that come at the same time or while the service stops.
import { expect } from 'chai';
import { reasonOf, serviceConfig, startServiceLab } from '../../lab/service.ts';
import { audience } from '../../lab/token.ts';
import { until } from '../../lab/until.ts';
import type { WatchOutcome } from '../../src/files/file-watch.ts';
import {
  config,
  ends,
  failures,
  headersOf,
  issuerConfig,
  keyFile,
  knownToken,
  lab,
  lines,
  metric,
  otherIssuer,
  quick,
  reload,
  reloadIssuer,
  startReloadLab,
  stopReloadLab,
  successes,
} from './reload-lab.ts';

describe('result of a configuration reload', () => {
  beforeEach(startReloadLab);
  afterEach(stopReloadLab);

  describe('refused reload', () => {
    const problems = ['config.yaml:1:2: apps: must name at least one app', 'config.yaml:3:4: colour: is not known'];

    it('L-019 changes nothing, and logs all problems in one line', async () => {
      const check = await knownToken();
      await lab.service.reload({ kind: 'refused', problems, count: 2 });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      const refused = lines('configuration refused, the old one stays in effect');
      expect(refused).to.have.lengthOf(1);
      expect(refused[0]).to.deep.include({ level: 'error', problems, count: 2 });
    });

    it('L-019 counts as a failure and leaves the last-reload timestamp unchanged', async () => {
      const loaded = await metric('account_authz_config_last_reload_timestamp_seconds');
      await lab.service.reload({ kind: 'refused', problems, count: 2 });
      expect([await successes(), await failures()]).to.deep.equal(['0', '1']);
      expect(await metric('account_authz_config_last_reload_timestamp_seconds')).to.equal(loaded);
      expect(lab.service.reloadStatus()).to.deep.include({ lastResult: 'failure', problems: 2, needsRestart: [] });
    });

    const rows: readonly (readonly [name: string, file: () => Promise<string>, problem: string])[] = [
      ['does not exist', async () => '/nowhere/jwks.json', 'the file does not exist'],
      ['has no usable key', () => keyFile({ keys: [] }), 'no usable key: the list is empty'],
    ];
    for (const [name, file, problem] of rows) {
      it(`changes nothing at all when the jwksFile of one issuer ${name}`, async () => {
        const check = await knownToken();
        const other = await otherIssuer();
        const jwksFile = await file();
        await reload({
          issuers: [
            issuerConfig({ jwksUrl: other.jwksUrl }),
            { issuer: other.url, audiences: [audience], jwksUrl: other.jwksUrl },
            { issuer: 'https://file.test', audiences: [audience], jwksFile },
          ],
          apps: ['none'],
          identityHeaders: 'x-id-',
          log: { level: 'silent' },
        });
        expect(await check()).to.equal('allowed');
        expect(lines('check').at(-1)).to.include({ cache: 'hit' });
        expect(headersOf(await lab.check(`Bearer ${await lab.token()}`))).to.have.property('x-auth-acc');
        const [refused] = lines('configuration refused, the old one stays in effect');
        expect(refused?.problems).to.deep.equal([`jwksFile of https://file.test: ${problem}: ${jwksFile}`]);
        expect(await failures()).to.equal('1');
        const page = await (await lab.admin('/metrics')).text();
        expect(page).to.contain(lab.issuer.url).and.not.contain(other.url).and.not.contain('file.test');
        await reload();
        expect(await successes()).to.equal('1');
      });
    }

    it('changes nothing after an internal error', async () => {
      const check = await knownToken();
      await lab.service.reload({
        kind: 'config',
        config: { ...config(), routes: [{ path: 'no path', characters: 'strict' as const }] },
      });
      expect(await check()).to.equal('allowed');
      expect(lines('fault')).to.have.lengthOf(1);
      expect(await failures()).to.equal('1');
      await reload({ apps: ['none'] });
      expect(await check()).to.equal('app_forbidden');
    });
  });

  it('reports an error while applying a reload to the caller, and applies the next reload', async () => {
    const check = await knownToken();
    lab.failLog(({ msg }) => msg === 'configuration reloaded');
    const faulty = reload({ apps: ['web', 'none'] }).then(
      () => 'no fault',
      (error: Error) => error.message,
    );
    const next = reload({ apps: ['none'] });
    expect(await faulty).to.equal('a log that throws');
    await next;
    expect(await check()).to.equal('app_forbidden');
  });

  it('counts a successful reload and records its time', async () => {
    const started = Number(await metric('account_authz_config_last_reload_timestamp_seconds'));
    expect(started).to.be.within(Date.now() / 1000 - 60, Date.now() / 1000);
    expect(lab.service.reloadStatus()).to.include({ lastResult: undefined, lastAtSeconds: undefined, problems: 0 });
    await until(() => Date.now() / 1000 > started + 0.01);
    await lab.service.reload({ kind: 'refused', problems: ['x'], count: 1 });
    await reload();
    expect([await successes(), await failures()]).to.deep.equal(['1', '1']);
    expect(Number(await metric('account_authz_config_last_reload_timestamp_seconds'))).to.be.above(started);
    expect(lab.service.reloadStatus()).to.include({ lastResult: 'success', problems: 0 });
  });

  it('names the changed settings that need a restart, and applies the others', async () => {
    const check = await knownToken();
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
    await reload({ listen: '127.0.0.1:1', admin: '127.0.0.1:2', tls, apps: ['none'] });
    expect(await check()).to.equal('app_forbidden');
    const settings = ['listen', 'admin', 'tls.certFile', 'tls.keyFile'];
    expect(lines('changed settings need a restart').map(line => line.settings)).to.deep.equal([settings]);
    expect(lab.service.reloadStatus().needsRestart).to.deep.equal(settings);
    expect(await successes()).to.equal('1');
    await reload();
    expect(lab.service.reloadStatus().needsRestart).to.deep.equal([]);
    expect(lines('changed settings need a restart')).to.have.lengthOf(1);
  });

  it('applies the last of several concurrent reloads', async () => {
    const check = await knownToken();
    const other = await otherIssuer();
    other.fault({ kind: 'hang' });
    const slow = reloadIssuer({ jwksUrl: other.jwksUrl });
    await Promise.all([slow, reload({ apps: ['none'] }), reload({ apps: ['web'] })]);
    expect(await successes()).to.equal('3');
    await until(async () => (await check()) === 'allowed');
  });

  it('becomes ready when a reload names a working issuer', async () => {
    const other = await otherIssuer();
    const waiting = await startServiceLab({ ready: false, keys: [], config: quick, changes: true });
    ends.push(() => waiting.stop());
    expect((await waiting.admin('/readyz')).status).to.equal(503);
    const changed = serviceConfig({ url: waiting.issuer.url, jwksUrl: other.jwksUrl });
    await waiting.service.reload({ kind: 'config', config: changed });
    await until(async () => (await waiting.admin('/readyz')).ok);
  });

  it('applies a reload during shutdown, while calls are still answered', async () => {
    const config = { ...quick, shutdown: { graceSeconds: 120 } };
    const stopping = await startServiceLab({ config });
    ends.push(() => stopping.issuer.stop());
    const authorization = `Bearer ${await stopping.token()}`;
    expect(reasonOf(await stopping.check(authorization))).to.equal('allowed');
    const ended = stopping.service.stop();
    const changed = serviceConfig(stopping.issuer, { ...config, apps: ['none'] });
    await stopping.service.reload({ kind: 'config', config: changed });
    expect(reasonOf(await stopping.check(authorization))).to.equal('app_forbidden');
    stopping.client.close();
    await ended;
  });
});

describe('configuration reload under load', () => {
  it('answers each check with one configuration, at least as new as when it arrived', async () => {
    const generations = 8;
    const lab = await startServiceLab({ config: quick, changes: true });
    // Each configuration is visible twice: in the header prefix of the answer, and in the claim that uid is read from.
    const names = Array.from({ length: generations + 1 }, (_, n) => [`uid${n - (n % 2)}`, `user-${n - (n % 2)}`]);
    const authorization = `Bearer ${await lab.token({ claims: Object.fromEntries(names) })}`;
    const reloadTo = (n: number): Promise<WatchOutcome> => {
      const issuer = { issuer: lab.issuer.url, audiences: [audience], jwksUrl: lab.issuer.jwksUrl };
      const changed = serviceConfig(lab.issuer, {
        issuers: [{ ...issuer, claims: { uid: `uid${n - (n % 2)}` } }],
        identityHeaders: `x-g${n}-`,
        keys: { refreshSeconds: 100 + Math.floor(n / 3) },
        ...quick,
      });
      return lab.service.reload({ kind: 'config', config: changed });
    };
    let inEffect = 0;
    let announced = 0;
    let calls = 0;
    let isOver = false;
    const wrong: unknown[] = [];
    const caller = async (): Promise<void> => {
      while (!isOver) {
        const least = inEffect;
        const response = await lab.check(authorization);
        const headers = headersOf(response);
        const n = Number(/^x-g(\d+)-uid$/.exec(Object.keys(headers).find(name => name.endsWith('-uid')) ?? '')?.[1]);
        const isRight = n >= least && n <= announced && headers[`x-g${n}-uid`] === `user-${n - (n % 2)}`;
        if (!isRight) wrong.push({ n, least, announced, headers, reason: reasonOf(response) });
        calls += 1;
      }
    };
    await reloadTo(0);
    const callers = Promise.all(Array.from({ length: 8 }, caller));
    for (let n = 1; n <= generations; n += 1) {
      const enough = calls + 15;
      await until(() => calls > enough);
      announced = n;
      const changed = reloadTo(n);
      await lab.service.reload({ kind: 'refused', problems: ['x'], count: 1 });
      await changed;
      inEffect = n;
    }
    isOver = true;
    await callers;
    await lab.stop();
    expect(wrong).to.deep.equal([]);
    expect(lab.log.filter(line => line.msg === 'configuration reloaded')).to.have.lengthOf(generations + 1);
  });
});
