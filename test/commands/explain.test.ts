// How `explain` is called and what it prints; that it answers as the service does is test/explain/same-answer.test.ts.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { createKeySeed } from '../../src/keys/key-seed.ts';
import { writeFixture } from '../config/config-file.ts';
import {
  dottedIssuer,
  type ExplainLab,
  explanationOf,
  failedCheck,
  runExplain,
  startExplainLab,
} from '../explain/explain-lab.ts';
import type { Outcome } from '../support/command.ts';
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

  describe('is called wrongly with', () => {
    const rows: readonly (readonly [name: string, args: readonly string[], problem: string])[] = [
      ['no path', ['--config', 'x'], '--path is required: the path and query of the request'],
      ['a word', ['--path', '/', 'eyJ'], 'unexpected argument'],
      ['an unknown option', ['--token', 'eyJ'], 'unknown option --token'],
      ['authorization', ['--path', '/', '--header', 'authorization: Bearer eyJ'], 'must not be authorization'],
      ['Authorization', ['--path', '/', '--header', 'AuthoriZation:eyJ'], 'must not be authorization'],
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
      ['a word for a time', ['--path', '/', '--at', 'eyJ'], '--at must be an RFC 3339 time'],
      ['a time without its zone', ['--path', '/', '--at', '2026-11-21T12:00:00'], '--at must be an RFC 3339 time'],
      ['a day that is none', ['--path', '/', '--at', '2026-02-30T12:00:00Z'], '--at must be an RFC 3339 time'],
      ['a negative time', ['--path', '/', '--at=-5'], '--at must be an RFC 3339 time'],
      ['an empty time', ['--path', '/', '--at', ''], '--at must be an RFC 3339 time'],
      ['a path beside --from-log', ['--from-log', '--path', '/'], '--from-log must be used alone or with --json'],
      [
        'a configuration beside --from-log',
        ['--from-log', '--config', 'x'],
        '--from-log must be used alone or with --json',
      ],
      ['a value for --from-log', ['--from-log=eyJ'], '--from-log must have no value'],
    ];
    for (const [name, args, problem] of rows) {
      it(`${name}: one line that does not repeat it, exit 1`, async () => {
        const { code, stdout, stderr } = await runExplain(args, { input: token });
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr)
          .to.match(/^account-authz explain: [^\n]+\n$/)
          .and.contain(problem);
        expect(stderr).to.not.contain('eyJ');
      });
    }

    it('a bad configuration: every problem as check-config prints it, exit 1', async () => {
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

    it('a jwksFile without a usable key: one line, exit 1', async () => {
      const jwksFile = writeFixture('empty-keys.json', '{"keys":[]}');
      const issuers = [{ issuer: lab.issuer.url, audiences: [audience], jwksFile }];
      const file = writeFixture('explain-keys.json', serviceConfig(lab.issuer, fullConfig({ issuers })));
      const { code, stdout, stderr } = await runExplain(['--config', file, '--path', path], { input: token });
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(/^\S+:1:\d+: issuers\[0\]\.jwksFile: the file has no usable key: "keys" is empty\n$/);
    });

    it('certificate checks turned off: one line, exit 1', async () => {
      const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
      const { code, stderr } = await runExplain(['--config', lab.configFile, '--path', path], { env });
      expect(code).to.equal(1);
      expect(stderr).to.contain('NODE_TLS_REJECT_UNAUTHORIZED');
    });
  });

  it('tells its options with --help', async () => {
    const { code, stdout } = await runExplain(['--help']);
    expect(code).to.equal(0);
    for (const option of ['--config', '--path', '--method', '--header', '--at', '--from-log', '--json'])
      expect(stdout).to.contain(option);
  });

  describe('standard input', () => {
    const accepted: readonly (readonly [name: string, input: (token: string) => string])[] = [
      ['a token', text => text],
      ['a line end after it', text => `${text}\n`],
      ['the line end of Windows', text => `${text}\r\n`],
      ['white space around it', text => ` \t${text} \n\n`],
      ['Bearer before it', text => `Bearer ${text}\n`],
      ['bearer in small letters before it', text => `bearer ${text}`],
    ];
    for (const [name, input] of accepted) {
      it(`takes ${name}`, async () => {
        expect((await run(['--json'], input(token))).code).to.equal(0);
      });
    }

    for (const input of ['', '\n', ' \t\r\n']) {
      it(`takes ${JSON.stringify(input)} for a request without a token`, async () => {
        const outcome = await run(['--json'], input);
        expect(outcome.code).to.equal(3);
        expect(explanationOf(outcome).reason).to.equal('token_missing');
      });
    }

    const refused: readonly (readonly [name: string, input: (token: string) => string | Buffer])[] = [
      ['two lines', text => `${text}\n${text}`],
      ['a wrapped token', text => `${text.slice(0, 76)}\n${text.slice(76)}`],
      ['NUL', text => `${text}\0`],
      ['the bytes of UTF-16', text => Buffer.from(text, 'utf16le')],
      ['more than any token has', () => 'a'.repeat(128 * 1024 + 1)],
    ];
    for (const [name, input] of refused) {
      it(`refuses ${name} with one line, exit 1`, async () => {
        const { code, stdout, stderr } = await run([], input(token));
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr).to.match(/^account-authz explain: standard input must be [^\n]+\n$/);
        expect(stderr).to.not.contain(token.slice(0, 10));
      });
    }

    it('that is a terminal is told what is awaited, on standard error', async () => {
      const { code, stderr } = await runExplain(['--config', lab.configFile, '--path', path], {
        input: token,
        isTTY: true,
      });
      expect(code).to.equal(0);
      expect(stderr).to.equal('account-authz explain: paste a token, then Enter and Ctrl-D\n');
    });
  });

  describe('--json', () => {
    it('prints the members of the contract and no others', async () => {
      for (const args of [['--json'], ['--json', '--method', 'POST', '--header', 'x-account-id: acct2']]) {
        const explanation = explanationOf(await run(args));
        expect(Object.keys(explanation)).to.deep.equal(['decision', 'reason', 'status', 'headers', 'checks']);
        for (const check of explanation.checks) expect(Object.keys(check)).to.deep.equal(['name', 'verdict', 'detail']);
      }
    });

    it('has the identity headers of an allow, with 200', async () => {
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

    it('is never coloured', async () => {
      const options = { input: token, env: { FORCE_COLOR: '1' }, isTTY: true };
      const args = ['--config', lab.configFile, '--path', path, '--json'];
      expect((await runExplain(args, options)).stdout).to.not.contain(controlSequence);
    });
  });

  describe('for people', () => {
    it('has a line for each check, the keys and the answer', async () => {
      const { stdout } = await run(['--header', 'X-Account-Id: \tacct2\t ']);
      expect(stdout).to.match(/^pass {9}route {11}\/api\/subscriptions\/accounts\/:account_id\/\*$/m);
      expect(stdout).to.match(/^fail {9}account {9}.*acc in the token is acct1.*the header x-account-id\)$/m);
      expect(stdout).to.match(/^keys of http:\S+: 2 keys in use, confirmed .* ago$/m);
      expect(stdout).to.match(/^keys of https:\/\/deaf\.test: 0 keys in use, no key set yet; .*connection refused$/m);
      expect(stdout).to.match(/^deny: 403 account_mismatch$/m);
      expect(stdout).to.match(/^ {2}the client gets {2}cache-control: no-store$/m);
    });

    it('says what the upstream gets and does not get', async () => {
      const { stdout } = await run([]);
      expect(stdout).to.match(/^allow: 200 allowed$/m);
      expect(stdout).to.match(/^ {2}the upstream gets {2}x-auth-acc: acct1$/m);
      expect(stdout).to.match(/^ {2}it does not get {2}authorization$/m);
    });

    it('says that what comes after the refusal was not reached', async () => {
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
      it(`is ${coloured ? '' : 'not '}coloured with ${name}, and says the same`, async () => {
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
      it(`${at} judges a token of 12:00 to 13:00 to be ${reason}`, async () => {
        const iat = Date.parse('2026-11-21T12:00:00Z') / 1000;
        const timely = await lab.token({ claims: { iat, exp: iat + 3600 } });
        expect(explanationOf(await run(['--json', '--at', at], timely)).reason).to.equal(reason);
      });
    }

    it('is the time that an expiry is counted from', async () => {
      const claims = { iat: 1_795_262_400, exp: 1_795_266_000 };
      const detail = await detailOf({ claims }, 'expiry', '--at', '1795266312');
      expect(detail).to.contain('expired 312 s before 2026-11-21T13:05:12.000Z, at 2026-11-21T13:00:00.000Z');
    });
  });

  describe('says what would have to be different:', () => {
    const seconds = Math.floor(Date.now() / 1000);
    const rows: readonly (readonly [
      name: string,
      check: string,
      parts: TokenParts,
      args: readonly string[],
      why: string,
    ])[] = [
      ['the audiences', 'audience', { claims: { aud: 'x' } }, [], `audiences: ${audience}, https://other.test`],
      ['the application', 'app', { claims: { app: 'cli' } }, [], 'app is cli; apps: web'],
      ['the role', 'role', { claims: { role: 'guest' } }, [], 'role is guest; roles: owner, member'],
      [
        'the method',
        'role',
        { claims: { role: 'member' } },
        ['--method', 'POST'],
        'role is member, the method is POST; roles.member: GET, HEAD',
      ],
      [
        'the list of roles',
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
        'the pointer for a name with dots',
        'claims',
        { claims: { iss: dottedIssuer, 'https://acct.test/acc': 'acct1', realm_access: { roles: ['owner'] } } },
        [],
        'the token has no claim "realm_access.roles": for a member of an object write the JSON Pointer "/realm_access/roles")',
      ],
      [
        'no pointer for a name that is a URL',
        'claims',
        { claims: { iss: dottedIssuer, 'realm_access.roles': 'owner' } },
        [],
        'role from "realm_access.roles")',
      ],
      [
        'the roles of a route',
        'role',
        { claims: { role: 'member' } },
        ['--path', '/api/subscriptions/teams/acct1/members'],
        '/api/subscriptions/:kind/:account_id/members is for owner',
      ],
      [
        'the segment of the path',
        'account',
        { claims: { acc: 'acct9' } },
        [],
        'acc in the token is acct9, another account is in segment 4 of the path)',
      ],
      [
        'every place of an account',
        'account',
        {},
        ['--path', '/api/subscriptions/accounts/acct1?account_id=acct2', '--header', 'x-account-id: acct3'],
        'another account is in the header x-account-id, the parameter account_id)',
      ],
      ['the segment that is empty', 'path', {}, ['--path', '/api//x'], 'segment 2 is empty'],
      ['the character', 'path', {}, ['--path', '/api/x%41?%'], 'segment 2 has "%"'],
      ['the start of a path', 'path', {}, ['--path', 'https://api.test/'], 'it does not start with /'],
      ['the routes', 'route', {}, ['--path', '/x'], 'routes: /api/subscriptions/accounts/:account_id/*, '],
      ['the issuers', 'issuer', { claims: { iss: 'x' } }, [], 'https://deaf.test)'],
      ['the kids', 'key', { header: { kid: 'nobody' } }, [], ' ago, kids: "k1", "r1")'],
      ['the claim', 'claims', { claims: { acc: undefined } }, [], 'acc from "acc"'],
      ['the life', 'times', { claims: { exp: seconds + 1e6 } }, [], 'token.maxLifetimeSeconds is 86400'],
      ['the start', 'times', { claims: { nbf: seconds + 999 } }, [], 'token.clockToleranceSeconds is 30'],
    ];
    for (const [name, check, parts, args, why] of rows) {
      it(name, async () => {
        expect(await detailOf(parts, check, ...args)).to.contain(why);
      });
    }

    it('the length, and nothing else, of a token that is too long', async () => {
      const { checks } = explanationOf(await run(['--json'], 'a'.repeat(5000)));
      expect(checks.find(({ name }) => name === 'token-length')?.detail).to.contain(
        'it has 5000 bytes, token.maxBytes is 4096',
      );
    });
  });

  describe('revocation', () => {
    it('names the members that match and the file, and never a value', async () => {
      const detail = await detailOf({ claims: { jti: 'stolen' } }, 'revocation');
      expect(detail).to.match(
        /^the revocation list has an entry for app, jti: .*\(revocation\.file: "\S+explain-revoked\.yaml"\)$/,
      );
      expect(detail).to.not.contain('stolen');
    });

    it('passes if no entry matches, and says so if there is no list', async () => {
      const passed = ({ stdout }: Outcome): string | undefined => /^pass {9}revocation {6}(.*)$/m.exec(stdout)?.[1];
      expect(passed(await run([]))).to.equal('no entry matches');
      const file = writeFixture('explain-no-list.json', serviceConfig(lab.issuer, fullConfig()));
      const outcome = await runExplain(['--config', file, '--path', path], { input: token });
      expect(passed(outcome)).to.equal('no list is configured');
    });

    it('is judged at the time of --at', async () => {
      const entry = { acc: 'acct1', expires: '2026-11-21T12:30:00Z' };
      const revocation = { file: writeFixture('explain-expires.json', [entry]) };
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

    it('needs a good list: every problem with its place in the list, exit 1', async () => {
      const list = writeFixture('explain-bad-list.yaml', '- acc: 1\n');
      const file = writeFixture(
        'explain-bad-list.json',
        serviceConfig(lab.issuer, fullConfig({ revocation: { file: list } })),
      );
      const { code, stdout, stderr } = await runExplain(['--config', file, '--path', path], { input: token });
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.equal(`${list}:1:8: [0].acc: must be text: put it in quotes\n`);
    });
  });

  describe('keys', () => {
    it('ends with 4 and the problem where they cannot be had', async () => {
      const outcome = await run(['--json'], await lab.token({ claims: { iss: lab.deafIssuer } }));
      expect(outcome.code).to.equal(4);
      const { decision, reason, status, checks } = explanationOf(outcome);
      expect({ decision, reason, status }).to.deep.equal({
        decision: 'unavailable',
        reason: 'keys_unavailable',
        status: 503,
      });
      expect(checks.find(({ name }) => name === 'key')?.detail).to.contain('connection refused');
    });

    it('are waited for no longer than keys.timeoutSeconds', async () => {
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

    it('are waited for longer than a request to the service would wait', async () => {
      const slow = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk] });
      slow.fault({ kind: 'slow', delayMs: 400 });
      const file = writeFixture('explain-slow.json', serviceConfig(slow, fullConfig()));
      const { code } = await runExplain(['--config', file, '--path', path], { input: await goodToken(slow.url) });
      await slow.stop();
      expect(code).to.equal(0);
    });

    it('that are not usable are named on standard error', async () => {
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

    describe('with a cacheDirectory', () => {
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

      it('are read from there while the issuer is down, which is said', async () => {
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

    it('tells each member of the line, the check that refused and what would have to be different', async () => {
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

    it('takes a line of an allow, with exit 0', async () => {
      const { code, stdout } = await fromLog(JSON.stringify(await lineOf({})));
      expect(code).to.equal(0);
      expect(stdout).to.match(/^allow: 200 allowed$/m);
    });

    it('takes a line of the service that could not decide, with exit 4', async () => {
      const { code, stdout } = await fromLog(JSON.stringify(await lineOf({ claims: { iss: lab.deafIssuer } })));
      expect(code).to.equal(4);
      expect(stdout).to.match(/^fail {9}key .*connection refused.*docs\/keys\.md/m);
    });

    it('takes a line of a fault, and says that nothing is known of the request', async () => {
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

    it('takes a line behind the name of a container', async () => {
      expect((await fromLog(`account-authz-1  | ${JSON.stringify(await lineOf({}))}`)).code).to.equal(0);
    });

    it('does not say more of a detail that it does not know than of its reason', async () => {
      const line = { ...(await lineOf({})), decision: 'deny', reason: 'token_invalid', detail: 'of a later version' };
      const { checks } = explanationOf(await fromLog(JSON.stringify(line), '--json'));
      expect(failedCheck({ checks })).to.equal('token-length');
    });

    it('escapes what a terminal could obey', async () => {
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

    const strange: readonly (readonly [name: string, change: (line: string) => string])[] = [
      ['nothing', () => ''],
      ['a token', () => token],
      ['text', () => 'all is well'],
      ['half a line', line => line.slice(0, 100)],
      ['two lines', line => `${line}\n${line}`],
      ['another line of the service', () => '{"level":"info","msg":"serving"}'],
      ['a line of Envoy', () => '{"requestId":"a","decision":"deny","reason":"token_invalid","method":"GET"}'],
      ['a member twice', line => line.replace('{', '{"reason":"allowed",')],
      ['a reason that is none', line => line.replace('"allowed"', '"permitted"')],
      ['a decision that is none', line => line.replace('"allow"', '"yes"')],
      ['an allow with a reason to refuse', line => line.replace('"allowed"', '"token_invalid"')],
      ['an account outside the grammar', line => line.replace('"acct1"', '"acct/1"')],
      ['a member of another type', line => line.replace('"GET"', '["GET"]')],
      ['an array', line => `[${line}]`],
    ];
    for (const [name, change] of strange) {
      it(`refuses ${name} with one line, exit 1`, async () => {
        const line = JSON.stringify(await lineOf({}));
        const { code, stdout, stderr } = await fromLog(change(line));
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr).to.match(/^account-authz explain: [^\n]+\n$/);
        expect(stderr).to.not.contain(token.slice(0, 10));
      });
    }
  });

  describe('prints no secret', () => {
    // The base64 of parts of the token, and what it claims.
    const expectNothingOf = ({ stdout, stderr }: Outcome, secrets: readonly string[]): void => {
      for (const secret of secrets) expect(stdout + stderr).to.not.contain(secret);
    };

    it('of a token that is not verified', async () => {
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

    it('of a token that is verified, of the query or of a header', async () => {
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

    it('of any text that stands in the place of a token', async () => {
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

// Effective settings that are a configuration again: no list in them is empty.
function fullConfig(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    ...changes,
  };
}

// What differs between two runs.
function withoutAge(text: string): string {
  return text.replaceAll(/confirmed [^\n;]* ago/g, 'confirmed');
}

async function goodToken(issuer: string): Promise<string> {
  const seconds = Math.floor(Date.now() / 1000);
  return tokenOf({ claims: { iss: issuer, iat: seconds - 10, exp: seconds + 600 } });
}

// As a service leaves one behind.
async function leaveSeed(issuer: string, jwksUrl: string, cacheDirectory: string): Promise<void> {
  const seed = createKeySeed({ cacheDirectory, issuer, source: `jwksUrl ${jwksUrl}`, algorithms: ['ES256'] });
  const { kid, alg, publicJwk } = await signingKey('k1');
  const { kty = '', crv = '', x = '', y = '' } = publicJwk;
  expect(await seed.save([{ kty, crv, x, y, kid, alg, use: 'sig' }], [], Date.now() - 1000)).to.equal(undefined);
}
