// The engine decides tokens as real providers issue them, with the settings that a user would write for each provider, and as libraries
// of other languages sign them.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type CryptoKey, importJWK } from 'jose';
import { now } from '../../lab/token.ts';
import type { CheckResult } from '../../src/check/engine.ts';
import { acceptedTokens, type ProviderToken, refusedTokens } from '../fixtures/provider-tokens.ts';
import { decideToken } from '../support/decide-token.ts';
import { lab } from './verifier-lab.ts';

const roles = { owner: ['GET', 'POST'], admin: ['GET', 'POST'], member: ['GET'], 'read:subscriptions': ['GET'] };

async function decide(
  { header, claims, issuer }: ProviderToken,
  request: { readonly account: string; readonly method?: string },
): Promise<CheckResult['decision']> {
  const issuers = [{ ...issuer, jwksUrl: 'https://keys.example.com' }];
  const routes = [{ path: '/api/subscriptions/accounts/:account_id/*' }];
  return (await decideToken({ header, claims }, { issuers, routes, roles }, now, request)).decision;
}

describe('tokens of real providers', () => {
  for (const each of acceptedTokens) {
    const { provider, identity, withDefaults } = each;
    const { issuer, audiences } = each.issuer;
    describe(provider, () => {
      it('is allowed for its account, with the identity in its claims', async () => {
        const decision = await decide(each, { account: identity.acc });
        expect(decision.kind).to.equal('allow');
        expect(decision)
          .to.have.property('principal')
          .that.includes({ ...identity, iss: issuer });
      });

      it('is refused for another account', async () => {
        expect(await decide(each, { account: 'globex' })).to.include({ reason: 'account_mismatch' });
      });

      it('is allowed the methods of its role only', async () => {
        const { kind } = await decide(each, { account: identity.acc, method: 'POST' });
        expect(kind === 'allow').to.equal(['owner', 'admin'].includes(identity.role));
      });

      it('is refused by the default settings', async () => {
        const decision = await decide({ ...each, issuer: { issuer, audiences } }, { account: identity.acc });
        expect(decision).to.include({ reason: 'token_invalid', detail: withDefaults });
      });
    });
  }

  for (const each of refusedTokens) {
    it(`${each.provider}: is refused, ${each.detail}`, async () => {
      expect(await decide(each, { account: 'acme' })).to.include({
        reason: each.reason ?? 'token_invalid',
        detail: each.detail,
      });
    });
  }
});

describe('tokens of JWT libraries', () => {
  const file = new URL('../fixtures/tokens/libraries.json', import.meta.url);
  const { keys, tokens }: Signed = JSON.parse(readFileSync(file, 'utf8'));

  for (const { library, alg, token } of tokens) {
    it(`of ${library}, are verified with ${alg}, and refused with another signature`, async () => {
      const at = await lab({ tokenTypes: ['JWT', ''] });
      for (const jwk of keys) {
        const cryptoKey = (await importJWK(jwk, jwk.alg)) as CryptoKey;
        const cryptoKeyFor = (asked: string) => (asked === jwk.alg ? cryptoKey : undefined);
        at.keys.set(jwk.kid, { kid: jwk.kid, thumbprint: jwk.kid, cryptoKeyFor });
      }
      expect((await at.verify(token)).outcome).to.deep.include({ kind: 'claims' });
      const dot = token.lastIndexOf('.') + 1;
      const first = token[dot] === 'A' ? 'B' : 'A';
      expect(await at.reasonOf(token.slice(0, dot) + first + token.slice(dot + 1))).to.equal('token_invalid');
    });
  }
});

interface Signed {
  readonly keys: readonly { readonly kid: string; readonly alg: string }[];
  readonly tokens: readonly { readonly library: string; readonly alg: string; readonly token: string }[];
}
