// `init`: the configuration that it prints accepts the token that it was made from, or says what must be chosen.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { type Outcome, runCommand } from '../../../lab/command.ts';
import { writeFixture } from '../../../lab/config-file.ts';
import { signingKey } from '../../../lab/signing-key.ts';
import { startTestIssuer, type TestIssuer } from '../../../lab/test-issuer.ts';
import { base64url, token } from '../../../lab/token.ts';
import { claimShapes } from '../../../src/toolkit/init/claim-shapes.ts';
import { multiTenantTokens } from '../../fixtures/multi-tenant-tokens.ts';
import { listen } from '../../support/listen.ts';

const now = Math.floor(Date.now() / 1000);
const times = { iat: now - 10, exp: now + 300, nbf: undefined };
/** No claim that the table of shapes knows, and none of the default token. */
const bare = {
  uid: undefined,
  app: undefined,
  acc: undefined,
  role: undefined,
  jti: undefined,
  unread: undefined,
  ...times,
};
let documents = 0;
const withAccount = document({ '/v1/{account_id}/items': { get: {} } });
const withoutAccount = document({ '/v1/items': { get: {} } });

function document(paths: object, more: object = {}): string {
  documents += 1;
  return writeFixture(`openapi-${documents}.json`, JSON.stringify({ openapi: '3.1.0', paths, ...more }));
}

type ShapedToken = (typeof multiTenantTokens)[number] & { readonly sources?: readonly unknown[] };

/** Tokens of the providers that have a page and no server here, and of libraries, with what `init` reads account and role from. */
function readShapes(): readonly ShapedToken[] {
  return JSON.parse(readFileSync(new URL('../../fixtures/tokens/shapes.json', import.meta.url), 'utf8'));
}

