// `npm run try` as in the README, in front of a user's own service.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { startUpstream } from '../../demo/upstream.ts';
import { freePorts } from '../support/envoy.ts';
import { secrets } from '../support/secrets.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

interface Outcome {
  readonly code: number;
  readonly stdout: string;
}

function runTry(out: string, ...args: readonly string[]): Promise<Outcome> {
  const command = ['--import', 'tsx', join('demo', 'try.ts'), '--once', '--out', out, ...args];
  return new Promise(resolve => {
    execFile(process.execPath, command, { cwd: project }, (error, stdout, stderr) => {
      secrets.show('command', stdout + stderr);
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout });
    });
  });
}

describe('npm run try', function () {
  this.timeout(120_000);
  const out = mkdtempSync(join(tmpdir(), 'account-authz-try-'));
  after(() => rmSync(out, { recursive: true, force: true }));

  it('shows a 200 and a 403 for the protected service, and keeps the files that it wrote', async () => {
    const upstream = await startUpstream();
    try {
      const { code, stdout } = await runTry(
        out,
        '--upstream',
        `127.0.0.1:${upstream.port}`,
        '--route',
        '/v2/billing/:account_id',
      );
      expect(stdout).to.contain('no dangerous setting found');
      expect(stdout).to.contain('200  GET /v2/billing/acme    from your service');
      expect(stdout).to.contain('403  GET /v2/billing/globex    account_mismatch, your service never saw it');
      expect(code).to.equal(0);
      expect(upstream.requests.map(({ headers }) => headers.filter(([name]) => name === 'x-auth-acc'))).to.deep.equal([
        [['x-auth-acc', 'acme']],
      ]);
      const token = readFileSync(join(out, 'token.txt'), 'utf8');
      expect(stdout).to.not.contain(token);
      expect(readFileSync(join(out, 'envoy.yaml'), 'utf8')).to.contain('/v2/billing');
    } finally {
      await upstream.stop();
    }
  });

  it('names the service that does not answer', async () => {
    const [port] = await freePorts(1);
    const { code, stdout } = await runTry(out, '--upstream', `127.0.0.1:${port}`);
    expect(stdout).to.contain(`Nothing answers on 127.0.0.1:${port}`);
    expect(code).to.equal(1);
  });

  it('names a route that the configuration refuses', async () => {
    const { code, stdout } = await runTry(out, '--route', '/api/*/x');
    expect(stdout).to.contain('routes[0].path');
    expect(code).to.equal(1);
  });
});
