// `account-authz test`: the case file, the output and the exit codes. Decisions of the engine are tested elsewhere.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Outcome, runCommand } from '../../../lab/command.ts';
import { changed, fixtureFolder, smallestConfig, writeFixture } from '../../../lab/config-file.ts';
import { signingKey } from '../../../lab/signing-key.ts';
import { startTestIssuer } from '../../../lab/test-issuer.ts';
import { audience, claims as claimsOf, now, token as tokenOf } from '../../../lab/token.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const owner = { uid: 'olga', app: 'web', acc: 'acme', role: 'owner' };
const own = { path: '/api/subscriptions' };
/** A configuration whose stand-in key is quickly made. */
const configWith = (changes = {}) => changed({ ...changes, 'issuers.0.algorithms': ['ES256'] });

function runCases(cases: unknown, config: unknown = configWith(), ...more: string[]): Promise<Outcome> {
  const configFile = writeFixture('policy.yaml', config);
  const casesFile = writeFixture('cases.yaml', typeof cases === 'string' ? cases : { cases });
  return runCommand('test', ['--config', configFile, casesFile, ...more]);
}

/** The decisions of the cases. Each expects `internal`, which never occurs, so that the output names the decision. */
async function decisionsOf(cases: readonly object[], config?: unknown): Promise<readonly string[]> {
  const named = cases.map((each, i) => ({ name: `case ${i}`, request: own, expect: 'internal', ...each }));
  const { stdout, stderr } = await runCases(named, config);
  expect(stderr).to.equal('');
  return Array.from(stdout.matchAll(/received: (\w+)/g), ([, word]) => word ?? '');
}

