// The cache of verified tokens over a reload: kept only if each issuer of the configuration before has the same token rules.
import { expect } from 'chai';
import { createTokenMemory } from '../../src/check/engine.ts';
import { type Config, configSchema } from '../../src/config/schema.ts';

const issuer = (name: string, settings: object = {}) => ({
  issuer: `https://${name}.test`,
  audiences: ['api'],
  jwksUrl: `https://${name}.test/keys`,
  ...settings,
});

function config(issuers: readonly object[], settings: object = {}): Config {
  return configSchema.parse({
    issuers,
    routes: [{ path: '/api/*' }],
    roles: { owner: ['*'], member: ['GET'] },
    scopes: { billing: ['*'] },
    ...settings,
  });
}

describe('cache of verified tokens after a reload', () => {
  const forwardClaims = { email: 'email', plan: 'plan' };
  const before = createTokenMemory(config([issuer('one'), issuer('two')], { forwardClaims }));
  const both = (settings: object): Config => config([issuer('one'), issuer('two')], { forwardClaims, ...settings });
  const rows: readonly (readonly [what: string, next: Config, isKept: boolean])[] = [
    ['nothing differs', both({}), true],
    ['the issuers are in another order', config([issuer('two'), issuer('one')], { forwardClaims }), true],
    ['an issuer is added', config([issuer('one'), issuer('two'), issuer('three')], { forwardClaims }), true],
    [
      'the key source differs',
      config([issuer('one', { jwksUrl: 'https://one.test/other' }), issuer('two')], { forwardClaims }),
      true,
    ],
    ['another claim is forwarded', both({ forwardClaims: { email: 'email', plan: 'tier' } }), false],
    ['what is forwarded is in another order', both({ forwardClaims: { plan: 'plan', email: 'email' } }), false],
    ['an issuer is removed', config([issuer('one')]), false],
    ['the audience of one issuer differs', config([issuer('one'), issuer('two', { audiences: ['other'] })]), false],
    ['the algorithms of one issuer differ', config([issuer('one', { algorithms: ['ES256'] }), issuer('two')]), false],
    ['the token types of one issuer differ', config([issuer('one', { tokenTypes: ['JWT'] }), issuer('two')]), false],
    ['integer claims are allowed', config([issuer('one', { allowIntegerClaims: true }), issuer('two')]), false],
    ['the claims of one issuer differ', config([issuer('one', { claims: { uid: 'sub' } }), issuer('two')]), false],
    ['the accounts of one issuer differ', config([issuer('one'), issuer('two', { accounts: ['a*'] })]), false],
    ['the size differs', both({ cache: { maxTokens: 50 } }), false],
    ['an account may have dots', both({ account: { dots: true } }), false],
    ['a role is added', both({ roles: { owner: ['*'], member: ['GET'], guest: ['GET'] } }), false],
    ['the roles are in another order', both({ roles: { member: ['GET'], owner: ['*'] } }), false],
    ['the methods of a role differ', both({ roles: { owner: ['*'], member: ['*'] } }), true],
    ['a scope is added', both({ scopes: { billing: ['*'], orders: ['GET'] } }), false],
    ['a scope has another name', both({ scopes: { orders: ['*'] } }), false],
    ['the methods of a scope differ', both({ scopes: { billing: ['GET'] } }), true],
  ];
  for (const [what, next, isKept] of rows) {
    it(`is ${isKept ? 'kept' : 'dropped'} when ${what}`, () => {
      expect(createTokenMemory(next, before).verifiedTokens === before.verifiedTokens).to.equal(isKept);
    });
  }
});
