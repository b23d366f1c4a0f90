// The explain command: arguments and input. test/toolkit/explain/same-answer.test.ts compares it with the service.
import { createHash, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { serviceConfig } from '../../lab/service.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { audience } from '../../lab/token.ts';
import { explanationOf, runExplain } from '../toolkit/explain/explain-lab.ts';
import { fullConfig, path, useExplainLab } from './explain-config.ts';

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
      ['a space before the colon', ['--path', '/', '--header', 'a : eyJ'], "--header must be 'NAME: VALUE'"],
      ['a word as a time', ['--path', '/', '--at', 'eyJ'], '--at must be an RFC 3339 time'],
      ['an empty time', ['--path', '/', '--at', ''], '--at must be an RFC 3339 time'],
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

    it('presents a certificate with --certificate, to which a token may be bound', async () => {
      const { cert } = testCertificate({});
      const thumbprint = createHash('sha256').update(new X509Certificate(cert).raw).digest('base64url');
      const input = await explain.lab.token({ claims: { cnf: { 'x5t#S256': thumbprint } } });
      const answers = [];
      for (const args of [[], ['--certificate', writeFixture('explain-client.pem', cert)]])
        answers.push((await run(args, input)).code);
      expect(answers).to.deep.equal([3, 0]);
      expect(await run(['--certificate', '/missing.pem'], input)).to.include({ code: 1, stdout: '' });
    });

    it('needs no certificate and no revocation list with --without-files', async () => {
      const config = serviceConfig(explain.lab.issuer, {
        ...fullConfig(),
        tls: { certFile: '/missing/tls.crt', keyFile: '/missing/tls.key' },
        revocation: { file: '/missing/revoked.jsonl' },
      });
      const args = ['--config', writeFixture('explain-files.json', config), '--path', path];
      const { code, stdout, stderr } = await runExplain([...args, '--without-files'], { input: explain.token });
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect(stdout).to.match(/pass +revocation +not judged/);
      const byUrl = {
        ...config,
        tls: undefined,
        revocation: { url: 'http://127.0.0.1:1/', refreshSeconds: 5, maxAgeSeconds: 60 },
      };
      const urlArgs = ['--config', writeFixture('explain-url.json', byUrl), '--path', path];
      expect((await runExplain(urlArgs, { input: explain.token })).code).to.equal(4);
      const leftOut = await runExplain([...urlArgs, '--without-files'], { input: explain.token });
      expect(leftOut.code).to.equal(0);
      expect(leftOut.stdout).to.match(/pass +revocation-list +not judged/);
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
      expect(stderr).to.match(/^\S+:1:\d+: issuers\[0\]\.jwksFile: the file has no usable key: the list is empty\n$/);
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
    for (const option of ['--config', '--path', '--method', '--header', '--at', '--json'])
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
      ['a header line', text => `Authorization: Bearer ${text}`],
      ['a token after a byte order mark', text => `\u{feff}${text}`],
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
      ['the answer of a token endpoint', text => JSON.stringify({ access_token: text, token_type: 'Bearer' })],
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
});
