// The explain command: arguments, input, and what it reads beside the configuration (keys, a seed, the revocation list).
// test/toolkit/explain/same-answer.test.ts compares it with the service.
import { createHash, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { JWK } from 'jose';
import { type Outcome, runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { currentToken } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { audience } from '../../lab/token.ts';
import { defaultAlgorithms } from '../../src/config/issuer-schema.ts';
import { createKeySeed } from '../../src/keys/key-seed.ts';
import { locationKey } from '../../src/keys/key-source.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { useEnds } from '../support/use-ends.ts';
import { explanationOf, runExplain } from '../toolkit/explain/explain-lab.ts';
import { path, useExplainLab } from './explain-config.ts';

describe('explain', () => {
  const explain = useExplainLab();
  const { run, runWith, detailOf } = explain;

  describe('with wrong arguments', () => {
    const rows: readonly (readonly [name: string, args: readonly string[], problem: string])[] = [
      ['no path', ['--config', 'x'], '--path is required: the path and query of the request'],
      ['a positional argument', ['--path', '/', 'eyJ'], 'unexpected argument'],
      ['an unknown option', ['--token', 'eyJ'], 'unknown option --token'],
      ['authorization', ['--path', '/', '--header', 'authorization: Bearer eyJ'], 'must not be authorization'],
      ['mixed-case Authorization', ['--path', '/', '--header', 'AuthoriZation:eyJ'], 'must not be authorization'],
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
      const missing = {
        tls: { certFile: '/missing/tls.crt', keyFile: '/missing/tls.key' },
        revocation: { file: '/missing/revoked.jsonl' },
      };
      const { code, stdout, stderr } = await runWith(missing, ['--without-files']);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect(stdout).to.match(/pass +revocation +not judged/);
      const byUrl = { revocation: { url: 'http://127.0.0.1:1/', refreshSeconds: 5, maxAgeSeconds: 60 } };
      expect((await runWith(byUrl)).code).to.equal(4);
      const leftOut = await runWith(byUrl, ['--without-files']);
      expect(leftOut.code).to.equal(0);
      expect(leftOut.stdout).to.match(/pass +revocation-list +not judged/);
      expect((await runWith(missing)).stderr).to.contain('tls.keyFile: the file does not exist');
    });

    it('exits 1 with one line without a host, where account.hosts names hosts', async () => {
      const account = { headers: ['x-account-id'], query: ['account_id'], hosts: ['api.example.com'] };
      expect(await runWith({ account })).to.deep.equal({
        code: 1,
        stdout: '',
        stderr:
          "account-authz explain: --header 'host: NAME' is required: account.hosts names the hosts that requests may be for\n",
      });
      expect((await runWith({ account }, ['--header', 'Host: api.example.com'])).code).to.equal(0);
    });

    it('exits 1 with one line for a jwksFile without a usable key', async () => {
      const jwksFile = writeFixture('empty-keys.json', '{"keys":[]}');
      const issuers = [{ issuer: explain.lab.issuer.url, audiences: [audience], jwksFile }];
      const { code, stdout, stderr } = await runWith({ issuers });
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
      expect(passed(await runWith({}))).to.equal('no list is configured');
    });

    it('is checked at the time of --at', async () => {
      const entry = { acc: 'acct1', expires: '2026-11-21T12:30:00Z' };
      const revocation = { file: writeFixture('explain-expires.jsonl', entry) };
      const iat = Date.parse('2026-11-21T12:00:00Z') / 1000;
      const timely = await explain.lab.token({ claims: { iat, exp: iat + 3600 } });
      const reasonAt = async (at: string): Promise<string> =>
        explanationOf(await runWith({ revocation }, ['--json', '--at', at], { input: timely })).reason;
      expect(await reasonAt('2026-11-21T12:29:59Z')).to.equal('token_revoked');
      expect(await reasonAt('2026-11-21T12:30:00Z')).to.equal('allowed');
    });

    it('exits 1 for an invalid list, with every problem and its place', async () => {
      const list = writeFixture('explain-bad-list.jsonl', '{"acc":1}\n');
      expect(await runWith({ revocation: { file: list } })).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: `${list}:1:1: acc: must be text: put it in quotes\n`,
      });
    });
  });

  describe('keys', () => {
    const ends = useEnds();
    async function issuerWith(...others: readonly JWK[]): Promise<TestIssuer> {
      const issuer = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk, ...others] });
      ends.push(() => issuer.stop());
      return issuer;
    }
    const runOf = async (issuer: TestIssuer, changes = {}, ...args: readonly string[]): Promise<Outcome> =>
      runWith(changes, args, { issuer, input: await currentToken(issuer.url, {}) });

    it('that cannot be fetched lead to exit 4 with the problem', async () => {
      const claims = { iss: explain.lab.unreachableIssuer };
      const outcome = await run(['--json'], await explain.lab.token({ claims }));
      expect(outcome.code).to.equal(4);
      const { checks, ...answer } = explanationOf(outcome);
      expect(answer).to.include({ decision: 'unavailable', reason: 'keys_unavailable', status: 503 });
      expect(checks.find(({ name }) => name === 'key')?.detail).to.contain('connection refused');
    });

    it('are awaited for at most keys.timeoutSeconds', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'hang' });
      const { code, stdout } = await runOf(issuer, { keys: { timeoutSeconds: 1 } }, '--json');
      expect(code).to.equal(4);
      expect(stdout).to.contain('last refresh: timed out');
    });

    it('are awaited for longer than the service would wait', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'slow', delayMs: 400 });
      expect((await runOf(issuer)).code).to.equal(0);
    });

    it('that are not used are named with their reasons', async () => {
      const issuer = await issuerWith({ kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'weak' });
      const outcome = await runOf(issuer, {}, '--json');
      expect(outcome.code).to.equal(0);
      expect(outcome.stdout).to.contain('; not used: weak (RSA of 17 bits, not 2048 to 8192)');
    });

    describe('with keys.cacheDirectory', () => {
      it('are not written there', async () => {
        const cacheDirectory = freshFolder();
        expect((await runWith({ keys: { cacheDirectory } })).code).to.equal(0);
        expect(readdirSync(cacheDirectory)).to.deep.equal([]);
      });

      it('are read from there while the issuer is down, and the output says so', async () => {
        const cacheDirectory = freshFolder();
        const issuer = await issuerWith();
        await leaveSeed(issuer, cacheDirectory);
        const [seed = ''] = readdirSync(cacheDirectory);
        const before = readFileSync(join(cacheDirectory, seed), 'utf8');
        await issuer.stop();
        const { code, stdout } = await runOf(issuer, { keys: { cacheDirectory } });
        expect(code).to.equal(0);
        expect(stdout).to.match(
          /1 key in use, confirmed .* ago; .*connection refused; these are from keys\.cacheDirectory/,
        );
        expect(readdirSync(cacheDirectory)).to.deep.equal([seed]);
        expect(readFileSync(join(cacheDirectory, seed), 'utf8')).to.equal(before);
      });
    });
  });
});

// Writes the seed file that a running service would have left.
async function leaveSeed({ url: issuer, jwksUrl }: TestIssuer, cacheDirectory: string): Promise<void> {
  const seed = createKeySeed({
    cacheDirectory,
    issuers: [issuer],
    location: locationKey({ issuer, jwksUrl, algorithms: defaultAlgorithms }),
    algorithms: defaultAlgorithms,
    readOnly: false,
    maxAgeMs: 3_600_000,
    wallNow: Date.now,
    onWarning: problem => expect(problem).to.equal(undefined),
  });
  const { kid, alg, publicJwk } = await signingKey('k1');
  const { kty = '', crv = '', x = '', y = '' } = publicJwk;
  seed.save([{ kty, crv, x, y, kid, alg, use: 'sig' }], Date.now() - 1000);
  await seed.written();
}
