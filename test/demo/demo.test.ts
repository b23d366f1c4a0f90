// The demo as a user runs it: a process that starts all parts, runs every step and leaves no process behind.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { send } from '../../demo/http-client.ts';
import { builtFile } from '../../lab/built.ts';
import { programArguments } from '../../lab/compiled.ts';
import { allPages } from '../../lab/document.ts';
import { envoyBinary } from '../../lab/envoy.ts';
import { secrets } from '../../lab/secrets.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

describe('the demo', function () {
  this.timeout(300_000);

  before(async () => {
    builtFile('main.js');
    await envoyBinary();
  });

  describe('a complete run', () => {
    let run: Run;
    let exitCode: number;

    before(async () => {
      run = startDemo();
      exitCode = await run.exited;
    });

    it('exits with 0 and every step as expected', () => {
      expect(run.output()).to.match(/^(\d+) of \1 steps as expected$/m);
      expect(run.output()).to.not.match(/^ *FAIL/m);
      expect(exitCode).to.equal(0);
    });

    it('prints the lines that the README shows, in their order', () => {
      const readme = allPages().find(({ path }) => path === 'README.md');
      const shown =
        readme?.blocks
          .find(({ text }) => text.includes('npm run demo'))
          ?.text.trimEnd()
          .split('\n') ?? [];
      const lines = run.output().split('\n');
      const places = shown.filter(line => !/^\$ |…$/.test(line)).map(line => lines.indexOf(line));
      expect(places).to.have.length.of.at.least(5);
      expect(places).to.not.include(-1);
      expect(places).to.deep.equal(places.toSorted((a, b) => a - b));
    });

    for (const row of [
      /sign in with the right one +200 session +200 session/,
      /authorization code with PKCE +200 tokens +200 tokens/,
      /refresh token +200 tokens +200 tokens/,
      /client credentials +200 tokens +200 tokens/,
      /derive a token for globex, as a member +200 tokens +200 tokens/,
      /derive a token for initech, as a stranger +403 not_a_member +403 not_a_member/,
      /alice lists subscriptions +200 +200\n +upstream saw x-auth-uid: user-alice/,
      /forged identity headers are overwritten +200, none upstream +200, none upstream\n +upstream saw x-auth-uid: user-alice/,
      /alice of acme asks for globex +403 account_mismatch +403 account_mismatch/,
      /a member deletes +403 role_forbidden +403 role_forbidden/,
      /carol reads initech, as its owner +200 +200\n +upstream saw x-auth-uid: user-carol/,
      /she reads umbrella, as a member +200 +200\n[^\0]*?upstream saw x-auth-role: member/,
      /she deletes in initech +200 +200/,
      /she deletes in umbrella +403 role_forbidden +403 role_forbidden/,
      /she names no account +400 account_required +400 account_required/,
      /the partner names acme, which is not its own +403 account_mismatch +403 account_mismatch/,
      /it writes, for an owner +403 scope_forbidden +403 scope_forbidden\n +www-authenticate: .*scope="subscriptions"/,
      /no token +401 token_missing +401 token_missing/,
      /forged signature +401 token_invalid +401 token_invalid/,
      /alg none +401 token_invalid +401 token_invalid/,
      /wrong audience +401 token_invalid +401 token_invalid/,
      /wrong issuer +401 token_invalid +401 token_invalid/,
      /no account claim +401 token_invalid +401 token_invalid/,
      /expired +401 token_expired +401 token_expired/,
      /keys rotated: a token of the new key +200 +200/,
      /authentication down: a token of a known key +200 +200/,
      /a token of a key that cannot be fetched +503 keys_unavailable +503 keys_unavailable/,
      /authentication back: recovers by itself +200 +200/,
      /account-authz stopped +503 from Envoy +503 from Envoy/,
    ]) {
      it(`prints the step: ${row.source.split(' +')[0]}`, () => {
        expect(run.output()).to.match(row);
      });
    }

    it('prints no token, and no colour to a pipe', () => {
      expect(run.output()).to.not.match(/eyJ[\w-]+\.[\w-]+\./);
      expect(run.output()).to.not.include('\x1b');
    });

    it('leaves no process running', async () => {
      await expectNothingAt(run.origins());
    });
  });

  describe('with --stay', () => {
    it('stops all parts on SIGTERM', async () => {
      const run = startDemo('--stay');
      await run.shows('Everything stays up until Ctrl-C');
      const origins = run.origins();
      const answers = await Promise.all(origins.map(origin => send({ origin, target: '/' })));
      expect(answers.length).to.be.greaterThan(3);
      run.terminate();
      expect(await run.exited).to.equal(0);
      await expectNothingAt(origins);
    });
  });

  describe('interrupted by SIGTERM', () => {
    it('stops all parts', async () => {
      const run = startDemo();
      await run.shows('alice lists subscriptions');
      run.terminate();
      expect(await run.exited).to.equal(143);
      expect(run.output()).to.not.include('steps as expected');
      await expectNothingAt(run.origins());
    });
  });
});

interface Run {
  readonly exited: Promise<number>;
  output(): string;
  /** The http origins of the parts, as the output has them. */
  origins(): readonly string[];
  /** Resolves once the output contains the text; rejects if the run ends without it. */
  shows(text: string): Promise<void>;
  terminate(): void;
}

function startDemo(...args: readonly string[]): Run {
  const child = spawn(process.execPath, [...programArguments('demo/main.ts'), ...args], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const terminate = (): void => void child.kill('SIGTERM');
  process.once('exit', terminate);
  let output = '';
  const exited = once(child, 'close').then(([code]) => {
    process.off('exit', terminate);
    secrets.show('demo', output);
    return Number(code);
  });
  const collect = (text: string): void => {
    output += text;
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  return {
    exited,
    output: () => output,
    origins: () => [...new Set(output.match(/http:\/\/127\.0\.0\.1:\d+/g))],
    async shows(text) {
      const over = exited.then(code => {
        throw new Error(`the demo exited with ${code}:\n${output}`);
      });
      while (!output.includes(text)) await Promise.race([once(child.stdout, 'data'), over]);
    },
    terminate,
  };
}

async function expectNothingAt(origins: readonly string[]): Promise<void> {
  expect(origins.length).to.be.greaterThan(3);
  const attempts = origins.map(origin =>
    send({ origin, target: '/' }).then(
      ({ status }) => `${origin} answers ${status}`,
      (error: NodeJS.ErrnoException) => error.code,
    ),
  );
  expect(new Set(await Promise.all(attempts))).to.deep.equal(new Set(['ECONNREFUSED']));
}
