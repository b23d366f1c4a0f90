// What a reload of the configuration changes: cached tokens, the next check, keys and their sources.
import { expect } from 'chai';
import { reasonOf } from '../../lab/service.ts';
import { until } from '../../lab/until.ts';
import {
  type Changes,
  headersOf,
  issuerConfig,
  knownToken,
  lab,
  lines,
  metric,
  reload,
  reloadIssuer,
  startReloadLab,
  stopReloadLab,
} from './reload-lab.ts';

describe('configuration reload of a service with its keys', () => {
  before(startReloadLab);
  after(stopReloadLab);
  // Some of these tests remove the issuer, whose keys are fetched again when it is back.
  beforeEach(async () => {
    await reload();
    const authorization = `Bearer ${await lab.token()}`;
    await until(async () => reasonOf(await lab.check(authorization)) === 'allowed');
  });

  describe('reload that affects a cached token', () => {
    const now = (): number => Math.floor(Date.now() / 1000);
    const ofIssuer = (changes: Changes) => (): Changes => ({ issuers: [issuerConfig(changes)] });
    type Effect = readonly [name: string, changes: () => Changes, reason: string, claims?: () => Changes];
    const effects: readonly Effect[] = [
      ['audiences', ofIssuer({ audiences: ['other'] }), 'token_invalid'],
      ['a claims mapping to a missing claim', ofIssuer({ claims: { acc: 'account' } }), 'token_invalid'],
      ['a claims mapping to another value', ofIssuer({ claims: { acc: 'uid' } }), 'account_mismatch'],
      ['tokenTypes', ofIssuer({ tokenTypes: ['at+jwt'] }), 'token_invalid'],
      ['algorithms', ofIssuer({ algorithms: ['RS256'] }), 'token_invalid'],
      ['an issuers list without its issuer', ofIssuer({ issuer: 'https://other.test' }), 'token_invalid'],
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
});

describe('configuration reload', () => {
  beforeEach(startReloadLab);
  afterEach(stopReloadLab);

  it('removes the metric series of a removed issuer', async () => {
    const page = async () => (await lab.admin('/metrics')).text();
    expect(await page()).to.contain(`{issuer="${lab.issuer.url}"`);
    await reloadIssuer({ issuer: 'https://other.test' });
    await until(async () => !(await page()).includes(`{issuer="${lab.issuer.url}"`));
    expect(await page()).to.contain('{issuer="https://other.test"');
  });
});
