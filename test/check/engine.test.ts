// The cache of verified tokens over a reload: kept only if each issuer of the configuration before has the same token rules.
import { expect } from 'chai';
import { createTokenMemory } from '../../src/check/engine.ts';
import { type Config, configSchema } from '../../src/config/schema.ts';

type Issuer = Partial<Config['issuers'][number]>;

const issuer = (name: string, settings: Issuer = {}) => ({
  issuer: `https://${name}.test`,
  audiences: ['api'],
  jwksUrl: `https://${name}.test/keys`,
  ...settings,
});

function config(issuers: readonly object[], maxTokens = 100): Config {
  return configSchema.parse({
    issuers,
    routes: [{ path: '/api/*' }],
    roles: { owner: ['*'] },
    cache: { maxTokens },
  });
}

describe('cache of verified tokens after a reload', () => {
  const before = createTokenMemory(config([issuer('one'), issuer('two')]));
  const rows: readonly (readonly [what: string, next: Config, isKept: boolean])[] = [
    ['nothing differs', config([issuer('one'), issuer('two')]), true],
    ['the issuers are in another order', config([issuer('two'), issuer('one')]), true],
    ['an issuer is added', config([issuer('one'), issuer('two'), issuer('three')]), true],
    [
      'only the key source differs',
      config([issuer('one', { jwksUrl: 'https://one.test/other' }), issuer('two')]),
      true,
    ],
    ['an issuer is removed', config([issuer('one')]), false],
    ['the audience of one issuer differs', config([issuer('one'), issuer('two', { audiences: ['other'] })]), false],
    ['the algorithms of one issuer differ', config([issuer('one', { algorithms: ['ES256'] }), issuer('two')]), false],
    ['the token types of one issuer differ', config([issuer('one', { tokenTypes: ['JWT'] }), issuer('two')]), false],
    ['integer claims are allowed', config([issuer('one', { allowIntegerClaims: true }), issuer('two')]), false],
    ['the size differs', config([issuer('one'), issuer('two')], 50), false],
  ];
  for (const [what, next, isKept] of rows) {
    it(`is ${isKept ? 'kept' : 'dropped'} when ${what}`, () => {
      expect(createTokenMemory(next, before).verifiedTokens === before.verifiedTokens).to.equal(isKept);
    });
  }
});
