// The client of compose.yaml without containers: it runs its steps against the same parts, started with the flags of the image, and its
// exit code says whether every step was as expected.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parseDocument } from 'yaml';
import { send } from '../../demo/http-client.ts';
import { killAtExit } from '../../lab/child-process.ts';
import { programArguments } from '../../lab/compiled.ts';
import { type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { secrets } from '../../lab/secrets.ts';
import { type Part, startPart } from '../support/demo-part.ts';
import { execForm, lastOf, parseDockerfile, product } from '../support/dockerfile.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const read = (name: string): Promise<string> => readFile(`${project}${name}`, 'utf8');

describe('the client of compose.yaml', () => {
  let folder: string;
  let main: string;
  let parts: readonly Part[] = [];
  let authorizer: ChildProcess | undefined;
  let envoy: RunningEnvoy | undefined;
  let addresses: readonly string[];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'compose-client-'));
    // A path of its own: the client halts every process that runs this script, and others may run the project's.
    await symlink(join(project, 'dist'), join(folder, 'dist'));
    main = join(folder, 'dist', 'main.js');
    const [listen, admin, partner] = await freePorts(3);
    const authentication = await startPart('authentication-service', '--partner', `127.0.0.1:${partner}`);
    const upstream = await startPart('upstream');
    parts = [authentication, upstream];
    const issuer = authentication.at.listen;
    const config = parseDocument(await read('demo/compose/account-authz/config.yaml'));
    config.set('listen', `127.0.0.1:${listen}`);
    config.set('admin', `127.0.0.1:${admin}`);
    config.setIn(['issuers', 0, 'issuer'], issuer);
    config.setIn(['issuers', 0, 'discoveryUrl'], `${issuer}/.well-known/openid-configuration`);
    config.setIn(['issuers', 1, 'issuer'], `http://127.0.0.1:${partner}`);
    config.setIn(['issuers', 1, 'discoveryUrl'], `http://127.0.0.1:${partner}/.well-known/openid-configuration`);
    await writeFile(join(folder, 'config.yaml'), String(config));
    authorizer = await startAuthorizer(join(folder, 'config.yaml'));
    envoy = await startEnvoy({ authz: `127.0.0.1:${listen}`, upstream: Number(new URL(upstream.at.listen).port) });
    const gateway = `http://127.0.0.1:${envoy.port}`;
    const deadline = performance.now() + 30_000;
    while ((await send({ origin: gateway, target: '/api/subscriptions' })).status !== 401)
      if (performance.now() > deadline) throw new Error('Envoy does not reach account-authz');
    const { control } = authentication.at;
    addresses = ['--gateway', gateway, '--authentication', control, '--upstream', upstream.at.control];
  });
  after(async () => {
    authorizer?.kill('SIGKILL');
    await envoy?.stop();
    for (const { child } of parts) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  async function startAuthorizer(config: string): Promise<ChildProcess> {
    const { stages } = parseDockerfile(await read('Dockerfile'));
    const entrypoint =
      execForm(
        lastOf(
          stages.find(({ name }) => name === product),
          'ENTRYPOINT',
        ),
      ) ?? [];
    const flags = entrypoint.slice(1, -1);
    const child = spawn(process.execPath, [...flags, main, 'serve', '--config', config], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    killAtExit(child);
    child.stdout.on('data', (bytes: Buffer) => secrets.show('log', bytes.toString()));
    await once(child.stdout, 'data');
    return child;
  }

  async function runClient(...args: readonly string[]): Promise<{ readonly code: unknown; readonly output: string }> {
    const client = spawn(process.execPath, [...programArguments('demo/compose-client.ts'), ...args], { cwd: project });
    let output = '';
    for (const stream of [client.stdout, client.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const [code] = await once(client, 'close');
    secrets.show('demo', output);
    return { code, output };
  }

  it('exits with 1 and names the failed steps if the process of account-authz is not found', async () => {
    const { code, output } = await runClient(...addresses, '--authorizer', '/nowhere/main.js');
    expect(output).to.match(/^62 of 65 steps as expected\n(?: {2}FAIL .*\n){3}$/m);
    expect(output).to.include('no process that runs /nowhere/main.js serve is visible');
    expect(code).to.equal(1);
  });

  it('exits with 0 after every step that docs/deploy/compose.md promises', async () => {
    const { code, output } = await runClient(...addresses, '--authorizer', main);
    expect(output).to.not.match(/^ *FAIL/m);
    const [promised = ''] = /\d+ of \d+ steps as expected/.exec(await read('docs/deploy/compose.md')) ?? [];
    expect(output.trimEnd().split('\n').at(-1)).to.equal(promised);
    expect(code).to.equal(0);
  });

  it('exits with 1 if nothing listens', async () => {
    const [port] = await freePorts(1);
    const { code, output } = await runClient('--authentication', `http://127.0.0.1:${port}`);
    expect(output).to.include('ECONNREFUSED');
    expect(code).to.equal(1);
  });
});