describe('test', () => {
  it('passes all cases of the example configuration', async () => {
    const example = (name: string): string => join(root, name);
    const args = ['--config', example('config.example.yaml'), example('cases.example.yaml')];
    const outcome = await runCommand('test', args);
    expect(outcome.stderr).to.equal('');
    expect(outcome.stdout).to.match(/^TAP version 14\n1\.\.15\nok 1 - an admin reads its own account\n/);
    expect(outcome.stdout).to.not.contain('not ok');
    expect(outcome.stdout).to.match(/# 15 passed, 0 failed\n$/);
    expect(outcome.code).to.equal(0);
  });

  it('prints expected and received decision of a failed case, and exits 3', async () => {
    const outcome = await runCases([
      { name: 'as expected', claims: owner, request: own, expect: 'allowed' },
      { name: 'not', claims: { ...owner, role: 'eve' }, request: own, expect: 'allowed' },
    ]);
    expect(outcome).to.deep.equal({
      code: 3,
      stderr: '',
      stdout: [
        'TAP version 14',
        '1..2',
        'ok 1 - as expected',
        'not ok 2 - not',
        '  ---',
        '  expected: allowed',
        '  received: role_forbidden',
        '  detail: "the role is not one of roles"',
        '  ...',
        '# 1 passed, 1 failed',
        '',
      ].join('\n'),
    });
  });

  it('compares account, role, scope and actor where a case expects them', async () => {
    const config = configWith({
      routes: [{ path: '/api/*' }],
      account: { headers: ['x-account-id'] },
      roles: { owner: { methods: ['*'], names: ['Site Owner'] }, member: ['GET'] },
      scopes: { read: ['GET'], all: ['*'] },
      'issuers.0.claims': { actor: '/act/sub' },
    });
    const claims = {
      uid: 'olga',
      app: 'web',
      acc: ['acme', 'globex'],
      role: ['member', 'Site Owner'],
      scope: 'all read',
      act: { sub: 'staff' },
    };
    const of = (acc: string, expected: object, more: object = {}) => ({
      claims: { ...claims, ...more },
      request: { method: 'GET', path: '/api/x', headers: { 'x-account-id': acc } },
      expect: expected,
    });
    const { stdout, code } = await runCases(
      [
        of('acme', { reason: 'allowed', acc: 'acme', role: 'owner', scope: 'read', actor: 'staff' }),
        of('acme', { reason: 'allowed', actor: null }, { act: null }),
        of('acme', { reason: 'role_forbidden', acc: 'acme', role: null }, { role: 'Site' }),
        of('acme', { reason: 'allowed', role: 'member' }),
        of('globex', { reason: 'allowed', acc: 'acme', scope: 'all', actor: 'another' }),
        of('acme', { reason: 'account_mismatch' }),
        of('acme', { reason: 'allowed', actor: null }),
      ].map((each, i) => ({ ...each, name: `case ${i + 1}` })),
      config,
    );
    expect(code).to.equal(3);
    expect(stdout.match(/^(?:not )?ok \d|(?<=(?:expected|received): ).*$/gm)).to.deep.equal([
      'ok 1',
      'ok 2',
      'ok 3',
      'not ok 4',
      'allowed, role member',
      'allowed, role owner',
      'not ok 5',
      'allowed, acc acme, scope all, actor another',
      'allowed, acc another, scope read, actor another',
      'not ok 6',
      'account_mismatch',
      'allowed',
      'not ok 7',
      'allowed, actor none',
      'allowed, actor another',
    ]);
  });

  it('fills in the issuer of the account that a case names, where each account has one', async () => {
    const request = { path: '/api/subscriptions/accounts/acme' };
    const [shared, own] = ['https://id.test/keys', 'https://id.test/{acc}/keys'];
    for (const jwksUrl of [shared, own]) {
      const accounts = jwksUrl === own ? ['globex', 'acme'] : ['*'];
      const issuer = { ...smallestConfig().issuers[0], issuer: 'https://id.test/{acc}', jwksUrl, accounts };
      const config = configWith({
        'issuers.0': issuer,
        routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }],
      });
      const of = { uid: 'olga', app: 'web', role: 'owner' };
      const cases = [
        { claims: { ...of, iss: 'https://id.test/acme' }, request },
        { claims: { ...of, iss: 'https://id.test/globex' }, request },
        { claims: { ...of, iss: 'https://id.test/a/b' }, request },
        ...['acme', 'globex', 'nobody'].map(acc => ({ claims: { ...of, acc }, request })),
      ];
      const decisions = ['allowed', 'account_mismatch', 'token_invalid', 'allowed', 'account_mismatch'];
      const ofNobody = jwksUrl === own ? 'token_invalid' : 'account_mismatch';
      expect(await decisionsOf(cases, config)).to.deep.equal([...decisions, ofNobody]);
    }
  });

  it('needs no file that the configuration names with --without-files', async () => {
    const config = configWith({
      tls: { certFile: '/missing/tls.crt', keyFile: '/missing/tls.key' },
      'issuers.0.caFile': '/missing/ca.pem',
      revocation: { file: '/missing/revoked.jsonl' },
    });
    const cases = [{ name: 'own', claims: owner, request: own, expect: 'allowed' }];
    const { code, stdout, stderr } = await runCases(cases, config, '--without-files');
    expect(stderr).to.equal('');
    expect(stdout).to.contain('ok 1 - own');
    expect(code).to.equal(0);
    expect((await runCases(cases, config)).stderr).to.contain('tls.keyFile: the file does not exist');
  });

  it('sets iss, aud, iat and exp by default, and omits claims that are null', async () => {
    const without = (claim: string) => ({ claims: { ...owner, [claim]: null } });
    expect(await decisionsOf([{ claims: owner }, ...['iss', 'aud', 'iat', 'exp', 'uid'].map(without)])).to.deep.equal([
      'allowed',
      'token_invalid',
      'token_invalid',
      'allowed',
      'token_invalid',
      'token_invalid',
    ]);
    expect(await decisionsOf([{ claims: { ...owner, exp: 1000 } }])).to.deep.equal(['token_expired']);
  });

  it('signs for the issuer that iss names, with its first audience, algorithm and token type', async () => {
    const [first] = smallestConfig().issuers;
    const second = {
      ...first,
      issuer: 'https://second.example.com',
      audiences: ['second'],
      algorithms: ['ES384'],
      tokenTypes: [''],
      claims: { aud: 'client_id' },
    };
    const config = configWith({ issuers: [first, second] });
    expect(
      await decisionsOf(
        [{ claims: { ...owner, iss: second.issuer } }, { claims: { ...owner, iss: 'https://third.example.com' } }],
        config,
      ),
    ).to.deep.equal(['allowed', 'token_invalid']);
  });

  for (const alg of ['RS256', 'PS512', 'ES256', 'EdDSA', 'Ed25519']) {
    it(`signs with ${alg}`, async () => {
      const config = changed({ 'issuers.0.algorithms': [alg] });
      expect(await decisionsOf([{ claims: owner }], config)).to.deep.equal(['allowed']);
    });
  }

  it('checks at the time of `at`', async () => {
    const claims = { ...owner, iat: 1000, exp: 1300 };
    expect(
      await decisionsOf([
        { claims, at: 1100 },
        { claims, at: '1970-01-01T00:18:20Z' },
        { claims, at: 1330 },
        { claims, at: 900 },
        { claims },
      ]),
    ).to.deep.equal(['allowed', 'allowed', 'token_expired', 'token_invalid', 'token_expired']);
  });

  it('sends headers with any case and with several lines', async () => {
    const config = configWith({ account: { headers: ['x-account-id'] } });
    const withHeader = (value: unknown) => ({ claims: owner, request: { ...own, headers: { 'X-Account-Id': value } } });
    expect(
      await decisionsOf([withHeader('acme'), withHeader('other'), withHeader(['acme', 'acme'])], config),
    ).to.deep.equal(['allowed', 'account_mismatch', 'request_invalid']);
  });

  it('sends no token for a case without claims and token', async () => {
    expect(await decisionsOf([{}])).to.deep.equal(['token_missing']);
  });

  describe('with a case that has a token', () => {
    it('verifies the token with the keys of the issuer', async () => {
      const key = await signingKey('k1');
      const issuer = await startTestIssuer({ keys: [key.publicJwk] });
      try {
        const config = configWith({
          'issuers.0': { issuer: issuer.url, audiences: [audience], jwksUrl: issuer.jwksUrl },
        });
        const token = await tokenOf({ key, claims: { iss: issuer.url } });
        const request = own;
        const cases = [
          { token, request, at: now },
          { token: `${token}x`, request, at: now },
          { token, request, at: now + 100_000 },
        ];
        expect(await decisionsOf(cases, config)).to.deep.equal(['allowed', 'token_invalid', 'token_expired']);
      } finally {
        await issuer.stop();
      }
    });

    it('does not verify the token with the stand-in key for claims', async () => {
      const jwksUrl = 'http://127.0.0.1:9/jwks';
      const config = configWith({ 'issuers.0.jwksUrl': jwksUrl, 'issuers.0.issuer': 'https://idp.test' });
      const token = await tokenOf({ claims: claimsOf() });
      const named = [{ name: 'a', token, request: own, expect: 'allowed', at: now }];
      const { stdout, code } = await runCases(named, config);
      expect(stdout).to.contain('received: keys_unavailable');
      expect(code).to.equal(3);
    });
  });

  it('writes JUnit XML on request', async () => {
    const file = join(fixtureFolder(), 'junit.xml');
    const cases = [
      { name: 'a "good" <one> & more', claims: owner, request: own, expect: 'allowed' },
      { name: 'bad', request: own, expect: 'allowed' },
    ];
    expect((await runCases(cases, undefined, '--junit', file)).code).to.equal(3);
    const xml = readFileSync(file, 'utf8');
    expect(xml).to.contain('tests="2" failures="1" errors="0" skipped="0"');
    expect(xml).to.contain('<testcase classname="account-authz" name="a &quot;good&quot; &lt;one&gt; &amp; more"/>');
    expect(xml).to.contain('<failure message="expected allowed, received token_missing">no Authorization</failure>');
  });

  it('escapes TAP directives and control characters in a case name', async () => {
    const cases = [{ name: 'a # SKIP \\ \u001b[2K\nok 9', request: own, expect: 'token_missing' }];
    expect((await runCases(cases)).stdout.split('\n')[2]).to.equal('ok 1 - a \\# SKIP \\\\ \\\\u{1b}[2K\\\\u{a}ok 9');
  });

  it('prints no part of a token or a claim', async () => {
    const claims = { ...owner, uid: 'a b secret', role: ['secret'] };
    const { stdout, stderr } = await runCases([
      { name: 'a', claims, request: own, expect: 'allowed' },
      { name: 'b', token: 'secret.secret.secret', request: own, expect: 'allowed' },
    ]);
    expect(`${stdout}${stderr}`).to.not.contain('secret');
  });

  describe('with an invalid case file', () => {
    const good = { name: 'a', claims: owner, request: own, expect: 'allowed' };
    const { expect: _, ...withoutExpect } = good;
    const headers = (shown: object) => ({ request: { ...own, headers: shown } });
    const hosted = [
      { ...good, request: { ...own, host: 'api.example.com' } },
      { ...good, name: 'b' },
    ];
    const reasons = 'must be one of allowed, request_invalid';
    const keys = 'is not a known key: the keys here are';
    // A list has all cases, an object what the good case has besides or instead.
    const rows: readonly (readonly [cases: object | string, problem: string, config?: unknown])[] = [
      [[], ':1:2: cases: must name at least one case'],
      [[withoutExpect], 'cases[0].expect: is required'],
      [[good, good], 'cases[1].name: must not name the same case twice'],
      [{ name: ' ' }, 'cases[0].name: must not be empty'],
      [{ expected: 'allowed' }, `cases[0].expected: ${keys} name, claims, token, request, expect, at`],
      [{ request: { ...own, body: '' } }, `request.body: ${keys} method, path, host, headers`],
      [{ expect: 'denied' }, `cases[0].expect: ${reasons}`],
      [{ expect: { reason: 'allowed', rol: 'owner' } }, `cases[0].expect.rol: ${keys} reason, acc, role, scope, actor`],
      [{ expect: { reason: 'denied', role: 'owner' } }, `cases[0].expect.reason: ${reasons}`],
      [{ token: 'a.b.c' }, 'cases[0].token: must not be set together with claims: remove one'],
      [{ at: 'noon' }, 'cases[0].at: must be a time'],
      [{ request: {} }, 'cases[0].request.path: is required'],
      [headers({ Authorization: 'Basic x' }), 'headers.Authorization: must not be authorization'],
      [headers({ a: 1 }), 'headers.a: must be text'],
      [headers({ a: 'b\nc: d' }), 'headers.a: must be text'],
      ['cases: [', 'cases.yaml:1:'],
      [
        hosted,
        'cases[1].request.host: is required: account.hosts of the configuration names the hosts',
        changed({ 'account.hosts': ['api.example.com'] }),
      ],
    ];
    for (const [cases, problem, config] of rows) {
      it(`exits 1 for ${JSON.stringify(cases)}, and locates it: ${problem}`, async () => {
        const all = Array.isArray(cases) || typeof cases === 'string' ? cases : [{ ...good, ...cases }];
        const { code, stdout, stderr } = await runCases(all, config);
        expect(stderr).to.contain(problem);
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      });
    }
  });

  describe('with wrong arguments', () => {
    const rows: readonly (readonly [name: string, args: readonly string[], problem: string])[] = [
      ['no file', [], 'the file of cases is required: account-authz test CASES.yaml'],
      ['two files', ['a.yaml', 'b.yaml'], 'takes at most 1 argument besides options'],
      ['an unknown option', ['--tap', 'a.yaml'], 'unknown option --tap: account-authz test --help lists the options'],
    ];
    for (const [name, args, problem] of rows) {
      it(`exits 1 with one line for ${name}`, async () => {
        expect(await runCommand('test', args)).to.deep.equal({
          code: 1,
          stdout: '',
          stderr: `account-authz test: ${problem}\n`,
        });
      });
    }

    it('exits 1 for a missing case file', async () => {
      const config = writeFixture('policy.yaml', smallestConfig());
      const { code, stderr } = await runCommand('test', ['--config', config, join(fixtureFolder(), 'none.yaml')]);
      expect(stderr).to.match(/none\.yaml:1:1: .+\n$/);
      expect(code).to.equal(1);
    });

    it('exits 1 for an invalid configuration', async () => {
      const { code, stderr } = await runCases([], { routes: [] });
      expect(stderr).to.contain('policy.yaml:1:');
      expect(code).to.equal(1);
    });
  });
});
