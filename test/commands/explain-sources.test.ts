// What the explain command reads beside the configuration: keys, a seed, the revocation list.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Outcome } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { serviceConfig } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer } from '../../lab/test-issuer.ts';
import { token as tokenOf } from '../../lab/token.ts';
import { defaultAlgorithms } from '../../src/config/issuer-schema.ts';
import { createKeySeed } from '../../src/keys/key-seed.ts';
import { locationKey } from '../../src/keys/key-source.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { explanationOf, runExplain } from '../toolkit/explain/explain-lab.ts';
import { fullConfig, path, useExplainLab } from './explain-config.ts';

describe('explain with keys and lists', () => {
  const explain = useExplainLab();
  const { run, detailOf } = explain;

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
      const file = writeFixture('explain-no-list.json', serviceConfig(explain.lab.issuer, fullConfig()));
      const outcome = await runExplain(['--config', file, '--path', path], { input: explain.token });
      expect(passed(outcome)).to.equal('no list is configured');
    });

    it('is checked at the time of --at', async () => {
      const entry = { acc: 'acct1', expires: '2026-11-21T12:30:00Z' };
      const revocation = { file: writeFixture('explain-expires.jsonl', entry) };
      const file = writeFixture(
        'explain-expires-config.json',
        serviceConfig(explain.lab.issuer, fullConfig({ revocation })),
      );
      const iat = Date.parse('2026-11-21T12:00:00Z') / 1000;
      const timely = await explain.lab.token({ claims: { iat, exp: iat + 3600 } });
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
        serviceConfig(explain.lab.issuer, fullConfig({ revocation: { file: list } })),
      );
      const { code, stdout, stderr } = await runExplain(['--config', file, '--path', path], { input: explain.token });
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.equal(`${list}:1:1: acc: must be text: put it in quotes\n`);
    });
  });

  describe('keys', () => {
    it('that cannot be fetched lead to exit 4 with the problem', async () => {
      const outcome = await run(
        ['--json'],
        await explain.lab.token({ claims: { iss: explain.lab.unreachableIssuer } }),
      );
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

    it('that are not used are named with their reasons', async () => {
      const issuer = await startTestIssuer({
        keys: [(await signingKey('k1')).publicJwk, { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'weak' }],
      });
      const file = writeFixture('explain-weak.json', serviceConfig(issuer, fullConfig()));
      const outcome = await runExplain(['--config', file, '--path', path, '--json'], {
        input: await goodToken(issuer.url),
      });
      await issuer.stop();
      expect(outcome.code).to.equal(0);
      expect(outcome.stdout).to.contain('; not used: weak (RSA of 17 bits, not 2048 to 8192)');
    });

    describe('with keys.cacheDirectory', () => {
      let directory: string;
      beforeEach(() => {
        directory = freshFolder();
      });

      it('are not written there', async () => {
        const config = serviceConfig(explain.lab.issuer, fullConfig({ keys: { cacheDirectory: directory } }));
        const file = writeFixture('explain-seed.json', config);
        expect((await runExplain(['--config', file, '--path', path], { input: explain.token })).code).to.equal(0);
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
});

async function goodToken(issuer: string): Promise<string> {
  const seconds = Math.floor(Date.now() / 1000);
  return tokenOf({ claims: { iss: issuer, iat: seconds - 10, exp: seconds + 600 } });
}

// Writes the seed file that a running service would have left.
async function leaveSeed(issuer: string, jwksUrl: string, cacheDirectory: string): Promise<void> {
  const seed = createKeySeed({
    cacheDirectory,
    issuers: [issuer],
    location: locationKey({ issuer, jwksUrl, algorithms: defaultAlgorithms }),
    algorithms: defaultAlgorithms,
    readOnly: false,
    maxAgeMs: 3_600_000,
    wallNow: Date.now,
    onResult: problem => expect(problem).to.equal(undefined),
  });
  const { kid, alg, publicJwk } = await signingKey('k1');
  const { kty = '', crv = '', x = '', y = '' } = publicJwk;
  seed.save([{ kty, crv, x, y, kid, alg, use: 'sig' }], Date.now() - 1000);
  await seed.written();
}
