// The configurations on the pages are valid, and decide the requests and tokens beside them as the page says.
import { expect } from 'chai';
import { parse } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { allPages } from '../../lab/document.ts';
import { headings, providerPage, readFixture } from '../../lab/provider-page.ts';
import { admit } from '../../src/authz/authorize.ts';
import { configSchema } from '../../src/config/schema.ts';
import { type Decoded, decideToken } from '../support/decide-token.ts';
import { facts, policy } from '../support/facts.ts';

const pages = allPages();
const yamlOf = (path: string): readonly string[] =>
  pages
    .find(page => page.path === path)
    ?.blocks.filter(({ language }) => language === 'yaml')
    .map(({ text }) => text) ?? [];
const all = ['GET', 'HEAD', 'DELETE'];
const reading = ['GET', 'HEAD'];
/** For blocks that leave out what their page is not about. */
const rest = {
  routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }, { path: '/api/subscriptions/*' }],
  roles: { owner: all, member: reading, 'orders:read': reading, reporter: reading, 'orders!t123.Read': reading },
};

describe('configurations in the documents', () => {
  const blocks = pages.flatMap(({ path, blocks }) =>
    blocks.filter(({ text }) => /^issuers:/m.test(text)).map(({ line, text }) => ({ place: `${path}:${line}`, text })),
  );
  for (const { place, text } of blocks) {
    it(`are valid: ${place}`, () => {
      expect(configSchema.safeParse({ ...rest, ...parse(text) }).error?.issues ?? []).to.deep.equal([]);
    });
  }

  const accounts = yamlOf('docs/accounts.md');
  const recipes = [
    ...accounts.flatMap((cases, i) => (cases.startsWith('cases:') ? [{ config: accounts[i - 1] ?? '', cases }] : [])),
    { config: yamlOf('docs/get-started.md')[0] ?? '', cases: yamlOf('docs/policy-tests.md')[0] ?? '' },
  ];
  for (const [i, { config, cases }] of recipes.entries()) {
    it(`decide every request beside them as the page says: recipe ${i + 1}`, async () => {
      const files = [writeFixture('config.yaml', config), writeFixture('cases.yaml', cases)] as const;
      const { stdout, stderr, code } = await runCommand('test', ['--config', ...files]);
      expect([stderr, code], stdout).to.deep.equal(['', 0]);
      expect(stdout).to.match(/^# [1-9]\d* passed, 0 failed$/m);
    });
  }

  it('are seven recipes of docs/accounts.md, and the first steps', () => {
    expect(recipes).to.have.length(8);
  });
});

/** The account is allowed for reading with this role, and nothing else is. */
async function expectOnly(token: Decoded, config: unknown, now: number, account: string, role: string): Promise<void> {
  const ask = async (request: { readonly account: string; readonly method?: string }) =>
    (await decideToken(token, config, now, request)).decision;
  const read = await ask({ account });
  expect(read.kind).to.equal('allow');
  expect(read).to.have.property('principal').that.includes({ acc: account, role });
  const write = await ask({ account, method: 'DELETE' });
  if (role === 'owner') expect(write.kind).to.equal('allow');
  else expect(write).to.include({ reason: 'role_forbidden' });
  expect(await ask({ account: 'initech' })).to.include({ reason: 'account_mismatch' });
}

describe('provider pages', () => {
  const tokenOf = (name: string): Decoded => readFixture(name).user;
  /** The blocks of variants leave out what they have in common with the configuration of their page. */
  const configurationOf = (name: string, heading: string = headings.configuration) => {
    const blocks = [headings.configuration, heading].map(each => providerPage(name).blocks(each, 'yaml').join(''));
    return Object.assign({}, ...blocks.map(text => parse(text)));
  };

  for (const name of ['keycloak', 'hydra']) {
    it(`${name}: the configuration accepts the token of its user, only for its account and its role`, async () => {
      const { header, claims } = tokenOf(name);
      const configuration = configurationOf(name);
      await expectOnly({ header, claims }, configuration, Number(claims.iat) + 1, 'acme', 'member');
    });
  }

  it('hydra: the scopes of the token limit the application', async () => {
    const { header, claims } = tokenOf('hydra');
    const configuration = configurationOf('hydra', 'Scopes');
    const ask = async (more: object): Promise<unknown> => {
      const token = { header, claims: { ...claims, ...more } };
      const { decision } = await decideToken(token, configuration, Number(claims.iat) + 1, { account: 'acme' });
      return decision.kind === 'allow' ? decision.principal.scope : decision.reason;
    };
    expect([await ask({}), await ask({ scp: ['openid', 'orders:read'] })]).to.deep.equal([
      'scope_forbidden',
      'orders:read',
    ]);
  });

  const [organization = ''] = providerPage('keycloak').blocks('Organizations', 'json');
  const organizations = [
    { heading: 'Organizations', claims: JSON.parse(organization), roles: { acme: 'owner', globex: 'member' } },
    {
      heading: 'Organizations as a list',
      claims: { organization: ['globex', 'acme'] },
      roles: { acme: 'member', globex: 'member' },
    },
  ];
  for (const { heading, claims: more, roles } of organizations) {
    it(`keycloak: roles are those of the addressed organization: ${heading}`, async () => {
      const { header, claims } = tokenOf('keycloak');
      const token = { header, claims: { ...claims, ...more } };
      for (const [account, role] of Object.entries(roles)) {
        const { decision } = await decideToken(token, configurationOf('keycloak', heading), Number(claims.iat) + 1, {
          account,
        });
        expect(decision).to.have.property('principal').that.includes({ acc: account, role });
      }
    });
  }
});

describe('docs/paths.md', () => {
  const page = pages.find(({ path }) => path === 'docs/paths.md')?.text ?? '';
  const rows = Array.from(page.matchAll(/^\| `(\/[^`]+)` \| (allowed|refused) \| (allowed|refused) \|$/gm));
  for (const [, path = '', strict, rfc3986] of rows) {
    it(`says rightly that ${path} is ${strict}, and ${rfc3986} with characters: rfc3986`, () => {
      for (const [characters, said] of Object.entries({ strict, rfc3986 })) {
        const routes = ['/files/:account_id/*', '/files/:account_id/admin'].map(each => ({
          path: each,
          characters: characters as 'strict' | 'rfc3986',
        }));
        const { outcome } = admit(policy({ routes }), facts({ target: path }));
        expect(outcome).to.include(said === 'allowed' ? { kind: 'admitted' } : { reason: 'request_invalid' });
      }
    });
  }

  it('has a table of paths', () => {
    expect(rows).to.have.length.of.at.least(20);
  });
});
