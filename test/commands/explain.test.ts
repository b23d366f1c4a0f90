// The explain command: arguments, input and --from-log. test/offline/explain/same-answer.test.ts compares it with the service.
import { expect } from 'chai';
import { type Outcome, runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { serviceConfig } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { audience, type TokenParts } from '../../lab/token.ts';
import { explanationOf, failedCheck, runExplain } from '../offline/explain/explain-lab.ts';
import { controlSequence, fullConfig, path, useExplainLab } from './explain-config.ts';

describe('explain', () => {
  const explain = useExplainLab();
  const { run } = explain;

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
        const { code, stdout, stderr } = await runExplain(args, { input: explain.token });
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr)
          .to.match(/^account-authz explain: [^\n]+\n$/)
          .and.contain(problem);
        expect(stderr).to.not.contain('eyJ');
      });
    }

    it('exits 1 for an invalid configuration, with the problems as check-config prints them', async () => {
      const file = writeFixture('explain-bad.yaml', 'issuers: []\nroutes: []\nroles: {}\n');
      const outcome = await runExplain(['--config', file, '--path', path], { input: explain.token });
      expect(outcome).to.deep.equal(await runCommand('check-config', ['--config', file]));
      expect(outcome).to.include({ code: 1, stdout: '' });
    });

    it('needs no certificate and no revocation list with --without-files', async () => {
      const config = serviceConfig(explain.lab.issuer, {
        ...fullConfig(),
        tls: { certFile: '/missing/tls.crt', keyFile: '/missing/tls.key' },
        revocation: { file: '/missing/revoked.jsonl' },
      });
      const args = ['--config', writeFixture('explain-files.json', config), '--path', path];
      const { code, stderr } = await runExplain([...args, '--without-files'], { input: explain.token });
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect((await runExplain(args, { input: explain.token })).stderr).to.contain(
        'tls.keyFile: the file does not exist',
      );
    });

    it('exits 1 with one line without a host, where account.hosts names hosts', async () => {
      const config = serviceConfig(
        explain.lab.issuer,
        fullConfig({ account: { headers: ['x-account-id'], query: ['account_id'], hosts: ['api.example.com'] } }),
      );
      const args = ['--config', writeFixture('explain-hosts.json', config), '--path', path];
      expect(await runExplain(args, { input: explain.token })).to.deep.equal({
        code: 1,
        stdout: '',
        stderr:
          "account-authz explain: --header 'host: NAME' is required: account.hosts names the hosts that requests may be for\n",
      });
      const { code } = await runExplain([...args, '--header', 'Host: api.example.com'], { input: explain.token });
      expect(code).to.equal(0);
    });

    it('exits 1 with one line for a jwksFile without a usable key', async () => {
      const jwksFile = writeFixture('empty-keys.json', '{"keys":[]}');
      const issuers = [{ issuer: explain.lab.issuer.url, audiences: [audience], jwksFile }];
      const file = writeFixture('explain-keys.json', serviceConfig(explain.lab.issuer, fullConfig({ issuers })));
      const { code, stdout, stderr } = await runExplain(['--config', file, '--path', path], { input: explain.token });
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(/^\S+:1:\d+: issuers\[0\]\.jwksFile: the file has no usable key: "keys" is empty\n$/);
    });

    it('exits 1 when NODE_TLS_REJECT_UNAUTHORIZED turns certificate checks off', async () => {
      const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
      const { code, stderr } = await runExplain(['--config', explain.lab.configFile, '--path', path], { env });
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
        expect((await run(['--json'], input(explain.token))).code).to.equal(0);
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
        const { code, stdout, stderr } = await run([], input(explain.token));
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr).to.match(/^account-authz explain: standard input must be [^\n]+\n$/);
        expect(stderr).to.not.contain(explain.token.slice(0, 10));
      });
    }

    it('prompts for the token on standard error when it is a terminal', async () => {
      const { code, stderr } = await runExplain(['--config', explain.lab.configFile, '--path', path], {
        input: explain.token,
        isTTY: true,
      });
      expect(code).to.equal(0);
      expect(stderr).to.equal('account-authz explain: paste a token, then Enter and Ctrl-D\n');
    });
  });

  describe('--from-log', () => {
    const lineOf = async (parts: TokenParts, target = path) =>
      (await explain.lab.ask({ authorization: `Bearer ${await explain.lab.token(parts)}`, path: target })).line;
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
      const { code, stdout } = await fromLog(
        JSON.stringify(await lineOf({ claims: { iss: explain.lab.unreachableIssuer } })),
      );
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
      ['a token', () => explain.token],
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
        expect(stderr).to.not.contain(explain.token.slice(0, 10));
      });
    }
  });
});
