// The trial of docs/shadow-mode.md on real Envoys, with its own snippets: which requests pass, with which headers, and what is logged.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Document, isMap, isSeq, parse } from 'yaml';
import { runProduct } from '../../lab/command.ts';
import { type AccessLogLine, envoyBinary, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath, envoyBootstrap, httpFilterPath } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, type HeaderField, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { readSnippet } from '../../lab/snippets.ts';
import { bearer, identity, installEnvoys, type Lab, onlyRequestOf, ownedFields, startLab } from './lab.ts';

const page = 'docs/shadow-mode.md';
const project = fileURLToPath(new URL('../../', import.meta.url));
const path = '/api/subscriptions/accounts/acct1';
const versions = ['1.38.3', '1.39.3', '1.40.0'] as const;

interface Run {
  readonly code: number;
  readonly output: string;
}

function run(program: string, args: readonly string[]): Promise<Run> {
  return new Promise(resolve => {
    execFile(program, args, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
}

describe('the trial of docs/shadow-mode.md', () => {
  let lab: Lab;
  let authorization: string;
  let turnOn: (bootstrap: Document) => void;

  before(async () => {
    await installEnvoys();
    lab = await startLab();
    authorization = `Authorization: ${await bearer()}`;
    const settings = parse(readSnippet(page, 'yaml', 'shadow_mode: true'));
    const field = parse(readSnippet(page, 'yaml', 'FILTER_STATE'));
    turnOn = bootstrap => {
      for (const [key, value] of Object.entries(settings))
        bootstrap.setIn([...httpFilterPath(bootstrap, 'envoy.filters.http.ext_authz'), key], value);
      const manager = connectionManagerPath(bootstrap);
      const format = [...manager, 'access_log', 0, 'typed_config', 'log_format', 'json_format'];
      for (const [key, value] of Object.entries(field)) bootstrap.setIn([...format, key], value);
      takeOutFilter(bootstrap, 'envoy.filters.http.rbac');
    };
  });
  after(() => lab.stop());
  beforeEach(() => lab.upstream.clear());

  const ask = async (envoy: RunningEnvoy, target: string, lines: readonly string[]) => {
    const answer = await exchange(envoy.port, requestBytes('GET', target, lines));
    return { status: answer.status, line: await envoy.accessLogLine(headerValues(answer, 'x-request-id')[0] ?? '') };
  };
  const sentAuthorization = (): readonly string[] => headerValues(onlyRequestOf(lab.upstream), 'authorization');
  const shadowOf = (line: AccessLogLine): unknown => JSON.parse(String(line.shadow));

  for (const version of versions) {
    describe(`on Envoy ${version}`, () => {
      let envoy: RunningEnvoy;
      let alone: RunningEnvoy;

      before(async () => {
        const [unusedPort] = await freePorts(1);
        const options = { version, upstream: lab.upstream.port, edit: turnOn };
        [envoy, alone] = await Promise.all([
          startEnvoy({ ...options, authz: lab.service.address }),
          startEnvoy({ ...options, authz: `127.0.0.1:${unusedPort}` }),
        ]);
      });
      after(() => Promise.all([envoy.stop(), alone.stop()]));

      it('handles an allow as without the trial', async () => {
        const { status, line } = await ask(envoy, path, [authorization, 'x-auth-acc: evil']);
        expect(status).to.equal(200);
        expect(ownedFields(onlyRequestOf(lab.upstream))).to.deep.equal(identity);
        expect(sentAuthorization()).to.deep.equal([]);
        expect(line).to.include({ decision: 'allow', reason: 'allowed', details: 'via_upstream' });
        expect(shadowOf(line)).to.include({ check_result: 'OK' });
      });

      const refused: readonly (readonly [name: string, target: string, reason: string, status: number])[] = [
        ['another account', '/api/subscriptions/accounts/acct2', 'account_mismatch', 403],
        ['a path outside the grammar', '/api/subscriptions/a;b', 'request_invalid', 400],
      ];
      for (const [name, target, reason, refusal] of refused) {
        it(`passes a request that would be refused, unchanged and without identity: ${name}`, async () => {
          const { status, line } = await ask(envoy, target, [authorization, 'x-auth-acc: evil']);
          expect(status).to.equal(200);
          expect(ownedFields(onlyRequestOf(lab.upstream))).to.deep.equal([]);
          expect(sentAuthorization()).to.deep.equal([authorization.slice('Authorization: '.length)]);
          expect(line).to.include({ decision: 'deny', reason, details: 'via_upstream', flags: '-', status: 200 });
          expect(shadowOf(line)).to.include({ check_result: 'DENIED', status_code: refusal });
        });
      }

      it('passes a request that could not be checked', async () => {
        const { status, line } = await ask(alone, path, [authorization, 'x-auth-acc: evil']);
        expect(status).to.equal(200);
        expect(ownedFields(onlyRequestOf(lab.upstream))).to.deep.equal([]);
        expect(line).to.include({ decision: null, reason: null });
        expect(shadowOf(line)).to.include({ check_result: 'ERROR', status_code: 503 });
      });

      it('counts requests that would be refused and requests that could not be checked', async () => {
        const counts = async (running: RunningEnvoy) => {
          const stats = await running.stats();
          return ['shadow_denied', 'shadow_error'].map(name => stats.get(`http.public.ext_authz.account.${name}`) ?? 0);
        };
        const before = [await counts(envoy), await counts(alone)].flat();
        await ask(envoy, '/api/subscriptions', []);
        await ask(alone, '/api/subscriptions', []);
        const after = [await counts(envoy), await counts(alone)].flat();
        expect(after.map((count, index) => count - (before[index] ?? 0))).to.deep.equal([1, 0, 0, 1]);
      });

      it('passes forged headers to the upstream if the early removal is taken out', async () => {
        const bare = await startEnvoy({
          version,
          upstream: lab.upstream.port,
          authz: lab.service.address,
          edit(bootstrap) {
            turnOn(bootstrap);
            bootstrap.deleteIn([...connectionManagerPath(bootstrap), 'early_header_mutation_extensions']);
          },
        });
        try {
          await ask(bare, '/api/subscriptions', ['x-auth-acc: evil']);
          const forged: readonly HeaderField[] = [['x-auth-acc', 'evil']];
          expect(ownedFields(onlyRequestOf(lab.upstream))).to.deep.equal(forged);
        } finally {
          await bare.stop();
        }
      });
    });
  }

  it('refuses everything that is not allowed if the rbac filter stays', async () => {
    const envoy = await startEnvoy({
      upstream: lab.upstream.port,
      authz: lab.service.address,
      edit: bootstrap =>
        bootstrap.setIn([...httpFilterPath(bootstrap, 'envoy.filters.http.ext_authz'), 'shadow_mode'], true),
    });
    try {
      expect((await ask(envoy, '/api/subscriptions', [])).status).to.equal(403);
      expect(lab.upstream.requests).to.deep.equal([]);
    } finally {
      await envoy.stop();
    }
  });

  it('is refused by an Envoy before 1.38', async () => {
    const trial = await envoyBootstrap({ edit: turnOn });
    const { output } = await run(await envoyBinary('1.36.4'), ['--mode', 'validate', '--config-yaml', trial]);
    expect(output).to.match(/shadow_mode/);
  });

  it('is reported as dangerous by check-config', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'trial-'));
    const file = join(directory, 'envoy.yaml');
    try {
      await writeFile(file, await envoyBootstrap({ edit: turnOn }));
      const args = ['check-config', '--config', join(project, 'config.example.yaml'), '--envoy', file];
      const { code, stderr } = await runProduct(args);
      expect(code).to.equal(1);
      expect(stderr).to.match(/\[shadow-mode\]/);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

function takeOutFilter(bootstrap: Document, name: string): void {
  const filters = bootstrap.getIn([...connectionManagerPath(bootstrap), 'http_filters']);
  if (!isSeq(filters)) throw new Error('no http_filters');
  filters.items = filters.items.filter(item => !(isMap(item) && item.get('name') === name));
}
