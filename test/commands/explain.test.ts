// The explain command: arguments, input and output. test/explain/same-answer.test.ts compares it with the service.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { createKeySeed } from '../../src/keys/key-seed.ts';
import {
  dottedIssuer,
  type ExplainLab,
  explanationOf,
  failedCheck,
  runExplain,
  startExplainLab,
} from '../explain/explain-lab.ts';
import type { Outcome } from '../support/command.ts';
import { writeFixture } from '../support/config-file.ts';
import { serviceConfig } from '../support/service.ts';
import { signingKey } from '../support/signing-key.ts';
import { startTestIssuer } from '../support/test-issuer.ts';
import { audience, type TokenParts, token as tokenOf, uid } from '../support/token.ts';

const path = '/api/subscriptions/accounts/acct1';
const controlSequence = '\u001b[';

describe('explain', () => {
  let lab: ExplainLab;
  let token: string;
  before(async () => {
    lab = await startExplainLab();
    token = await lab.token();
  });
  after(() => lab.stop());

  const run = (args: readonly string[], input: string | Buffer = token): Promise<Outcome> =>
    runExplain(['--config', lab.configFile, '--path', path, ...args], { input });

  const detailOf = async (parts: TokenParts, check: string, ...args: readonly string[]): Promise<string> => {
    const { checks } = explanationOf(await run(['--json', ...args], await lab.token(parts)));
    expect(failedCheck({ checks })).to.equal(check);
    return checks.find(({ name }) => name === check)?.detail ?? '';
  };

  describe('with wrong arguments', () => {
    const rows: readonly (readonly [name: string, args: readonly string[], problem: string])[] = [
      ['no path', ['--config', 'x'], '--path is required: the path and query of the request'],
      ['a positional argument', ['--path', '/', 'eyJ'], 'unexpected argument'],
      ['an unknown option', ['--token', 'eyJ'], 'unknown option --token'],
      [
        'an authorization header',
        ['--path', '/', '--header', 'authorization: Bearer eyJ'],
        'must not be authorization',
      ],
      [
        'a mixed-case Authorization header',
        ['--path', '/', '--header', 'AuthoriZation:eyJ'],
        'must not be authorization',
      ],
      ['a header without a colon', ['--path', '/', '--header', 'eyJ'], "--header must be 'NAME: VALUE'"],
      ['a header without a name', ['--path', '/', '--header', ': eyJ'], "--header must be 'NAME: VALUE'"],
      ['a pseudo header', ['--path', '/', '--header', ':path: /eyJ'], "--header must be 'NAME: VALUE'"],
      [
        'a line end in a header',
        ['--path', '/', '--header', 'a: b\r\nauthorization: eyJ'],
        "--header must be 'NAME: VALUE'",
      ],
      ['a line end after a header', ['--path', '/', '--header', 'a: eyJ\n'], "--header must be 'NAME: VALUE'"],
      ['NUL in a header', ['--path', '/', '--header', 'a: eyJ\0'], "--header must be 'NAME: VALUE'"],
      ['a space before the colon', ['--path', '/', '--header', 'a : eyJ'], "--header must be 'NAME: VALUE'"],
      ['a word as a time', ['--path', '/', '--at', 'eyJ'], '--at must be an RFC 3339 time'],
      ['a time without a zone', ['--path', '/', '--at', '2026-11-21T12:00:00'], '--at must be an RFC 3339 time'],
      ['an impossible date', ['--path', '/', '--at', '2026-02-30T12:00:00Z'], '--at must be an RFC 3339 time'],
      ['a negative time', ['--path', '/', '--at=-5'], '--at must be an RFC 3339 time'],
      ['an empty time', ['--path', '/', '--at', ''], '--at must be an RFC 3339 time'],
      ['a path beside --from-log', ['--from-log', '--path', '/'], '--from-log must be used alone or with --json'],
      [
        'a configuration beside --from-log',
        ['--from-log', '--config', 'x'],
        '--from-log must be used alone or with --json',
      ],
      ['--without-files beside --from-log', ['--from-log', '--without-files'], '--from-log must be used alone'],
      ['a value for --from-log', ['--from-log=eyJ'], '--from-log must have no value'],
    ];
    for (const [name, args, problem] of rows) {
      it(`exits 1 for ${name}, without repeating the value`, async () => {
        const { code, stdout, stderr } = await runExplain(args, { input: token });
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr)
          .to.match(/^account-authz explain: [^\n]+\n$/)
          .and.contain(problem);
        expect(stderr).to.not.contain('eyJ');
      });
    }

    it('exits 1 for an invalid configuration, with the problems as check-config prints them', async () => {
      const file = writeFixture('explain-bad.yaml', 'issuers: []\nroutes: []\nroles: {}\n');
      expect(await runExplain(['--config', file, '--path', path], { input: token })).to.deep.equal({
        code: 1,
        stdout: '',
        stderr:
          `${file}:1:1: issuers: must name at least one issuer\n` +
          `${file}:2:1: routes: must name at least one route\n` +
          `${file}:3:1: roles: must name at least one role\n`,
      });
    });

    it('needs no certificate and no revocation list with --without-files', async () => {
      const config = serviceConfig(lab.issuer, {
        ...fullConfig(),
        tls: { certFile: '/missing/tls.crt', keyFile: '/missing/tls.key' },
        revocation: { file: '/missing/revoked.jsonl' },
      });
      const args = ['--config', writeFixture('explain-files.json', config), '--path', path];
      const { code, stderr } = await runExplain([...args, '--without-files'], { input: token });
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect((await runExplain(args, { input: token })).stderr).to.contain('tls.keyFile: the file does not exist');
    });

    it('exits 1 with one line for a jwksFile without a usable key', async () => {
      const jwksFile = writeFixture('empty-keys.json', '{"keys":[]}');
      const issuers = [{ issuer: lab.issuer.url, audiences: [audience], jwksFile }];
      const file = writeFixture('explain-keys.json', serviceConfig(lab.issuer, fullConfig({ issuers })));
      const { code, stdout, stderr } = await runExplain(['--config', file, '--path', path], { input: token });
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(/^\S+:1:\d+: issuers\[0\]\.jwksFile: the file has no usable key: "keys" is empty\n$/);
    });

    it('exits 1 when NODE_TLS_REJECT_UNAUTHORIZED turns certificate checks off', async () => {
      const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
      const { code, stderr } = await runExplain(['--config', lab.configFile, '--path', path], { env });
      expect(code).to.equal(1);
      expect(stderr).to.contain('NODE_TLS_REJECT_UNAUTHORIZED');
    });
  });

  it('lists its options with --help', async () => {
    const { code, stdout } = await runExplain(['--help']);
    expect(code).to.equal(0);
    for (const option of ['--config', '--path', '--method', '--header', '--at', '--from-log', '--json'])
      expect(stdout).to.contain(option);
  });

  describe('standard input', () => {
    const accepted: readonly (readonly [name: string, input: (token: string) => string])[] = [
      ['a token', text => text],
      ['a token with a line feed', text => `${text}\n`],
      ['a token with CRLF', text => `${text}\r\n`],
      ['a token with surrounding white space', text => ` \t${text} \n\n`],
      ['a token after Bearer', text => `Bearer ${text}\n`],
      ['a token after lower-case bearer', text => `bearer ${text}`],
    ];
    for (const [name, input] of accepted) {
      it(`accepts ${name}`, async () => {
        expect((await run(['--json'], input(token))).code).to.equal(0);
      });
    }

    for (const input of ['', '\n', ' \t\r\n']) {
      it(`reads ${JSON.stringify(input)} as a request without a token`, async () => {
        const outcome = await run(['--json'], input);
        expect(outcome.code).to.equal(3);
        expect(explanationOf(outcome).reason).to.equal('token_missing');
      });
    }

    const refused: readonly (readonly [name: string, input: (token: string) => string | Buffer])[] = [
      ['two lines', text => `${text}\n${text}`],
      ['a wrapped token', text => `${text.slice(0, 76)}\n${text.slice(76)}`],
      ['a NUL byte', text => `${text}\0`],
      ['UTF-16', text => Buffer.from(text, 'utf16le')],
      ['input above the size limit', () => 'a'.repeat(128 * 1024 + 1)],
    ];
    for (const [name, input] of refused) {
      it(`exits 1 with one line for ${name}`, async () => {
        const { code, stdout, stderr } = await run([], input(token));
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr).to.match(/^account-authz explain: standard input must be [^\n]+\n$/);
        expect(stderr).to.not.contain(token.slice(0, 10));
      });
    }

    it('prompts for the token on standard error when it is a terminal', async () => {
      const { code, stderr } = await runExplain(['--config', lab.configFile, '--path', path], {
        input: token,
        isTTY: true,
      });
      expect(code).to.equal(0);
      expect(stderr).to.equal('account-authz explain: paste a token, then Enter and Ctrl-D\n');
    });
  });

  describe('--json', () => {
    it('prints exactly the documented members', async () => {
      for (const args of [['--json'], ['--json', '--method', 'POST', '--header', 'x-account-id: acct2']]) {
        const explanation = explanationOf(await run(args));
        expect(Object.keys(explanation)).to.deep.equal(['decision', 'reason', 'status', 'headers', 'checks']);
        for (const check of explanation.checks) expect(Object.keys(check)).to.deep.equal(['name', 'verdict', 'detail']);
      }
    });

    it('prints the identity headers of an allow, with status 200', async () => {
      const { headers, ...rest } = explanationOf(await run(['--json']));
      expect(rest).to.include({ decision: 'allow', reason: 'allowed', status: 200 });
      expect(headers).to.deep.equal({
        'x-auth-uid': uid,
        'x-auth-app': 'web',
        'x-auth-acc': 'acct1',
        'x-auth-role': 'owner',
        'x-auth-iss': lab.issuer.url,
      });
    });

    it('never prints colours', async () => {
      const options = { input: token, env: { FORCE_COLOR: '1' }, isTTY: true };
      const args = ['--config', lab.configFile, '--path', path, '--json'];
      expect((await runExplain(args, options)).stdout).to.not.contain(controlSequence);
    });
  });

  describe('text output', () => {
    it('has a line for each check, for the keys and for the answer', async () => {
      const { stdout } = await run(['--header', 'X-Account-Id: \tacct2\t ']);
      expect(stdout).to.match(/^pass {9}route {11}\/api\/subscriptions\/accounts\/:account_id\/\*$/m);
      expect(stdout).to.match(/^fail {9}account-named {3}.*acc in the token is acct1.*the header x-account-id\)$/m);
      expect(stdout).to.match(/^keys of http:\S+: 2 keys in use, confirmed .* ago$/m);
      expect(stdout).to.match(
        /^keys of https:\/\/unreachable\.test: 0 keys in use, no key set yet; .*connection refused$/m,
      );
      expect(stdout).to.match(/^deny: 403 account_mismatch$/m);
      expect(stdout).to.match(/^ {2}the client gets {2}cache-control: no-store$/m);
    });

    it('lists the headers that the upstream gets and does not get', async () => {
      const { stdout } = await run([]);
      expect(stdout).to.match(/^allow: 200 allowed$/m);
      expect(stdout).to.match(/^ {2}the upstream gets {2}x-auth-acc: acct1$/m);
      expect(stdout).to.match(/^ {2}it does not get {2}authorization$/m);
    });

    it('marks checks after the refusal as not reached', async () => {
      const { stdout } = await run(['--method', 'get']);
      expect(stdout).to.match(/^not reached {2}account$/m);
    });

    const colours: readonly (readonly [
      name: string,
      env: Readonly<Record<string, string>>,
      isTTY: boolean,
      coloured: boolean,
    ])[] = [
      ['a terminal', {}, true, true],
      ['no terminal', {}, false, false],
      ['NO_COLOR', { NO_COLOR: '1' }, true, false],
      ['an empty NO_COLOR', { NO_COLOR: '' }, true, true],
      ['a dumb terminal', { TERM: 'dumb' }, true, false],
      ['FORCE_COLOR', { FORCE_COLOR: '1' }, false, true],
      ['FORCE_COLOR=0', { FORCE_COLOR: '0' }, true, false],
      ['FORCE_COLOR over NO_COLOR', { FORCE_COLOR: '1', NO_COLOR: '1' }, false, true],
    ];
    for (const [name, env, isTTY, coloured] of colours) {
      it(`is ${coloured ? '' : 'not '}coloured with ${name}, and has the same text`, async () => {
        const args = ['--config', lab.configFile, '--path', path, '--method', 'get'];
        const { stdout } = await runExplain(args, { env, isTTY });
        expect(stdout.includes(controlSequence)).to.equal(coloured);
        const plain = withoutAge((await runExplain(args)).stdout);
        expect(plain).to.contain('deny: 400 request_invalid\n');
        expect(withoutAge(stripVTControlCharacters(stdout))).to.equal(plain);
      });
    }
  });

  describe('--at', () => {
    const times: readonly (readonly [at: string, reason: string])[] = [
      ['2026-11-21T12:00:00Z', 'allowed'],
      ['2026-11-21t14:00:00.5+02:00', 'allowed'],
      ['1795262400', 'allowed'],
      ['1795262400.25', 'allowed'],
      ['2026-11-21T13:00:29.9Z', 'allowed'],
      ['2026-11-21T13:00:30Z', 'token_expired'],
      ['2026-11-21T11:59:29Z', 'token_invalid'],
      ['0', 'token_invalid'],
    ];
    for (const [at, reason] of times) {
      it(`answers ${reason} at ${at} for a token valid from 12:00 to 13:00`, async () => {
        const iat = Date.parse('2026-11-21T12:00:00Z') / 1000;
        const timely = await lab.token({ claims: { iat, exp: iat + 3600 } });
        expect(explanationOf(await run(['--json', '--at', at], timely)).reason).to.equal(reason);
      });
    }

    it('is the reference time of the expiry detail', async () => {
      const claims = { iat: 1_795_262_400, exp: 1_795_266_000 };
      const detail = await detailOf({ claims }, 'expiry', '--at', '1795266312');
      expect(detail).to.contain('expired 312 s before 2026-11-21T13:05:12.000Z, at 2026-11-21T13:00:00.000Z');
    });
  });

  describe('detail of a failed check', () => {
    const seconds = Math.floor(Date.now() / 1000);
    const rows: readonly (readonly [
      name: string,
      check: string,
      parts: TokenParts,
      args: readonly string[],
      why: string,
    ])[] = [
      [
        'the accepted audiences',
        'audience',
        { claims: { aud: 'x' } },
        [],
        `audiences: ${audience}, https://other.test`,
      ],
      ['the allowed applications', 'app', { claims: { app: 'cli' } }, [], 'app is cli; apps: web'],
      ['the known roles', 'role', { claims: { role: 'guest' } }, [], 'role is guest; roles: owner, member'],
      [
        'the methods of the role',
        'role',
        { claims: { role: 'member' } },
        ['--method', 'POST'],
        'role is member, the method is POST; roles.member: GET, HEAD',
      ],
      [
        'all roles of the token',
        'role',
        { claims: { role: ['guest', 'a b'] } },
        [],
        '(roles are "guest", "a b"; roles: owner, member)',
      ],
      [
        'the methods of each of several roles',
        'role',
        { claims: { role: ['guest', 'member'] } },
        ['--method', 'POST'],
        'roles are "guest", "member", the method is POST; roles.member: GET, HEAD',
      ],
      [
        'the JSON Pointer for a claim name with dots',
        'claims',
        { claims: { iss: dottedIssuer, 'https://acct.test/acc': 'acct1', realm_access: { roles: ['owner'] } } },
        [],
        'the token has no claim "realm_access.roles": for a member of an object write the JSON Pointer "/realm_access/roles")',
      ],
      [
        'no JSON Pointer for a claim name that is a URL',
        'claims',
        { claims: { iss: dottedIssuer, 'realm_access.roles': 'owner' } },
        [],
        'scope from "scope")',
      ],
      [
        'the roles of a route',
        'role',
        { claims: { role: 'member' } },
        ['--path', '/api/subscriptions/teams/acct1/members'],
        '/api/subscriptions/:kind/:account_id/members is for owner',
      ],
      [
        'the path segment of the other account',
        'account',
        { claims: { acc: 'acct9' } },
        [],
        'acc in the token is acct9, another account is in segment 4 of the path)',
      ],
      [
        'every place of another account',
        'account-named',
        {},
        ['--path', '/api/subscriptions/accounts/acct1?account_id=acct2', '--header', 'x-account-id: acct3'],
        'another account is in the header x-account-id, the parameter account_id)',
      ],
      ['the empty segment', 'path', {}, ['--path', '/api//x'], 'segment 2 is empty'],
      ['the invalid character', 'route', {}, ['--path', '/api/x%41?%'], 'segment 2 has "%"'],
      ['the required start of a path', 'path', {}, ['--path', 'https://api.test/'], 'it does not start with /'],
      ['the routes', 'route', {}, ['--path', '/x'], 'routes: /api/subscriptions/accounts/:account_id/*, '],
      ['the issuers', 'issuer', { claims: { iss: 'x' } }, [], 'https://unreachable.test)'],
      ['the known kids', 'key', { header: { kid: 'nobody' } }, [], ' ago, kids: "k1", "r1")'],
      ['the missing claim', 'claims', { claims: { acc: undefined } }, [], 'acc from "acc"'],
      ['the maximum lifetime', 'times', { claims: { exp: seconds + 1e6 } }, [], 'token.maxLifetimeSeconds is 86400'],
      ['the clock tolerance', 'times', { claims: { nbf: seconds + 999 } }, [], 'token.clockToleranceSeconds is 30'],
    ];
    for (const [name, check, parts, args, why] of rows) {
      it(`names ${name}`, async () => {
        expect(await detailOf(parts, check, ...args)).to.contain(why);
      });
    }

    it('names only the length of a token that is too long', async () => {
      const { checks } = explanationOf(await run(['--json'], 'a'.repeat(5000)));
      expect(checks.find(({ name }) => name === 'token-length')?.detail).to.contain(
        'it has 5000 bytes, token.maxBytes is 4096',
      );
    });
  });

  describe('revocation', () => {
    it('names the matching fields and the file, and no value', async () => {
      const detail = await detailOf({ claims: { jti: 'stolen' } }, 'revocation');
      expect(detail).to.match(
        /^the revocation list has an entry for app, jti: .*\(revocation\.file: "\S+explain-revoked\.jsonl"\)$/,
      );
      expect(detail).to.not.contain('stolen');
    });

    it('passes without a matching entry, and states when no list is configured', async () => {
      const passed = ({ stdout }: Outcome): string | undefined => /^pass {9}revocation {6}(.*)$/m.exec(stdout)?.[1];
      expect(passed(await run([]))).to.equal('no entry matches');
      const file = writeFixture('explain-no-list.json', serviceConfig(lab.issuer, fullConfig()));
      const outcome = await runExplain(['--config', file, '--path', path], { input: token });
      expect(passed(outcome)).to.equal('no list is configured');
    });

    it('is checked at the time of --at', async () => {
      const entry = { acc: 'acct1', expires: '2026-11-21T12:30:00Z' };
      const revocation = { file: writeFixture('explain-expires.jsonl', entry) };
      const file = writeFixture('explain-expires-config.json', serviceConfig(lab.issuer, fullConfig({ revocation })));
      const iat = Date.parse('2026-11-21T12:00:00Z') / 1000;
      const timely = await lab.token({ claims: { iat, exp: iat + 3600 } });
      const reasonAt = async (at: string): Promise<string> => {
        const args = ['--config', file, '--path', path, '--json', '--at', at];
        return explanationOf(await runExplain(args, { input: timely })).reason;
      };
      expect(await reasonAt('2026-11-21T12:29:59Z')).to.equal('token_revoked');
      expect(await reasonAt('2026-11-21T12:30:00Z')).to.equal('allowed');
    });

    it('exits 1 for an invalid list, with every problem and its place', async () => {
      const list = writeFixture('explain-bad-list.jsonl', '{"acc":1}\n');
      const file = writeFixture(
        'explain-bad-list.json',
        serviceConfig(lab.issuer, fullConfig({ revocation: { file: list } })),
      );
      const { code, stdout, stderr } = await runExplain(['--config', file, '--path', path], { input: token });
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.equal(`${list}:1:1: acc: must be text: put it in quotes\n`);
    });
  });

  describe('keys', () => {
    it('that cannot be fetched lead to exit 4 with the problem', async () => {
      const outcome = await run(['--json'], await lab.token({ claims: { iss: lab.unreachableIssuer } }));
      expect(outcome.code).to.equal(4);
      const { decision, reason, status, checks } = explanationOf(outcome);
      expect({ decision, reason, status }).to.deep.equal({
        decision: 'unavailable',
        reason: 'keys_unavailable',
        status: 503,
      });
      expect(checks.find(({ name }) => name === 'key')?.detail).to.contain('connection refused');
    });

    it('are awaited for at most keys.timeoutSeconds', async () => {
      const hanging = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk] });
      hanging.fault({ kind: 'hang' });
      const file = writeFixture(
        'explain-slow.json',
        serviceConfig(hanging, fullConfig({ keys: { timeoutSeconds: 1 } })),
      );
      const { code, stdout } = await runExplain(['--config', file, '--path', path, '--json'], {
        input: await goodToken(hanging.url),
      });
      await hanging.stop();
      expect(code).to.equal(4);
      expect(stdout).to.contain('last refresh: timed out');
    });

    it('are awaited for longer than the service would wait', async () => {
      const slow = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk] });
      slow.fault({ kind: 'slow', delayMs: 400 });
      const file = writeFixture('explain-slow.json', serviceConfig(slow, fullConfig()));
      const { code } = await runExplain(['--config', file, '--path', path], { input: await goodToken(slow.url) });
      await slow.stop();
      expect(code).to.equal(0);
    });

    it('that are unusable are named on standard error', async () => {
      const issuer = await startTestIssuer({
        keys: [(await signingKey('k1')).publicJwk, { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'weak' }],
      });
      const file = writeFixture('explain-weak.json', serviceConfig(issuer, fullConfig()));
      const outcome = await runExplain(['--config', file, '--path', path, '--json'], {
        input: await goodToken(issuer.url),
      });
      await issuer.stop();
      expect(outcome.code).to.equal(0);
      expect(outcome.stderr).to.equal(
        `account-authz explain: ${issuer.url}: keys not used: RSA modulus (kid "weak")\n`,
      );
    });

    describe('with keys.cacheDirectory', () => {
      let directory: string;
      beforeEach(() => {
        directory = mkdtempSync(join(tmpdir(), 'account-authz-explain-'));
      });
      afterEach(() => rmSync(directory, { recursive: true }));

      it('are not written there', async () => {
        const config = serviceConfig(lab.issuer, fullConfig({ keys: { cacheDirectory: directory } }));
        const file = writeFixture('explain-seed.json', config);
        expect((await runExplain(['--config', file, '--path', path], { input: token })).code).to.equal(0);
        expect(readdirSync(directory)).to.deep.equal([]);
      });

      it('are read from there while the issuer is down, and the output says so', async () => {
        const issuer = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk] });
        const file = writeFixture(
          'explain-seed.json',
          serviceConfig(issuer, fullConfig({ keys: { cacheDirectory: directory } })),
        );
        await leaveSeed(issuer.url, issuer.jwksUrl, directory);
        const [seed = ''] = readdirSync(directory);
        const before = readFileSync(join(directory, seed), 'utf8');
        await issuer.stop();
        const { code, stdout } = await runExplain(['--config', file, '--path', path], {
          input: await goodToken(issuer.url),
        });
        expect(code).to.equal(0);
        expect(stdout).to.match(
          /1 key in use, confirmed .* ago; .*connection refused; these are from keys\.cacheDirectory/,
        );
        expect(readdirSync(directory)).to.deep.equal([seed]);
        expect(readFileSync(join(directory, seed), 'utf8')).to.equal(before);
      });
    });
  });

  describe('--from-log', () => {
    const lineOf = async (parts: TokenParts, target = path) =>
      (await lab.ask({ authorization: `Bearer ${await lab.token(parts)}`, path: target })).line;
    const fromLog = (input: string, ...args: string[]): Promise<Outcome> =>
      runExplain(['--from-log', ...args], { input });

    it('prints each member of the line, the refused check and its detail', async () => {
      const line = await lineOf({}, '/api/subscriptions/accounts/acct2');
      const { code, stdout } = await fromLog(`${JSON.stringify(line)}\n`);
      expect(code).to.equal(3);
      for (const name of [
        'time',
        'requestId',
        'decision',
        'reason',
        'detail',
        'method',
        'route',
        'uid',
        'kid',
        'durationMs',
      ])
        expect(stdout).to.match(
          new RegExp(`^${name} +${line[name]}`.replaceAll('*', '\\*').replaceAll('/', '\\/'), 'm'),
        );
      expect(stdout).to.match(
        /^fail {9}account .*acc in the token is acct1, another account is in segment 4 of the path/m,
      );
      expect(stdout).to.match(/^deny: 403 account_mismatch$/m);
    });

    it('exits 0 for a line of an allow', async () => {
      const { code, stdout } = await fromLog(JSON.stringify(await lineOf({})));
      expect(code).to.equal(0);
      expect(stdout).to.match(/^allow: 200 allowed$/m);
    });

    it('exits 4 for a line with keys_unavailable', async () => {
      const { code, stdout } = await fromLog(JSON.stringify(await lineOf({ claims: { iss: lab.unreachableIssuer } })));
      expect(code).to.equal(4);
      expect(stdout).to.match(/^fail {9}key .*connection refused.*docs\/keys\.md/m);
    });

    it('exits 4 for a line of an internal error, and reports no check as passed', async () => {
      const line = {
        ...(await lineOf({})),
        decision: 'unavailable',
        reason: 'internal',
        detail: 'internal error: see the log',
      };
      const outcome = await fromLog(JSON.stringify(line), '--json');
      expect(outcome.code).to.equal(4);
      const { checks } = explanationOf(outcome);
      expect(failedCheck({ checks })).to.equal('service');
      expect(checks.some(({ verdict }) => verdict === 'pass')).to.equal(false);
    });

    it('accepts a line after the name of a container', async () => {
      expect((await fromLog(`account-authz-1  | ${JSON.stringify(await lineOf({}))}`)).code).to.equal(0);
    });

    it('uses the first check of the reason for an unknown detail', async () => {
      const line = { ...(await lineOf({})), decision: 'deny', reason: 'token_invalid', detail: 'of a later version' };
      const { checks } = explanationOf(await fromLog(JSON.stringify(line), '--json'));
      expect(failedCheck({ checks })).to.equal('token-length');
    });

    it('escapes control characters', async () => {
      const line = {
        ...(await lineOf({ key: { ...(await signingKey('forger')), kid: 'k1' } })),
        requestId: 'a\u202eb',
        method: `GET${controlSequence}2J`,
        detail: `the signature${controlSequence}2J`,
      };
      for (const args of [[], ['--json']]) {
        const { code, stdout } = await fromLog(JSON.stringify(line), ...args);
        expect(code).to.equal(3);
        expect(stdout).to.not.contain(controlSequence).and.to.not.contain('\u202e');
      }
      expect((await fromLog(JSON.stringify(line))).stdout)
        .to.contain('GET\\u{1b}[2J')
        .and.to.contain('a\\u{202e}b');
    });

    const invalidLines: readonly (readonly [name: string, change: (line: string) => string])[] = [
      ['empty input', () => ''],
      ['a token', () => token],
      ['plain text', () => 'all is well'],
      ['a truncated line', line => line.slice(0, 100)],
      ['two lines', line => `${line}\n${line}`],
      ['a log line without a decision', () => '{"level":"info","msg":"serving"}'],
      [
        'a line of the Envoy access log',
        () => '{"requestId":"a","decision":"deny","reason":"token_invalid","method":"GET"}',
      ],
      ['a duplicate member', line => line.replace('{', '{"reason":"allowed",')],
      ['an unknown reason', line => line.replace('"allowed"', '"permitted"')],
      ['an unknown decision', line => line.replace('"allow"', '"yes"')],
      ['an allow with the reason of a refusal', line => line.replace('"allowed"', '"token_invalid"')],
      ['an account outside the grammar', line => line.replace('"acct1"', '"acct/1"')],
      ['a member of another type', line => line.replace('"GET"', '["GET"]')],
      ['an array', line => `[${line}]`],
    ];
    for (const [name, change] of invalidLines) {
      it(`exits 1 with one line for ${name}`, async () => {
        const line = JSON.stringify(await lineOf({}));
        const { code, stdout, stderr } = await fromLog(change(line));
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr).to.match(/^account-authz explain: [^\n]+\n$/);
        expect(stderr).to.not.contain(token.slice(0, 10));
      });
    }
  });

  describe('secrets', () => {
    // Segments of the token, and values of its claims.
    const expectNothingOf = ({ stdout, stderr }: Outcome, secrets: readonly string[]): void => {
      for (const secret of secrets) expect(stdout + stderr).to.not.contain(secret);
    };

    it('of an unverified token are never printed', async () => {
      const key = { ...(await signingKey('forger')), kid: 'k1' };
      const forged = {
        uid: 'swordfish-u',
        app: 'swordfish-a',
        acc: 'swordfish-c',
        role: 'swordfish-r',
        aud: 'swordfish-d',
      };
      const headers = { typ: 'swordfish-t', alg: 'swordfish-g' };
      const variants: readonly TokenParts[] = [
        { key, claims: forged },
        { claims: forged },
        { claims: { ...forged, iss: 'swordfish-i' } },
        { header: { kid: 'swordfish-k' }, claims: forged },
        { header: { typ: headers.typ }, claims: forged },
        { header: { alg: headers.alg }, claims: forged },
        { header: { crit: ['swordfish-x'] }, claims: forged },
        { claims: { ...forged, aud: audience, exp: 'swordfish-e' } },
      ];
      for (const parts of variants) {
        const text = await lab.token(parts);
        for (const args of [[], ['--json']]) {
          const outcome = await run([...args], text);
          expect(outcome.code).to.equal(3);
          expectNothingOf(outcome, ['swordfish', ...text.split('.')]);
        }
      }
    });

    it('of a verified token, the query or a header are never printed', async () => {
      const target = `${path}?access_token=${token}&q=swordfish`;
      const headers = ['--header', 'cookie: session=swordfish', '--header', `x-account-id: acct1`];
      for (const more of [[], ['--json'], ['--method', 'TRACE'], ['--header', 'x-account-id: swordfish']]) {
        const outcome = await run(
          ['--path', target, ...headers, ...more],
          await lab.token({ claims: { email: 'swordfish' } }),
        );
        expectNothingOf(outcome, ['swordfish', 'access_token', ...token.split('.')]);
      }
    });

    it('of any text in place of a token are never printed', async () => {
      const text = fc
        .string({ minLength: 12, maxLength: 60, unit: fc.constantFrom(...'abcXYZ019-_.{}" ') })
        .map(each => `Q${each}Q`);
      await fc.assert(
        fc.asyncProperty(text, fc.constantFrom('', '--json'), async (input, json) => {
          const outcome = await run(json === '' ? [] : [json], input);
          expect(outcome.code).to.be.oneOf([1, 3]);
          expectNothingOf(outcome, [input.trim()]);
        }),
        { numRuns: 40 },
      );
    });
  });
});

// Without empty lists, so that the effective settings are themselves a valid configuration.
function fullConfig(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    ...changes,
  };
}

// The age of the keys differs between two runs.
function withoutAge(text: string): string {
  return text.replaceAll(/confirmed [^\n;]* ago/g, 'confirmed');
}

async function goodToken(issuer: string): Promise<string> {
  const seconds = Math.floor(Date.now() / 1000);
  return tokenOf({ claims: { iss: issuer, iat: seconds - 10, exp: seconds + 600 } });
}

// Writes the seed file that a running service would have left.
async function leaveSeed(issuer: string, jwksUrl: string, cacheDirectory: string): Promise<void> {
  const seed = createKeySeed({ cacheDirectory, issuer, source: `jwksUrl ${jwksUrl}`, algorithms: ['ES256'] });
  const { kid, alg, publicJwk } = await signingKey('k1');
  const { kty = '', crv = '', x = '', y = '' } = publicJwk;
  expect(await seed.save([{ kty, crv, x, y, kid, alg, use: 'sig' }], [], Date.now() - 1000)).to.equal(undefined);
}
