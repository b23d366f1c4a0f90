// docs/providers/others.md: each configuration accepts a token as its provider documents it, for the accounts of the token alone.
import { expect } from 'chai';
import { parse } from 'yaml';
import { allPages } from '../../lab/document.ts';
import { providerPage } from '../../lab/provider-page.ts';
import { now } from '../../lab/token.ts';
import type { CheckResult } from '../../src/check/engine.ts';
import { type MultiTenantToken, multiTenantTokens } from '../fixtures/multi-tenant-tokens.ts';
import { decideToken } from '../support/decide-token.ts';

const page = providerPage('others');
const all = ['GET', 'HEAD', 'DELETE'];
const reading = ['GET', 'HEAD'];
const policy = {
  routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }, { path: '/api/subscriptions/*' }],
  roles: { owner: all, member: reading, 'orders:read': reading, reporter: reading, 'orders!t123.Read': reading },
};

async function decide(
  { provider, header, claims }: MultiTenantToken,
  request: { readonly account: string; readonly method?: string },
): Promise<CheckResult['decision']> {
  const [text = ''] = page.blocks(provider, 'yaml');
  return (await decideToken({ header, claims }, { ...parse(text), ...policy }, now, request)).decision;
}

describe('docs/providers/others.md', () => {
  it('has a section with a configuration for each provider that is tested, and a row for each', () => {
    const text = allPages().find(({ path }) => path === page.path)?.text ?? '';
    const providers = multiTenantTokens.map(({ provider }) => provider);
    expect(Array.from(text.matchAll(/^## (.+)$/gm), ([, heading]) => heading)).to.deep.equal(providers);
    expect(Array.from(text.matchAll(/^\| \[(\w+)\]/gm), ([, name]) => name)).to.deep.equal(providers);
  });

  for (const each of multiTenantTokens) {
    describe(each.provider, () => {
      for (const [account, role] of Object.entries(each.accounts)) {
        it(`${account}: is allowed what ${role} may do there`, async () => {
          const read = await decide(each, { account });
          expect(read.kind).to.equal('allow');
          expect(read)
            .to.have.property('principal')
            .that.includes({ uid: each.uid, app: each.app, acc: account, role });
          const write = await decide(each, { account, method: 'DELETE' });
          if (role === 'owner') expect(write.kind).to.equal('allow');
          else expect(write).to.include({ reason: 'role_forbidden' });
        });
      }

      it('is refused for another account', async () => {
        expect(await decide(each, { account: 'initech' })).to.include({ reason: 'account_mismatch' });
      });

      if (each.addsAudience) {
        it('is refused without the audience that the page says to add', async () => {
          const { aud: _, ...claims } = each.claims;
          const [account = ''] = Object.keys(each.accounts);
          const decision = await decide({ ...each, claims }, { account });
          expect(decision).to.include({ reason: 'token_invalid', detail: 'aud names none of audiences' });
        });
      }
    });
  }
});