describe('init', () => {
  let issuer: TestIssuer;
  before(async () => {
    issuer = await startTestIssuer();
  });
  after(() => issuer.stop());

  interface Made extends Outcome {
    // biome-ignore lint/suspicious/noExplicitAny: the parsed configuration
    readonly config: any;
    readonly input: string;
  }

  /** The signed token on standard input. */
  async function init(
    claims: object,
    header: { readonly alg?: string } & object = {},
    args = ['--openapi', withoutAccount],
  ): Promise<Made> {
    const key = await signingKey('k1', header.alg ?? 'ES256');
    issuer.publish([key.publicJwk]);
    const input = await token({ key, header, claims: { ...bare, iss: issuer.url, aud: 'api', ...claims } });
    const outcome = await runCommand('init', args, { input });
    return { ...outcome, config: parse(outcome.stdout), input };
  }

  async function explain({ stdout, input }: Made, path: string): Promise<string> {
    const config = writeFixture('config.yaml', stdout);
    const checked = await runCommand('check-config', ['--config', config]);
    expect(checked.code, checked.stderr).to.equal(0);
    const { stdout: json } = await runCommand('explain', ['--config', config, '--path', path, '--json'], { input });
    return JSON.parse(json).reason;
  }

  const usual = { sub: 'u1', azp: 'web', acc: 'acme', role: 'owner' };

  for (const { provider, header, claims, accounts, sources } of [
    ...multiTenantTokens,
    ...readShapes(),
  ] as readonly ShapedToken[]) {
    it(`reads a token of ${provider}, for each of its accounts`, async () => {
      const made = await init({ aud: undefined, ...claims, ...times, iss: issuer.url }, header as { alg: string }, [
        '--openapi',
        withAccount,
      ]);
      // Cognito names no audience: its app clients must be chosen.
      expect(made.code, made.stderr).to.equal('aud' in claims ? 0 : 3);
      for (const account of 'aud' in claims ? Object.keys(accounts) : [])
        expect(await explain(made, `/v1/${account}/items`)).to.equal('allowed');
      const { acc, role } = made.config.issuers[0].claims;
      const shape = claimShapes.find(each => each.provider === provider);
      // Auth0 names both by URLs of its user.
      if (provider === 'Auth0') expect(acc).to.match(/^https:.*\/account$/);
      else expect([acc, role]).to.deep.equal(sources ?? [shape?.acc?.[0], shape?.role?.[0]]);
    });
  }

  it('says first whether the signature is verified, then what it took from where, and nothing else of the token', async () => {
    const made = await init({ ...usual, email: 'alice@example.com', jti: 'j-1', sid: 's-1' });
    expect(made.code, made.stderr).to.equal(0);
    expect(made.stderr).to.match(/^account-authz init: the signature of the token is verified with a key of http/);
    expect(made.stdout + made.stderr).not.to.match(/u1|acme|alice|j-1|s-1|"web"/);
    expect(await explain(made, '/v1/items')).to.equal('allowed');
  });

  const needs: readonly (readonly [string, object, object, object])[] = [
    ['another algorithm', {}, { alg: 'ES384' }, { algorithms: ['ES384'] }],
    ['no typ', {}, { typ: undefined }, { tokenTypes: [''] }],
    ['another typ', {}, { typ: 'application/x+jwt' }, { tokenTypes: ['application/x+jwt'] }],
    ['numbers', { sub: 7 }, {}, { allowIntegerClaims: true }],
    ['several audiences', { aud: ['b', 'it\u2028s'] }, {}, { audiences: ['b', 'it\u2028s'] }],
    ['words', { acc: undefined, org: 'a,b', role: 'owner,admin' }, {}, {}],
  ];
  for (const [name, claims, header, expected] of needs) {
    it(`writes what the token needs beyond the defaults: ${name}`, async () => {
      const made = await init({ ...usual, ...claims }, header, ['--openapi', withAccount]);
      expect(made.code, made.stderr).to.equal(0);
      expect(made.config.issuers[0]).to.deep.include(expected);
      expect(await explain(made, name === 'words' ? '/v1/b/items' : '/v1/acme/items')).to.equal('allowed');
    });
  }

  it('allows a longer life, a longer token and dots where the token has them', async () => {
    const made = await init({ ...usual, acc: 'acme.com', exp: now + 864_000, more: 'x'.repeat(9000) });
    expect(made.code, made.stderr).to.equal(0);
    expect(made.config.token.maxLifetimeSeconds).to.equal(864_010);
    expect(made.config.account).to.deep.equal({ dots: true });
    expect(await explain(made, '/v1/items')).to.equal('allowed');
    const without = await init({ ...usual, iat: undefined, exp: now + 2_591_000 });
    expect(without.config.token.maxLifetimeSeconds).to.equal(2_592_000);
  });

  const choices: readonly (readonly [string, object, RegExp, object?])[] = [
    ['a claim without a candidate', { acc: undefined }, /choose acc: no claim/],
    [
      'candidates of two kinds',
      { org_id: 'acme', acc: undefined, organization: { acme: {}, b: {} } },
      /choose acc: it may be .*keysOf.* or org_id/,
    ],
    [
      'several accounts where a request need not name one',
      { acc: ['a', 'b'] },
      /choose account: the token has several/,
    ],
    ['no audience', { aud: undefined, client_id: 'web' }, /choose audiences: .* claims\.aud: client_id/],
    [
      'no role but those of every user',
      { role: undefined, realm_access: { roles: ['offline_access', 'default-roles-x'] } },
      /choose role: no claim/,
    ],
    ['a token that is bound to a key', { cnf: { jkt: 'x' } }, /choose cnf: /],
    ['a token without an end', { exp: undefined }, /choose exp: /],
    ['no issuer', { iss: undefined }, /choose issuer: /],
    ['an issuer with {acc} as it stands', { iss: 'https://127.0.0.1:1/{acc}' }, /choose issuer: /],
    ['a token of 70 KiB', { pad: 'x'.repeat(52_000) }, /choose token: it has \d+ bytes/],
    ['a token of tomorrow', { nbf: now + 86_400 }, /choose the token is refused: /],
    ['a shared secret', {}, /choose algorithms: alg is "HS256", a shared secret/, {}],
  ];
  for (const [name, claims, line] of choices) {
    it(`leaves to a person: ${name}`, async () => {
      const made = name === 'a shared secret' ? await initUnsigned() : await init({ ...usual, ...claims });
      expect(made.code, made.stderr).to.equal(3);
      expect(made.stderr).to.match(line);
      expect(made.stdout).to.match(/# choose: /);
      expect(await explain({ config: undefined, ...made }, '/v1/items')).not.to.equal('allowed');
    });
  }

  async function initUnsigned(): Promise<Omit<Made, 'config'>> {
    const input = await token({
      headerText: '{"alg":"HS256","typ":"JWT"}',
      claims: { ...bare, ...usual, iss: issuer.url, aud: 'api' },
    });
    return { ...(await runCommand('init', ['--openapi', withoutAccount], { input })), input };
  }

  it('works for an expired token, and says so', async () => {
    const { code, stderr } = await init({ ...usual, iat: now - 900, exp: now - 600 });
    expect(code, stderr).to.equal(0);
    expect(stderr).to.match(/the token has expired/);
  });

  it('says {acc} where the issuer has the account of the token, or a realm', async () => {
    const { stdout } = await init({ ...usual, iss: `${issuer.url}/realms/shop` });
    expect(stdout).to.match(/^ {2}# An issuer for each account\? Then issuer: http:\S+\/realms\/\{acc\}, /m);
  });

  const sources: readonly (readonly [string, number, RegExp, (key: string) => Promise<void> | void])[] = [
    [
      'the set has not the key',
      3,
      /NOT verified: .*: kid is not a key of the issuer/,
      async () => issuer.publish([(await signingKey('other')).publicJwk]),
    ],
    [
      'no metadata',
      3,
      /NOT verified: no keys were found: .*text\/html.*choose jwksUrl/s,
      () => issuer.fault({ kind: 'html' }, 'discovery'),
    ],
    [
      'an issuer that does not answer',
      3,
      /NOT verified: .*status 500/s,
      () => issuer.fault({ kind: 'respond', status: 500 }, 'jwks'),
    ],
  ];
  for (const [name, code, line, arrange] of sources) {
    it(`says why nothing is verified: ${name}`, async () => {
      const { input } = await init(usual);
      await arrange('');
      const made = await runCommand('init', ['--openapi', withoutAccount], { input });
      issuer.healthy();
      expect(made.code, made.stderr).to.equal(code);
      expect(made.stdout + made.stderr).to.match(line);
    });
  }

  it('never takes a false signature, and asks nobody with --offline', async () => {
    const { input } = await init(usual);
    const forged = await runCommand('init', ['--openapi', withoutAccount], {
      input: `${input.slice(0, -8)}AAAAAAA${input.at(-1)}`,
    });
    expect([forged.code, forged.stderr])
      .to.deep.include(3)
      .and.to.match(/NOT verified: .* does not verify its signature/);
    const asked = issuer.requests().length;
    const offline = await runCommand('init', ['--offline', '--openapi', withoutAccount], { input });
    expect([offline.code, issuer.requests().length]).to.deep.equal([3, asked]);
    expect(offline.stdout).to.match(/# choose: jwksUrl: .*nobody was asked/);
  });

  for (const path of [
    '/.well-known/oauth-authorization-server/tenant',
    '/tenant/.well-known/oauth-authorization-server',
  ]) {
    it(`finds metadata of RFC 8414 at ${path}`, async () => {
      const { publicJwk } = await signingKey('k1');
      const server = createServer(({ url, headers }, response) => {
        const origin = `http://${headers.host}`;
        const documents = new Map<string | undefined, object>([
          [path, { issuer: `${origin}/tenant`, jwks_uri: `${origin}/keys` }],
          ['/keys', { keys: [publicJwk] }],
        ]);
        response.writeHead(documents.has(url) ? 200 : 404).end(JSON.stringify(documents.get(url)));
      });
      const origin = `http://127.0.0.1:${await listen(server)}`;
      const { code, config, stderr } = await init({ ...usual, iss: `${origin}/tenant` });
      server.close();
      expect([code, config.issuers[0].discoveryUrl], stderr).to.deep.equal([0, `${origin}${path}`]);
    });
  }

  it('takes the keys of metadata of another issuer by jwksUrl, and asks where --issuer says', async () => {
    const made = await init({ ...usual, iss: 'https://idp.example.com' }, {}, [
      '--openapi',
      withoutAccount,
      '--issuer',
      issuer.url,
    ]);
    expect(made.code, made.stderr).to.equal(0);
    expect(made.config.issuers[0])
      .to.include({ issuer: 'https://idp.example.com', jwksUrl: issuer.jwksUrl })
      .and.not.to.have.property('discoveryUrl');
  });

  const unreadable: readonly (readonly [string, RegExp])[] = [
    ['', /a token is required/],
    ['a1b2c3', /the token is opaque .* ask the provider for JWT access tokens/],
    [['eyJhbGciOiJSU0EtT0FFUCJ9', 'a', 'b', 'c', 'd'].join('.'), /the token is encrypted/],
    [`${base64url('{}')}.${base64url('{}')}.AAAA`, /the token cannot be read: header: alg is not a string/],
  ];
  for (const [input, line] of unreadable) {
    it(`prints nothing for what is no readable token: ${line.source}`, async () => {
      const { code, stdout, stderr } = await runCommand('init', [], { input });
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.match(line);
    });
  }

  // One small API each, as the framework itself describes it: fixtures/openapi says by which version.
  for (const file of ['fastapi.json', 'nestjs.json', 'springdoc.json', 'drf-spectacular.yaml', 'huma.yaml']) {
    it(`covers the document of a framework: ${file}`, async () => {
      const openapi = fileURLToPath(new URL(`../../fixtures/openapi/${file}`, import.meta.url));
      const { config, code, stdout, stderr } = await init(usual, {}, ['--openapi', openapi]);
      expect(code, stderr).to.equal(0);
      const account = file === 'springdoc.json' ? 'accountId' : 'account_id';
      expect(config.routes).to.deep.equal([{ path: '/api/*' }, { path: `/api/accounts/:${account}/*` }]);
      expect(config.public).to.deep.equal([{ path: '/healthz' }]);
      const made = writeFixture('config.yaml', stdout);
      const covered = await runCommand('check-config', ['--config', made, '--openapi', openapi, '--json']);
      const { operations, problems } = JSON.parse(covered.stdout);
      expect([covered.code, operations.length]).to.deep.equal([0, 5]);
      expect(problems.at(-1).message).to.match(/^5 operations: .*1 checked.*2 nobody.*1 public/);
    });
  }

  it('writes as few routes as say what the document says', async () => {
    const secured = { security: [{ bearer: [] }] };
    const open = { security: [] };
    const paths = {
      '/api/v1/accounts/{accountId}/orders': { get: {}, post: {} },
      '/api/v1/accounts/{accountId}/orders/{id}': { delete: { security: [{ bearer: ['owner'] }] } },
      '/api/v1/prices/{id}': { get: {} },
      '/api/v1/prices/today': { get: open },
      '/health': { get: open },
      '/login': { post: open },
      '/files/{name}': { get: open },
      '/files/upload': { put: {} },
      '/reports/{year}/open': { get: open },
      '/reports/closed/all': { get: {} },
    };
    const made = await init(usual, {}, ['--openapi', document(paths, secured)]);
    expect(made.code, made.stderr).to.equal(0);
    const { routes, public: publicRoutes, account, roles } = made.config;
    expect(routes).to.deep.equal([
      { path: '/api/v1/*' },
      { path: '/api/v1/accounts/:accountId/*' },
      { path: '/files/*' },
      { path: '/reports/*' },
    ]);
    expect(publicRoutes).to.deep.equal([{ path: '/health' }, { path: '/login', methods: ['POST'] }]);
    expect(account).to.deep.equal({ parameter: 'accountId' });
    expect(roles).to.deep.equal({ owner: ['GET', 'HEAD', 'DELETE /api/v1/accounts/:any/orders/:any'] });
    expect(made.stderr).to.match(/GET \/api\/v1\/prices\/today is public in the document and stays checked/);
    const file = writeFixture('config.yaml', made.stdout);
    const covered = await runCommand('check-config', ['--config', file, '--openapi', document(paths, secured)]);
    expect(covered.code, covered.stderr).to.equal(0);
  });

  it('leaves out what no route can serve, and names each parameter and header once', async () => {
    const parameters = ['AccountId', 'accountid'].map(name => ({ name, in: 'query' }));
    const headers = ['X-Account-ID', 'x-account-id', 'x-auth-account'].map(name => ({ name, in: 'header' }));
    const paths = {
      '/v1/a': { get: { parameters: [...parameters, ...headers] } },
      '/v1//b': { get: {} },
      '/v1/../c': { get: {} },
      '/': { get: {} },
      [`/${'x/'.repeat(50_000)}`]: { get: {} },
      '/v1/d': { additionalOperations: { 'M-SEARCH': { security: [] } } },
    };
    const { code, config, stderr } = await init(usual, {}, ['--openapi', document(paths, { security: [{ b: [] }] })]);
    expect(code, stderr).to.equal(0);
    expect(config.routes).to.deep.equal([{ path: '/v1/a' }]);
    expect(config.account).to.deep.equal({ headers: ['x-account-id'], query: ['accountid'] });
    expect(stderr.match(/is left out/g)).to.have.length(5);
  });

  it('descends to what is public, and names the account in headers and queries as the document does', async () => {
    const parameters = [
      { name: 'X-Tenant-ID', in: 'header' },
      { name: 'tenant', in: 'query' },
    ];
    const paths = {
      '/v1/a/{id}': { parameters, get: {} },
      '/v1/b': { get: {} },
      '/v1/open': { get: { security: [] } },
      '/v1/b/x': { get: {} },
    };
    const { code, config, stderr } = await init(usual, {}, ['--openapi', document(paths, { security: [{ b: [] }] })]);
    expect(code, stderr).to.equal(0);
    expect(config.routes).to.deep.equal([{ path: '/v1/a/*' }, { path: '/v1/b/*' }]);
    expect(config.public).to.deep.equal([{ path: '/v1/open' }]);
    expect(config.account).to.deep.equal({ headers: ['x-tenant-id'], query: ['tenant'] });
  });
});
