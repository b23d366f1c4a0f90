// Tokens as real providers issue them, each decided by the engine under the settings that a user would write for it.
import { expect } from 'chai';
import { configSchema } from '../src/config/schema.ts';
import { type CheckResult, createEngine } from '../src/engine.ts';
import { parseKeySet } from '../src/keys/jwks.ts';
import { acceptedTokens, type ProviderToken, refusedTokens } from './fixtures/provider-tokens.ts';
import { facts } from './support/facts.ts';
import { fixedKeyRings } from './support/fixed-key-rings.ts';
import { signingKey } from './support/signing-key.ts';
import { now, token } from './support/token.ts';

const roles = { admin: ['GET', 'POST'], member: ['GET'], 'read:subscriptions': ['GET'] };

async function decide(
  { header, claims }: ProviderToken,
  issuer: ProviderToken['issuer'],
  request: { readonly account: string; readonly method?: string },
): Promise<CheckResult> {
  const key = await signingKey('r1', 'RS256');
  const set = await parseKeySet(Buffer.from(JSON.stringify({ keys: [key.publicJwk] })), ['RS256']);
  if (set.kind === 'problem') throw new Error(set.problem);
  const config = configSchema.parse({
    issuers: [{ ...issuer, jwksUrl: 'https://keys.example.com' }],
    routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }],
    roles,
  });
  const engine = createEngine({ config, keyRings: fixedKeyRings(config, set.keys), now: () => now });
  const headerText = JSON.stringify({ ...header, kid: key.kid });
  const authorization = `Bearer ${await token({ key, headerText, payloadText: JSON.stringify(claims) })}`;
  const target = `/api/subscriptions/accounts/${request.account}`;
  return engine.decide(facts({ target, method: request.method ?? 'GET', headers: { authorization } }));
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
        expect(decision.kind === 'allow').to.equal(identity.role === 'admin');
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
