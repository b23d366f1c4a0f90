// The output of the explain command: text, JSON, and no secret.
import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Outcome } from '../../lab/command.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { audience, type TokenParts, uid } from '../../lab/token.ts';
import { explanationOf, runExplain } from '../toolkit/explain/explain-lab.ts';
import { controlSequence, path, useExplainLab } from './explain-config.ts';

describe('output of explain', () => {
  const explain = useExplainLab();
  const { run } = explain;

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
        'x-auth-iss': explain.lab.issuer.url,
      });
    });

    it('never prints colours', async () => {
      const options = { input: explain.token, env: { FORCE_COLOR: '1' }, isTTY: true };
      const args = ['--config', explain.lab.configFile, '--path', path, '--json'];
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
        const args = ['--config', explain.lab.configFile, '--path', path, '--method', 'get'];
        const { stdout } = await runExplain(args, { env, isTTY });
        expect(stdout.includes(controlSequence)).to.equal(coloured);
        const plain = withoutAge((await runExplain(args)).stdout);
        expect(plain).to.contain('deny: 400 request_invalid\n');
        expect(withoutAge(stripVTControlCharacters(stdout))).to.equal(plain);
      });
    }
  });

  describe('secrets', () => {
    // Segments of the token, and values of its claims.
    const expectNothingOf = ({ stdout, stderr }: Outcome, secrets: readonly string[]): void => {
      for (const secret of secrets) expect(stdout + stderr).to.not.contain(secret);
    };

    it('of an unverified token are never printed, but alg, typ, kid and iss', async () => {
      const key = { ...(await signingKey('forger')), kid: 'k1' };
      const forged = {
        uid: 'swordfish-u',
        app: 'swordfish-a',
        acc: 'swordfish-c',
        role: 'swordfish-r',
        aud: 'swordfish-d',
      };
      const named = ['herring-i', 'herring-k', 'herring-t', 'herring-g'];
      const [iss = '', kid = '', typ = '', alg = ''] = named;
      const variants: readonly TokenParts[] = [
        { key, claims: forged },
        { claims: { ...forged, iss } },
        { header: { kid }, claims: forged },
        { header: { typ }, claims: forged },
        { header: { alg }, claims: forged },
        { header: { crit: ['swordfish-x'] }, claims: forged },
        { claims: { ...forged, aud: audience, exp: 'swordfish-e' } },
      ];
      const printed: string[] = [];
      for (const parts of variants) {
        const text = await explain.lab.token(parts);
        for (const args of [[], ['--json']]) {
          const outcome = await run([...args], text);
          expect(outcome.code).to.equal(3);
          expectNothingOf(outcome, ['swordfish', ...text.split('.')]);
          printed.push(...(outcome.stdout.match(/herring-./g) ?? []));
        }
      }
      // What its holder needs to know, and what says nothing of who it is.
      expect([...new Set(printed)]).to.have.members(named);
    });

    it('of a verified token, the query or a header are never printed', async () => {
      const target = `${path}?access_token=${explain.token}&q=swordfish`;
      const headers = ['--header', 'cookie: session=swordfish', '--header', `x-account-id: acct1`];
      for (const more of [[], ['--json'], ['--method', 'TRACE'], ['--header', 'x-account-id: swordfish']]) {
        const outcome = await run(
          ['--path', target, ...headers, ...more],
          await explain.lab.token({ claims: { email: 'swordfish' } }),
        );
        expectNothingOf(outcome, ['swordfish', 'access_token', ...explain.token.split('.')]);
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
        { numRuns: 20 },
      );
    });
  });
});

// The age of the keys differs between two runs.
function withoutAge(text: string): string {
  return text.replaceAll(/confirmed [^\n;]* ago/g, 'confirmed');
}
