// A configuration that changes while the service runs: what takes effect, what is kept, what is refused, and that no call is lost.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Config } from '../src/config/schema.ts';
import type { CheckResponseMessage } from '../src/envoy/protocol.ts';
import type { CheckRequestParts } from './support/check-request.ts';
import { type LogLine, type ServiceLab, serviceConfig, startServiceLab, until } from './support/service.ts';
import { signingKey } from './support/signing-key.ts';
import { startTestIssuer, type TestIssuer } from './support/test-issuer.ts';
import { audience } from './support/token.ts';

type Changes = Readonly<Record<string, unknown>>;

// The stop is not what these tests are about.
const quick = { shutdown: { graceSeconds: 0 } };

function reasonOf(response: CheckResponseMessage): string {
  return response.dynamic_metadata?.fields.reason?.stringValue ?? 'none';
}

function headersOf(response: CheckResponseMessage): Readonly<Record<string, string>> {
  const headers = response.ok_response?.headers ?? [];
  return Object.fromEntries(headers.map(({ header }) => [header.key, header.value]));
}

describe('service with a changed configuration', () => {
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
  const reload = (changes: Changes = {}): Promise<void> =>
    lab.service.reload({ kind: 'config', config: config(changes) });
  const reloadIssuer = (changes: Changes): Promise<void> => reload({ issuers: [issuerConfig(changes)] });

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

  /** A token that the service has verified before, and how a request with it is answered. */
  async function knownToken(claims: Changes = {}): Promise<(parts?: CheckRequestParts) => Promise<string>> {
    const authorization = `Bearer ${await lab.token({ claims })}`;
    expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
    expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
    expect(lines('check').at(-1)).to.include({ cache: 'hit' });
    return async parts => reasonOf(await lab.check(authorization, parts));
  }

  describe('takes effect for a token that was verified before:', () => {
    const now = (): number => Math.floor(Date.now() / 1000);
    const effects: readonly (readonly [
      name: string,
      changes: () => Changes,
      reason: string,
      claims?: () => Changes,
    ])[] = [
      ['audiences', () => ({ issuers: [issuerConfig({ audiences: ['other'] })] }), 'token_invalid'],
      [
        'a claim that is not there',
        () => ({ issuers: [issuerConfig({ claims: { acc: 'account' } })] }),
        'token_invalid',
      ],
      [
        'a claim with another value',
        () => ({ issuers: [issuerConfig({ claims: { acc: 'uid' } })] }),
        'account_mismatch',
      ],
      ['tokenTypes', () => ({ issuers: [issuerConfig({ tokenTypes: ['at+jwt'] })] }), 'token_invalid'],
      ['algorithms', () => ({ issuers: [issuerConfig({ algorithms: ['RS256'] })] }), 'token_invalid'],
      [
        'the removal of its issuer',
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
      it(name, async () => {
        const check = await knownToken(claims?.());
        await reload(changes());
        expect(await check()).to.equal(reason);
      });
    }

    it('the order and the names of roles, of which it has several', async () => {
      const authorization = `Bearer ${await lab.token({ claims: { role: ['member', 'auditor', 'owner'] } })}`;
      const roleUnder = async (roles: Changes): Promise<string | undefined> => {
        await reload({ roles });
        return headersOf(await lab.check(authorization))['x-auth-role'];
      };
      expect(await roleUnder({ owner: ['*'], member: ['GET'] })).to.equal('owner');
      expect(await roleUnder({ member: ['GET'], owner: ['*'] })).to.equal('member');
      expect(await roleUnder({ auditor: ['GET'], guest: ['GET'] })).to.equal('auditor');
      expect(await roleUnder({ guest: ['GET'] })).to.equal(undefined);
      expect(lines('check').at(-1)).to.include({ reason: 'role_forbidden', acc: 'acct1', cache: 'hit' });
      expect(lines('check').at(-1)).to.not.have.property('role');
    });

    it('account.headers', async () => {
      const check = await knownToken();
      const headers = { 'x-account-id': 'acct2' };
      expect(await check({ headers })).to.equal('allowed');
      await reload({ account: { headers: ['x-account-id'] } });
      expect(await check({ headers })).to.equal('account_mismatch');
    });

    it('and the change back', async () => {
      const check = await knownToken();
      await reloadIssuer({ audiences: ['other'] });
      expect(await check()).to.equal('token_invalid');
      await reload();
      expect(await check()).to.equal('allowed');
    });

    it('an issuer that leaves and comes back with another audience', async () => {
      const check = await knownToken();
      await reloadIssuer({ issuer: 'https://other.test' });
      await reloadIssuer({ audiences: ['other'] });
      await until(async () => (await check()) !== 'keys_unavailable');
      expect(await check()).to.equal('token_invalid');
    });
  });

  describe('applies at once', () => {
    it('identityHeaders', async () => {
      await reload({ identityHeaders: 'x-id-' });
      const answer = headersOf(await lab.check(`Bearer ${await lab.token()}`));
      expect(answer).to.include({ 'x-id-acc': 'acct1' }).and.not.have.property('x-auth-acc');
    });
    it('O-021 token.forward', async () => {
      const removed = async () => (await lab.check(`Bearer ${await lab.token()}`)).ok_response?.headers_to_remove;
      expect(await removed()).to.include('authorization');
      await reload({ token: { forward: true } });
      expect(await removed()).to.not.include('authorization');
    });
    it('cache.maxTokens', async () => {
      const check = await knownToken();
      await reload({ cache: { maxTokens: 0 } });
      await check();
      await check();
      expect(lines('check').at(-1)).to.include({ reason: 'allowed', cache: 'miss' });
      expect(await metric('account_authz_token_cache_entries')).to.equal('0');
    });
    it('log.allowed', async () => {
      const check = await knownToken();
      await reload({ log: { allowed: false } });
      const before = lines('check').length;
      await check();
      await lab.check(undefined);
      expect(lines('check').slice(before)).to.have.lengthOf(1);
    });
    it('log.level', async () => {
      await reload({ log: { level: 'error' } });
      const before = lab.log.length;
      await lab.check(undefined);
      await reload({ log: { level: 'info' } });
      expect(lab.log.slice(before).map(({ msg }) => msg)).to.deep.equal(['configuration reloaded']);
    });
    it('shutdown.graceSeconds', async () => {
      await reload({ shutdown: { graceSeconds: 7 } });
      expect(lab.service.config().shutdown.graceSeconds).to.equal(7);
    });
  });

  describe('keeps', () => {
    it('the keys and the known tokens of an issuer that is unchanged, without asking it', async () => {
      const check = await knownToken();
      const asked = lab.issuer.requests().length;
      await lab.issuer.stop();
      await reload({ roles: { owner: ['GET'] }, apps: ['web'], identityHeaders: 'x-id-' });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      expect(lab.issuer.requests()).to.have.lengthOf(asked);
    });

    it('them beside an issuer that is new, and readiness with them', async () => {
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

    it('the keys, with their age, where only times of keys change, also while the issuer is down', async () => {
      const check = await knownToken();
      await lab.issuer.stop();
      await reload({ keys: { refreshSeconds: 200, timeoutSeconds: 1 } });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      const { issuers } = (await (await lab.admin('/readyz')).json()) as { issuers: { ageSeconds: number }[] };
      expect(issuers[0]?.ageSeconds).to.be.above(0);
    });

    it('no keys that the new keys.maxAgeSeconds makes too old', async () => {
      const check = await knownToken();
      await lab.issuer.stop();
      await until(
        async () => Number(await metric(`account_authz_key_set_age_seconds{issuer="${lab.issuer.url}"}`)) > 1,
      );
      await reload({ keys: { refreshSeconds: 1, maxAgeSeconds: 1, cooldownSeconds: 1 } });
      expect(await check()).to.equal('keys_unavailable');
    });
  });

  describe('with another source for the keys of an issuer', () => {
    it('takes the keys from there without a refused call between', async () => {
      const check = await knownToken();
      const other = await otherIssuer();
      await reloadIssuer({ jwksUrl: other.jwksUrl });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'miss' });
    });

    it('takes no key from the source before', async () => {
      const check = await knownToken();
      const other = await otherIssuer('k2');
      await reloadIssuer({ jwksUrl: other.jwksUrl });
      expect(await check()).to.equal('token_invalid');
    });

    it('answers 503 while it cannot be reached', async () => {
      const check = await knownToken();
      const other = await otherIssuer();
      await other.stop();
      await reloadIssuer({ jwksUrl: other.jwksUrl });
      expect(await check()).to.equal('keys_unavailable');
    });

    it('does not wait for one that hangs', async () => {
      const check = await knownToken();
      const other = await otherIssuer();
      other.fault({ kind: 'hang' });
      await reload({ issuers: [issuerConfig({ jwksUrl: other.jwksUrl })], keys: { timeoutSeconds: 1000 } });
      expect(await check()).to.equal('keys_unavailable');
    });
  });

  it('answers all who ask for an unknown key of an issuer that leaves', async () => {
    lab.issuer.fault({ kind: 'hang' });
    await reload({ keys: { timeoutSeconds: 1000 } });
    const unknown = await lab.token({ key: await signingKey('unknown') });
    const asking = Array.from({ length: 20 }, () => lab.check(`Bearer ${unknown}`));
    await reloadIssuer({ issuer: 'https://other.test' });
    for (const response of await Promise.all(asking))
      expect(reasonOf(response)).to.be.oneOf(['keys_unavailable', 'token_invalid']);
  });

  it('ends the series of an issuer that leaves', async () => {
    const page = async () => (await lab.admin('/metrics')).text();
    expect(await page()).to.contain(`{issuer="${lab.issuer.url}"`);
    await reloadIssuer({ issuer: 'https://other.test' });
    await until(async () => !(await page()).includes(`{issuer="${lab.issuer.url}"`));
    expect(await page()).to.contain('{issuer="https://other.test"');
  });

  describe('that it refuses', () => {
    const problems = [
      'config.yaml:1:2: apps: must name at least one app',
      'config.yaml:3:4: colour: is not a known key',
    ];

    it('L-019 changes nothing, and says all problems in one line', async () => {
      const check = await knownToken();
      await lab.service.reload({ kind: 'refused', problems, count: 2 });
      expect(await check()).to.equal('allowed');
      expect(lines('check').at(-1)).to.include({ cache: 'hit' });
      const refused = lines('configuration refused, the old one stays in effect');
      expect(refused).to.have.lengthOf(1);
      expect(refused[0]).to.deep.include({ level: 'error', problems, count: 2 });
    });

    it('L-019 counts it, and leaves the time of the last load', async () => {
      const loaded = await metric('account_authz_config_last_reload_timestamp_seconds');
      await lab.service.reload({ kind: 'refused', problems, count: 2 });
      expect([await successes(), await failures()]).to.deep.equal(['0', '1']);
      expect(await metric('account_authz_config_last_reload_timestamp_seconds')).to.equal(loaded);
      expect(lab.service.reloadStatus()).to.deep.include({ lastResult: 'failure', problems: 2, needsRestart: [] });
    });

    const rows: readonly (readonly [name: string, file: () => Promise<string>, problem: string])[] = [
      ['is not there', async () => '/nowhere/jwks.json', 'no such file'],
      ['has no key that can be used', () => keyFile({ keys: [] }), 'no usable key'],
    ];
    for (const [name, file, problem] of rows) {
      it(`changes nothing where the jwksFile of one issuer ${name}, whatever else it would change`, async () => {
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

    it('over a fault of ours changes nothing either', async () => {
      const check = await knownToken();
      await lab.service.reload({ kind: 'config', config: { ...config(), routes: [{ path: 'no path' }] } });
      expect(await check()).to.equal('allowed');
      expect(lines('fault')).to.have.lengthOf(1);
      expect(await failures()).to.equal('1');
      await reload({ apps: ['none'] });
      expect(await check()).to.equal('app_forbidden');
    });
  });

  it('goes on with the next one after a fault outside of its preparation, which its caller gets to see', async () => {
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

  it('counts a success and when it was', async () => {
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

  it('says which changed settings need a restart, and applies the rest', async () => {
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

  it('ends with the last of several changes that come at once', async () => {
    const check = await knownToken();
    const other = await otherIssuer();
    other.fault({ kind: 'hang' });
    const slow = reloadIssuer({ jwksUrl: other.jwksUrl });
    await Promise.all([slow, reload({ apps: ['none'] }), reload({ apps: ['web'] })]);
    expect(await successes()).to.equal('3');
    await until(async () => (await check()) === 'allowed');
  });

  it('becomes ready through it', async () => {
    const other = await otherIssuer();
    const waiting = await startServiceLab({ ready: false, keys: [], config: quick, changes: true });
    ends.push(() => waiting.stop());
    expect((await waiting.admin('/readyz')).status).to.equal(503);
    const changed = serviceConfig({ url: waiting.issuer.url, jwksUrl: other.jwksUrl });
    await waiting.service.reload({ kind: 'config', config: changed });
    await until(async () => (await waiting.admin('/readyz')).ok);
  });

  it('ignores it once it stops', async () => {
    const stopping = await startServiceLab();
    ends.push(() => stopping.issuer.stop());
    const ended = stopping.service.stop();
    const changed = serviceConfig(stopping.issuer, { apps: ['none'] });
    await stopping.service.reload({ kind: 'config', config: changed });
    await ended;
    stopping.client.close();
    expect(stopping.service.config().apps).to.deep.equal(['*']);
  });
});

describe('service with a configuration that changes under load', () => {
  it('answers each call by one configuration, never by an older one than was in effect when it came, and loses none', async () => {
    const generations = 20;
    const lab = await startServiceLab({ config: quick, changes: true });
    // Each configuration shows in two places: the prefix, which the answer is built with, and the claim that uid is read from.
    const names = Array.from({ length: generations + 1 }, (_, n) => [`uid${n - (n % 2)}`, `user-${n - (n % 2)}`]);
    const authorization = `Bearer ${await lab.token({ claims: Object.fromEntries(names) })}`;
    const reloadTo = (n: number): Promise<void> => {
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
