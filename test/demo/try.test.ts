// `npm run try` as in the README, in front of a user's own service.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { messageOf } from '../../demo/run-sections.ts';
import { isEnvoyUnanswered } from '../../demo/try-answers.ts';
import { openTryFolder } from '../../demo/try-folder.ts';
import { startUpstream } from '../../demo/upstream.ts';
import { programArguments } from '../../lab/compiled.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { secrets } from '../../lab/secrets.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { listen } from '../support/listen.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

interface Outcome {
  readonly code: number;
  /** With what it writes to standard error. */
  readonly stdout: string;
}

function runTry(out: string, ...args: readonly string[]): Promise<Outcome> {
  // The test of the demo, which may run at the same time, takes the usual ports.
  const command = [...programArguments('demo/try.ts'), '--once', '--any-ports', '--out', out, ...args];
  return new Promise(resolve => {
    execFile(process.execPath, command, { cwd: project }, (error, stdout, stderr) => {
      secrets.show('command', stdout + stderr);
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout: stdout + stderr });
    });
  });
}

describe('npm run try', () => {
  const out = freshFolder();

  const own = (): string => mkdtempSync(join(out, 'own-'));

  it('shows what one token of two accounts is allowed and refused, and keeps the files that it wrote', async () => {
    const upstream = await startUpstream();
    try {
      const service = ['--upstream', `127.0.0.1:${upstream.port}`, '--path', '/v2/billing/:tenant/open'];
      const { code, stdout } = await runTry(out, ...service, '--route', '/v2/billing/:tenant/*');
      expect(stdout).to.contain('parameter: "tenant"').and.contain('no dangerous setting found');
      expect(stdout).to.contain('200  GET /v2/billing/acme/open    from your service');
      expect(stdout).to.contain('200  GET /v2/billing/globex/open    from your service');
      expect(stdout).to.contain('403  GET /v2/billing/initech/open    account_mismatch, your service never saw it');
      expect(code).to.equal(0);
      const seen = upstream.requests.map(({ headers }) => headers.filter(([name]) => /^x-auth-(acc|role)$/.test(name)));
      expect(seen.map(each => each.map(([, value]) => value).toSorted())).to.deep.equal([
        ['acme', 'owner'],
        ['globex', 'member'],
      ]);
      const token = readFileSync(join(out, 'token.txt'), 'utf8');
      expect(stdout).to.not.contain(token);
      expect(readFileSync(join(out, 'envoy.yaml'), 'utf8'))
        .to.contain('/v2/billing')
        .and.contain(`path: ${join(out, 'authz.sock')}`);
    } finally {
      await upstream.stop();
    }
  });

  it('keeps an edited configuration and runs it, and names a path that the service does not have', async () => {
    const upstream = createServer((_, response) =>
      response.writeHead(404, { 'content-type': 'application/problem+json' }).end('{"type":"about:blank"}'),
    );
    const port = await listen(upstream);
    try {
      const config = join(out, 'config.yaml');
      const edited = readFileSync(config, 'utf8').replace('/v2/billing/:tenant/*', '/v3/ledger/*');
      writeFileSync(config, edited);
      const service = ['--upstream', `127.0.0.1:${port}`];
      const { code, stdout } = await runTry(out, ...service);
      expect(stdout).to.contain(`# ${config} was edited and is kept`);
      expect(stdout).to.contain('404  GET /v3/ledger?account_id=acme    from your service');
      expect(stdout).to.contain('404 is the answer of your service: account-authz allowed the request.');
      expect(stdout).to.match(/ 'http:\/\/127\.0\.0\.1:\d+\/v3\/ledger\?account_id=acme'$/m);
      expect(code).to.equal(0);
      expect(readFileSync(config, 'utf8')).to.equal(edited);
      expect(readFileSync(join(out, 'envoy.yaml'), 'utf8')).to.contain('/v3/ledger');
    } finally {
      upstream.close();
    }
  });

  it('runs a configuration of its reader as it is, and names its issuer', async () => {
    const [listen, admin] = await freePorts(2);
    const config = join(own(), 'mine.yaml');
    const issuer = { issuer: 'https://idp.invalid', audiences: ['api'], jwksUrl: 'https://idp.invalid/jwks' };
    const routes = [{ path: '/v1/prices' }, { path: '/v1/:tenant/*' }];
    const ports = { listen: `127.0.0.1:${listen}`, admin: `127.0.0.1:${admin}` };
    const policy = { routes, account: { parameter: 'tenant' }, roles: { owner: ['GET'] } };
    writeFileSync(config, JSON.stringify({ ...ports, issuers: [issuer], ...policy }));
    const { code, stdout } = await runTry(own(), '--config', config);
    expect(stdout).to.match(/https:\/\/idp\.invalid issues the tokens.*http:\/\/127\.0\.0\.1:\d+\/v1\/ACCOUNT$/ms);
    expect(code).to.equal(0);
  });

  it('takes 503 of the service itself for its answer, and that of Envoy for none', () => {
    const answer = { status: 503, headers: {} };
    expect(isEnvoyUnanswered({ ...answer, body: 'closed for repairs' })).to.equal(false);
    expect(isEnvoyUnanswered({ ...answer, body: 'upstream connect error or disconnect/reset' })).to.equal(true);
  });

  for (const { name, args, says } of [
    {
      name: 'a route that the configuration refuses',
      args: ['--route', '/api/*/x'],
      says: /routes\[0\]\.path/,
    },
    {
      name: 'several parameters without the one that is the account',
      args: ['--route', '/api/:tenant/users/:user'],
      says: /the parameters tenant, user: name the account with --account, such as --account tenant/,
    },
  ]) {
    it(`names ${name}`, async () => {
      const { code, stdout } = await runTry(own(), ...args);
      expect(stdout).to.match(says);
      expect(code).to.equal(1);
    });
  }

  it('names the service that does not answer', async () => {
    const [port] = await freePorts(1);
    const { code, stdout } = await runTry(own(), '--upstream', `127.0.0.1:${port}`);
    expect(stdout).to.contain('503  GET /api/orders/acme    allowed, and Envoy got no answer of your service');
    expect(stdout).to.contain(`Nothing answers on 127.0.0.1:${port}`);
    expect(code).to.equal(1);
  });

  it('writes no file over one that it did not make', async () => {
    for (const name of ['envoy.yaml', 'token.txt', 'config.yaml']) {
      const folder = own();
      const file = join(folder, name);
      writeFileSync(file, 'of somebody else\n');
      const refusal = `${file} is not of npm run try: move it, or name another folder with --out`;
      expect(await openTryFolder(folder).catch(messageOf)).to.equal(refusal);
      expect(readdirSync(folder)).to.deep.equal([name]);
      expect(readFileSync(file, 'utf8')).to.equal('of somebody else\n');
    }
  });
});
