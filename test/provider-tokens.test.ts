// Tokens as real providers issue them, each decided by the engine under the settings that a user would write for it.
import { expect } from 'chai';
import type { CheckResult } from '../src/engine.ts';
import { acceptedTokens, type ProviderToken, refusedTokens } from './fixtures/provider-tokens.ts';
import { decideToken } from './support/decide-token.ts';
import { now } from './support/token.ts';

const roles = { owner: ['GET', 'POST'], admin: ['GET', 'POST'], member: ['GET'], 'read:subscriptions': ['GET'] };

function decide(
  { header, claims }: ProviderToken,
  issuer: ProviderToken['issuer'],
  request: { readonly account: string; readonly method?: string },
): Promise<CheckResult> {
  const issuers = [{ ...issuer, jwksUrl: 'https://keys.example.com' }];
  const routes = [{ path: '/api/subscriptions/accounts/:account_id/*' }];
  return decideToken({ header, claims }, { issuers, routes, roles }, now, request);
}

describe('tokens of real providers', () => {
  for (const each of acceptedTokens) {
    const { provider, issuer, identity, withDefaults } = each;
    describe(provider, () => {
      it('is allowed for its account, as who it names', async () => {
        const principal = { ...identity, iss: issuer.issuer };
        const { decision } = await decide(each, issuer, { account: identity.acc });
        expect(decision).to.deep.equal({ kind: 'allow', principal });
      });

      it('is refused for another account', async () => {
        const { decision } = await decide(each, issuer, { account: 'globex' });
        expect(decision).to.include({ reason: 'account_mismatch' });
      });

      it('may do what its role may', async () => {
        const { decision } = await decide(each, issuer, { account: identity.acc, method: 'POST' });
        expect(decision.kind === 'allow').to.equal(['owner', 'admin'].includes(identity.role));
      });

      it('is refused by the default settings', async () => {
        const { issuer: name, audiences } = issuer;
        const { decision } = await decide(each, { issuer: name, audiences }, { account: identity.acc });
        expect(decision).to.include({ reason: 'token_invalid', detail: withDefaults });
      });
    });
  }

  for (const each of refusedTokens) {
    it(`${each.provider}: refused, ${each.detail}`, async () => {
      const { decision } = await decide(each, each.issuer, { account: 'acme' });
      expect(decision).to.include({ reason: 'token_invalid', detail: each.detail });
    });
  }
});
