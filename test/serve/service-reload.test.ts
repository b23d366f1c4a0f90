// Configuration reload in a running service: what takes effect, what is kept, what is refused, and that no call is lost.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Config } from '../../src/config/schema.ts';
import type { CheckResponseMessage } from '../../src/envoy/protocol.ts';
import type { WatchOutcome } from '../../src/files/file-watch.ts';
import type { CheckRequestParts } from '../support/check-request.ts';
import { type LogLine, reasonOf, type ServiceLab, serviceConfig, startServiceLab } from '../support/service.ts';
import { signingKey } from '../support/signing-key.ts';
import { startTestIssuer, type TestIssuer } from '../support/test-issuer.ts';
import { audience } from '../support/token.ts';
import { until } from '../support/until.ts';

type Changes = Readonly<Record<string, unknown>>;

// These tests do not depend on the grace period.
const quick = { shutdown: { graceSeconds: 0 } };

function headersOf(response: CheckResponseMessage): Readonly<Record<string, string>> {
  const headers = response.ok_response?.headers ?? [];
  return Object.fromEntries(headers.map(({ header }) => [header.key, header.value]));
}

describe('configuration reload', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let lab: ServiceLab;

  beforeEach(async () => {
    lab = await startServiceLab({ config: quick, changes: true });
  });
  afterEach(async () => {
    await lab.stop();
    for (const end of ends.splice(0)) await end();
  });

  const issuerConfig = (changes: Changes = {}) => ({
    issuer: lab.issuer.url,
    audiences: [audience],
    jwksUrl: lab.issuer.jwksUrl,
    ...changes,
  });
  const config = (changes: Changes = {}): Config => serviceConfig(lab.issuer, { ...quick, ...changes });
  const reload = (changes: Changes = {}): Promise<WatchOutcome> =>
    lab.service.reload({ kind: 'config', config: config(changes) });
  const reloadIssuer = (changes: Changes): Promise<WatchOutcome> => reload({ issuers: [issuerConfig(changes)] });

  async function otherIssuer(kid = 'k1'): Promise<TestIssuer> {
    const issuer = await startTestIssuer({ keys: [(await signingKey(kid)).publicJwk] });
    ends.push(() => issuer.stop());
    return issuer;
  }

  async function keyFile(content: unknown): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'account-authz-reload-'));
    ends.push(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'jwks.json'), JSON.stringify(content));
    return join(folder, 'jwks.json');
  }

  const lines = (message: string): readonly LogLine[] => lab.log.filter(line => line.msg === message);
  const metric = async (name: string): Promise<string | undefined> => {
    const text = await (await lab.admin('/metrics')).text();
    return text
      .split('\n')
      .find(line => line.startsWith(`${name} `))
      ?.slice(name.length + 1);
  };
  const successes = (): Promise<string | undefined> => metric('account_authz_config_reloads_total{result="success"}');
  const failures = (): Promise<string | undefined> => metric('account_authz_config_reloads_total{result="failure"}');

  /** Sends checks with a token that the service has verified before. */
  async function knownToken(claims: Changes = {}): Promise<(parts?: CheckRequestParts) => Promise<string>> {
    const authorization = `Bearer ${await lab.token({ claims })}`;
    expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
    expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
    expect(lines('check').at(-1)).to.include({ cache: 'hit' });
    return async parts => reasonOf(await lab.check(authorization, parts));
  }

  describe('reload that affects a cached token', () => {
    const now = (): number => Math.floor(Date.now() / 1000);
    const effects: readonly (readonly [
      name: string,
      changes: () => Changes,
      reason: string,
      claims?: () => Changes,
    ])[] = [
      ['audiences', () => ({ issuers: [issuerConfig({ audiences: ['other'] })] }), 'token_invalid'],
      [
        'a claims mapping to a missing claim',
        () => ({ issuers: [issuerConfig({ claims: { acc: 'account' } })] }),
        'token_invalid',
      ],
      [
        'a claims mapping to a claim with another value',
        () => ({ issuers: [issuerConfig({ claims: { acc: 'uid' } })] }),
        'account_mismatch',
      ],
      ['tokenTypes', () => ({ issuers: [issuerConfig({ tokenTypes: ['at+jwt'] })] }), 'token_invalid'],
      ['algorithms', () => ({ issuers: [issuerConfig({ algorithms: ['RS256'] })] }), 'token_invalid'],
      [
        'an issuers list without its issuer',
        () => ({ issuers: [issuerConfig({ issuer: 'https://other.test' })] }),
        'token_invalid',
      ],
      ['token.maxBytes', () => ({ token: { maxBytes: 256 } }), 'token_invalid'],
      ['token.maxLifetimeSeconds', () => ({ token: { maxLifetimeSeconds: 60 } }), 'token_invalid'],
      [
        'token.clockToleranceSeconds',
        () => ({ token: { clockToleranceSeconds: 0 } }),
        'token_expired',
        () => ({ exp: now() - 1 }),
      ],
      ['routes', () => ({ routes: [{ path: '/api/other/*' }] }), 'route_unknown'],
      ['the roles of a route', () => ({ routes: [{ path: '/api/*', roles: ['member'] }] }), 'role_forbidden'],
      ['roles', () => ({ roles: { owner: ['DELETE'], member: ['GET'] } }), 'role_forbidden'],
      ['apps', () => ({ apps: ['other'] }), 'app_forbidden'],
    ];
    for (const [name, changes, reason, claims] of effects) {
      it(`applies ${name}: ${reason}`, async () => {
        const check = await knownToken(claims?.());
        await reload(changes());
        expect(await check()).to.equal(reason);
      });
    }

    it('applies the order and names of roles to a token with several roles', async () => {
      const authorization = `Bearer ${await lab.token({ claims: { role: ['member', 'auditor', 'owner'] } })}`;
      const roleUnder = async (roles: Changes): Promise<string | undefined> => {
        await reload({ roles });
        return headersOf(await lab.check(authorization))['x-auth-role'];
      };
      expect(await roleUnder({ owner: ['*'], member: ['GET'] })).to.equal('owner');
      expect(await roleUnder({ member: ['GET'], owner: ['*'] })).to.equal('member');
      expect(await roleUnder({ auditor: ['GET'], guest: ['GET'] })).to.equal('auditor');
      expect(await roleUnder({ guest: ['GET'] })).to.equal(undefined);
      // The cache keeps only the roles that the configuration names, so another set of names empties it.
      expect(lines('check').at(-1)).to.include({ reason: 'role_forbidden', acc: 'acct1', cache: 'miss' });
      expect(lines('check').at(-1)).to.not.have.property('role');
    });

    it('applies account.headers', async () => {
      const check = await knownToken();
      const headers = { 'x-account-id': 'acct2' };
      expect(await check({ headers })).to.equal('allowed');
      await reload({ account: { headers: ['x-account-id'] } });
      expect(await check({ headers })).to.equal('account_mismatch');
    });

    it('allows the token again after the change is reverted', async () => {
      const check = await knownToken();
      await reloadIssuer({ audiences: ['other'] });
      expect(await check()).to.equal('token_invalid');
      await reload();
      expect(await check()).to.equal('allowed');
    });

    it('applies the new audience of an issuer that was removed and added again', async () => {
      const check = await knownToken();
      await reloadIssuer({ issuer: 'https://other.test' });
      await reloadIssuer({ audiences: ['other'] });
      await until(async () => (await check()) !== 'keys_unavailable');
      expect(await check()).to.equal('token_invalid');
    });
  });

  describe('reload that affects the next check', () => {
    it('applies identityHeaders', async () => {
      await reload({ identityHeaders: 'x-id-' });
      const answer = headersOf(await lab.check(`Bearer ${await lab.token()}`));
      expect(answer).to.include({ 'x-id-acc': 'acct1' }).and.not.have.property('x-auth-acc');
    });
    it('O-021 applies token.forward', async () => {
      const removed = async () => (await lab.check(`Bearer ${await lab.token()}`)).ok_response?.headers_to_remove;
      expect(await removed()).to.include('authorization');
      await reload({ token: { forward: true } });
      expect(await removed()).to.not.include('authorization');
    });
    it('applies cache.maxTokens', async () => {
      const check = await knownToken();
      await reload({ cache: { maxTokens: 0 } });
      await check();
      await check();
      expect(lines('check').at(-1)).to.include({ reason: 'allowed', cache: 'miss' });
      expect(await metric('account_authz_token_cache_entries')).to.equal('0');
    });
    it('applies log.allowed', async () => {
      const check = await knownToken();
      await reload({ log: { allowed: false } });
      const before = lines('check').length;
      await check();
      await lab.check(undefined);
      expect(lines('check').slice(before)).to.have.lengthOf(1);
    });
    it('applies log.level', async () => {
      await reload({ log: { level: 'error' } });
      const before = lab.log.length;
      await lab.check(undefined);
      await reload({ log: { level: 'info' } });
      expect(lab.log.slice(before).map(({ msg }) => msg)).to.deep.equal(['configuration reloaded']);
    });
    it('applies shutdown.graceSeconds', async () => {
      await reload({ shutdown: { graceSeconds: 7 } });
      expect(lab.service.config().shutdown.graceSeconds).to.equal(7);
    });
  });

  describe('reload that keeps the keys', () => {
    it('keeps keys and cached tokens of an unchanged issuer without a fetch', async () => {
      const check = await knownToken();
      const fetches = lab.issuer.requests().length;
      await lab.issuer.stop();
      await reload({ apps: ['web'], identityHeaders: 'x-id-' });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      expect(lab.issuer.requests()).to.have.lengthOf(fetches);
    });

    it('keeps keys, cached tokens and readiness when another issuer is added', async () => {
      const check = await knownToken();
      const other = await otherIssuer();
      other.fault({ kind: 'hang' });
      const added = { issuer: other.url, audiences: [audience], jwksUrl: other.jwksUrl };
      await reload({ issuers: [issuerConfig(), added] });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      const token = await lab.token({ claims: { iss: other.url } });
      expect(reasonOf(await lab.check(`Bearer ${token}`))).to.equal('keys_unavailable');
      expect((await lab.admin('/readyz')).status).to.equal(200);
    });

    it('keeps keys and their age when only key intervals change and the issuer is down', async () => {
      const check = await knownToken();
      await lab.issuer.stop();
      await reload({ keys: { refreshSeconds: 200, timeoutSeconds: 1 } });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      const { issuers } = (await (await lab.admin('/readyz')).json()) as { issuers: { ageSeconds: number }[] };
      expect(issuers[0]?.ageSeconds).to.be.above(0);
    });

    it('drops keys that are older than the new keys.maxAgeSeconds', async () => {
      const check = await knownToken();
      await lab.issuer.stop();
      await until(
        async () => Number(await metric(`account_authz_key_set_age_seconds{issuer="${lab.issuer.url}"}`)) > 1,
      );
      await reload({ keys: { refreshSeconds: 1, maxAgeSeconds: 1, cooldownSeconds: 1 } });
      expect(await check()).to.equal('keys_unavailable');
    });
  });

  describe('reload that changes the key source of an issuer', () => {
    it('uses the keys of the new source without refusing a call in between', async () => {
      const check = await knownToken();
      const other = await otherIssuer();
      await reloadIssuer({ jwksUrl: other.jwksUrl });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'miss' });
    });

    it('refuses tokens signed with a key of the previous source', async () => {
      const check = await knownToken();
      const other = await otherIssuer('k2');
      await reloadIssuer({ jwksUrl: other.jwksUrl });
      expect(await check()).to.equal('token_invalid');
    });

    it('answers keys_unavailable while the new source is unreachable', async () => {
      const check = await knownToken();
      const other = await otherIssuer();
      await other.stop();
      await reloadIssuer({ jwksUrl: other.jwksUrl });
      expect(await check()).to.equal('keys_unavailable');
    });

    it('does not wait for a new source that hangs', async () => {
      const check = await knownToken();
      const other = await otherIssuer();
      other.fault({ kind: 'hang' });
      await reload({ issuers: [issuerConfig({ jwksUrl: other.jwksUrl })], keys: { timeoutSeconds: 1000 } });
      expect(await check()).to.equal('keys_unavailable');
    });
  });

  it('answers every check that waits for an unknown key of a removed issuer', async () => {
    lab.issuer.fault({ kind: 'hang' });
    await reload({ keys: { timeoutSeconds: 1000 } });
    const unknown = await lab.token({ key: await signingKey('unknown') });
    const waiting = Array.from({ length: 20 }, () => lab.check(`Bearer ${unknown}`));
    await reloadIssuer({ issuer: 'https://other.test' });
    for (const response of await Promise.all(waiting))
      expect(reasonOf(response)).to.be.oneOf(['keys_unavailable', 'token_invalid']);
  });

  it('removes the metric series of a removed issuer', async () => {
    const page = async () => (await lab.admin('/metrics')).text();
    expect(await page()).to.contain(`{issuer="${lab.issuer.url}"`);
    await reloadIssuer({ issuer: 'https://other.test' });
    await until(async () => !(await page()).includes(`{issuer="${lab.issuer.url}"`));
    expect(await page()).to.contain('{issuer="https://other.test"');
  });

  describe('refused reload', () => {
    const problems = [
      'config.yaml:1:2: apps: must name at least one app',
      'config.yaml:3:4: colour: is not a known key',
    ];

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
      ['does not exist', async () => '/nowhere/jwks.json', 'no such file'],
      ['has no usable key', () => keyFile({ keys: [] }), 'no usable key'],
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
    const generations = 20;
    const lab = await startServiceLab({ config: quick, changes: true });
    // Each configuration is visible twice: in the header prefix of the answer, and in the claim that uid is read from.
    const names = Array.from({ length: generations + 1 }, (_, n) => [`uid${n - (n % 2)}`, `user-${n - (n % 2)}`]);
    const authorization = `Bearer ${await lab.token({ claims: Object.fromEntries(names) })}`;
    const reloadTo = (n: number): Promise<WatchOutcome> => {
      const issuer = { issuer: lab.issuer.url, audiences: [audience], jwksUrl: lab.issuer.jwksUrl };
      const changed = serviceConfig(lab.issuer, {
        issuers: [{ ...issuer, claims: { uid: `uid${n - (n % 2)}` } }],
        identityHeaders: `x-g${n}-`,
        keys: { refreshSeconds: 100 + Math.floor(n / 5) },
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
      const enough = calls + 20;
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
