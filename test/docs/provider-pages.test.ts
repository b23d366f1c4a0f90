// The pages of docs/providers: the configuration accepts the token on the page, and `npm run providers` runs every command on it.
import { expect } from 'chai';
import { parse } from 'yaml';
import { allPages } from '../../lab/document.ts';
import { headings, providerPage, readFixture } from '../../lab/provider-page.ts';
import { acceptedTokens } from '../fixtures/provider-tokens.ts';
import { type Decoded, decideToken } from '../support/decide-token.ts';

// test/docs/other-providers.test.ts has others.md.
const names = allPages()
  .flatMap(({ path }) => /^docs\/providers\/([a-z0-9-]+)\.md$/.exec(path)?.[1] ?? [])
  .filter(name => name !== 'others');
const live = ['keycloak', 'hydra'];

function tokenOf(name: string): Decoded {
  const [header = '', claims = ''] = providerPage(name).blocks(headings.token, 'json');
  return { header: JSON.parse(header), claims: JSON.parse(claims) };
}

describe('provider pages', () => {
  it('are exactly those in the index', () => {
    const index = allPages().find(({ path }) => path === 'docs/providers/README.md');
    const linked = Array.from(index?.text.matchAll(/^\| \[[^\]]+\]\(([a-z0-9-]+)\.md\)/gm) ?? [], match => match[1]);
    expect([...new Set(linked)]).to.have.members(names);
    expect(names).to.include.members(live);
  });

  for (const name of names) {
    describe(name, () => {
      const [text = ''] = providerPage(name).blocks(headings.configuration, 'yaml');
      const configuration = parse(text);
      const decoded = tokenOf(name);
      const now = Number(decoded.claims.iat) + 1;

      it('has a configuration that accepts its token, only for its account and its role', async () => {
        const [{ issuer, claims = {} }] = configuration.issuers;
        const account = claims.acc === 'tid' ? String(decoded.claims.tid) : 'acme';
        const read = await decideToken(decoded, configuration, now, { account });
        expect(read.decision).to.deep.include({ kind: 'allow' });
        expect(read.decision)
          .to.have.property('principal')
          .that.includes({ iss: issuer, acc: account, role: 'member' });
        const other = await decideToken(decoded, configuration, now, { account: 'globex' });
        expect(other.decision).to.include({ reason: 'account_mismatch' });
        const write = await decideToken(decoded, configuration, now, { account, method: 'DELETE' });
        expect(write.decision).to.include({ reason: 'role_forbidden' });
      });

      it('has issuer settings that test/token/provider-tokens.test.ts tests', () => {
        const [{ jwksUrl: _, ...issuer }] = configuration.issuers;
        expect(acceptedTokens.map(each => each.issuer)).to.deep.include(issuer);
      });

      it('describes two mistakes and the key rotation', () => {
        const page = allPages().find(({ path }) => path === providerPage(name).path);
        expect(page?.text).to.match(/^## Two mistakes that everybody makes\n\n1\. [\s\S]*\n2\. /m);
        expect(page?.text).to.match(/^## Rotate the keys$/m);
      });
    });
  }

  for (const name of live) {
    it(`${name}: shows the token of the fixture, captured from the provider`, () => {
      expect(tokenOf(name)).to.deep.equal(readFixture(name).user);
    });

    it(`${name}: has the commands of the setup, then those of the rotation, and no others`, () => {
      const { sections } = providerPage(name);
      const rotation = [headings.publish, headings.sign, headings.remove, headings.replace];
      expect(sections.slice(sections.indexOf(headings.publish))).to.deep.equal(rotation);
    });
  }

  it('keycloak: roles and accounts of Organizations are those of the addressed organization', async () => {
    const page = providerPage('keycloak');
    const { header, claims } = tokenOf('keycloak');
    const [claim = ''] = page.blocks('Organizations', 'json');
    const [configuration = ''] = page.blocks('Organizations', 'yaml');
    const ask = async (account: string): Promise<unknown> => {
      const token = { header, claims: { ...claims, ...JSON.parse(claim) } };
      const { decision } = await decideToken(token, parse(configuration), Number(claims.iat) + 1, { account });
      return decision.kind === 'allow' ? decision.principal.role : decision.reason;
    };
    const got = await Promise.all(['acme', 'globex', 'initech'].map(ask));
    expect(got).to.deep.equal(['owner', 'member', 'account_mismatch']);
  });

  it('keycloak: every organization of a list has the roles of the user', async () => {
    const { header, claims } = tokenOf('keycloak');
    const [configuration = ''] = providerPage('keycloak').blocks('Organizations as a list', 'yaml');
    const ask = async (account: string): Promise<unknown> => {
      const token = { header, claims: { ...claims, organization: ['globex', 'acme'] } };
      const { decision } = await decideToken(token, parse(configuration), Number(claims.iat) + 1, { account });
      return decision.kind === 'allow' ? decision.principal.role : decision.reason;
    };
    const got = await Promise.all(['acme', 'globex', 'initech'].map(ask));
    expect(got).to.deep.equal(['member', 'member', 'account_mismatch']);
  });

  it('hydra, auth0, okta, entra-id and cognito: the scopes of the token limit the application', async () => {
    // The page's configuration with what its section on scopes changes.
    const scopesOf = (name: string): string => {
      const [whole, changed] = [headings.configuration, 'Scopes'].map(each =>
        parse(providerPage(name).blocks(each, 'yaml').join('')),
      );
      return JSON.stringify({ ...whole, ...changed });
    };
    const shapes = [
      {
        name: 'hydra',
        text: providerPage('hydra').blocks('Scopes', 'yaml').join(''),
        claim: { scp: ['openid', 'orders:read'] },
      },
      { name: 'auth0', claim: { scope: 'openid orders:read' } },
      { name: 'okta', claim: { scp: ['openid', 'orders:read'] } },
      { name: 'entra-id', claim: { scp: 'access_as_user Orders.Read' }, scope: 'Orders.Read' },
      { name: 'cognito', claim: { scope: 'openid orders-api/read' }, scope: 'orders-api/read' },
    ];
    for (const { name, text = scopesOf(name), claim, scope = 'orders:read' } of shapes) {
      const { header, claims } = tokenOf(name);
      const account = String(claims.tid ?? 'acme');
      const ask = async (more: object): Promise<unknown> => {
        const token = { header, claims: { ...claims, ...more } };
        const { decision } = await decideToken(token, parse(text), Number(claims.iat) + 1, { account });
        return decision.kind === 'allow' ? decision.principal.scope : decision.reason;
      };
      expect([await ask({}), await ask(claim)], name).to.deep.equal(['scope_forbidden', scope]);
    }
  });

  it('have bash blocks, which only npm run providers runs, only for the live providers', () => {
    const withBash = allPages().filter(({ blocks }) => blocks.some(({ language }) => language === 'bash'));
    expect(withBash.map(({ path }) => path)).to.have.members(live.map(name => `docs/providers/${name}.md`));
  });
});
