// The requests that `verify` plans for a configuration and a token.
import { expect } from 'chai';
import { changed, configOf } from '../../../lab/config-file.ts';
import type { Config } from '../../../src/config/schema.ts';
import { hostEntryOf, maxRequests, type PlanOptions, planRequests } from '../../../src/toolkit/verify/plan.ts';

const policy = {
  routes: [{ path: '/v1/orders/:account_id/*' }, { path: '/v1/plans' }],
  public: [{ path: '/assets/*' }],
  account: { headers: ['x-account-id'], query: ['account_id'] },
};

async function plan(more: Partial<PlanOptions> = {}, changes: Readonly<Record<string, unknown>> = policy) {
  const config: Config = await configOf(changed(changes));
  return planRequests({ config, host: 'api.test:8443', falseTokens: ['a.b.c'], token: undefined, ...more });
}

const token = { authorization: 'Bearer x.y.z', accounts: ['acme'] };

describe('the plan of verify', () => {
  it('has for each route no token and a false signature, below a public subtree each route and the admin of Envoy', async () => {
    const { requests, omitted } = await plan();
    expect(omitted).to.deep.equal([]);
    expect(requests.map(({ kind, target }) => [kind, target])).to.deep.equal([
      ['unmatched path', '/account-authz-verify/no/route'],
      ['path outside the grammar', '/v1/orders/account-authz-verify%2Fslash'],
      ['public path', '/assets'],
      ['public path', '/assets/account-authz-verify/x/x'],
      ['public path', '/assets/account-authz-verify/x'],
      ['public path', '/assets/account-authz-verify'],
      ['below a public path', '/assets/v1/orders/account-authz-verify'],
      ['below a public path', '/assets/orders/account-authz-verify'],
      ['below a public path', '/assets/v1/plans'],
      ['below a public path', '/assets/plans'],
      ['admin of Envoy', '/envoy/ready'],
      ['admin of Envoy', '/assets/ready'],
      ['admin of Envoy', '/assets/../ready'],
      ['admin of Envoy', '/assets/envoy/ready'],
      ['no token', '/v1/orders/account-authz-verify'],
      ['no token', '/v1/plans'],
      ['no token', '/v1/orders/account-authz-verify/account-authz-verify'],
      ['false signature', '/v1/orders/account-authz-verify'],
      ['false signature', '/v1/plans'],
    ]);
    expect(requests.map(({ host }) => host)).to.deep.equal(requests.map(() => 'api.test:8443'));
  });

  it('asks with a token for another account in each place, and last for its own', async () => {
    const { requests } = await plan({ token });
    const sent = requests.filter(({ authorization }) => authorization === token.authorization);
    expect(sent.map(({ kind, target, headers }) => [kind, target, headers])).to.deep.equal([
      ['other account', '/v1/orders/account-authz-verify', []],
      ['other account', '/v1/orders/acme', [['x-account-id', 'account-authz-verify']]],
      ['other account', '/v1/plans', [['x-account-id', 'account-authz-verify']]],
      ['other account', '/v1/orders/acme?account_id=account-authz-verify', []],
      ['other account', '/v1/plans?account_id=account-authz-verify', []],
      ['own account', '/v1/orders/acme', []],
      ['own account', '/v1/plans', []],
    ]);
    expect(requests.at(-1)).to.equal(sent.at(-1));
  });

  it('names no account of the token', async () => {
    const { requests } = await plan({ token });
    expect(requests.filter(({ name }) => name.includes('acme'))).to.deep.equal([]);
  });

  it('takes as another account none that the token has', async () => {
    const { requests } = await plan({ token: { ...token, accounts: ['acme', 'account-authz-verify'] } });
    const others = requests.filter(({ kind }) => kind === 'other account');
    expect(others[0]?.target).to.equal('/v1/orders/account-authz-verify-2');
  });

  it('names one account of a token of several where the path has none', async () => {
    const { requests } = await plan({ token: { ...token, accounts: ['acme', 'globex'] } });
    expect(requests.at(-1)).to.deep.include({ target: '/v1/plans', headers: [['x-account-id', 'acme']] });
  });

  it('sends another entry of account.hosts in the Host header', async () => {
    const hosts = [':account_id.api.test', 'api.test', 'www.test'];
    const { requests } = await plan({ host: 'api.test:8443', token }, { ...policy, account: { hosts } });
    expect(new Set(requests.map(({ host }) => host))).to.deep.equal(
      new Set(['api.test:8443', 'account-authz-verify.api.test:8443', 'www.test:8443']),
    );
    const byAccount = await plan({ host: 'globex.api.test', token }, { ...policy, account: { hosts } });
    const own = byAccount.requests.filter(({ kind }) => kind === 'own account');
    expect(own.map(({ host }) => host)).to.deep.equal(['acme.api.test', 'acme.api.test']);
  });

  it('sends at most 50 requests, some of each kind, and names the others', async () => {
    const routes = Array.from({ length: 40 }, (_, i) => ({ path: `/v1/r${i}` }));
    const { requests, omitted } = await plan({ token }, { ...policy, routes });
    expect(requests).to.have.length(maxRequests);
    const sent = (kind: string): number => requests.filter(each => each.kind === kind).length;
    expect(sent('no token')).to.be.at.least(24);
    for (const kind of ['false signature', 'below a public path', 'other account', 'own account'])
      expect(sent(kind), kind).to.be.at.least(1);
    expect(omitted.map(({ name }) => name))
      .to.include('GET /v1/r39, false signature')
      .and.include('GET /v1/r39, own account');
  });

  const entries = [
    ['acme.api.test', 'account'],
    ['api.test', 'literal'],
    ['www.api.test', 'literal'],
    ['a.b.api.test', undefined],
    ['other.test', undefined],
  ] as const;
  for (const [hostname, kind] of entries) {
    it(`finds ${kind ?? 'no'} entry of account.hosts for ${hostname}`, async () => {
      const hosts = [':account_id.api.test', 'api.test', 'www.api.test'];
      const { account } = await configOf(changed({ account: { hosts } }));
      expect(hostEntryOf(account, hostname)?.kind).to.equal(kind);
    });
  }
});
