// Runs every command in README and docs/, page by page, in a copy of the files that they need, against a live Envoy, product and
// authentication service on loopback. A command that cannot run has a stand-in with a reason.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { type AuthenticationService, startAuthenticationService } from '../../demo/authentication-service.ts';
import { startUpstream, type Upstream } from '../../demo/upstream.ts';
import { isCommandName, runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { allPages, commandsOf } from '../../lab/document.ts';
import { envoyBinary, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { kustomizeBinary } from '../../lab/kustomize.ts';
import { secrets } from '../../lab/secrets.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { promtoolBinary } from '../deploy/monitoring/promtool.ts';
import { standIns } from '../docs/stand-ins.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const pages = allPages();
const withCommands = pages.filter(({ blocks }) => blocks.some(block => commandsOf(block) !== undefined));
/** The files that the commands read or change, copied; the rest of the project is out of their reach. */
const copied = [
  ...['docs/example', 'k8s', 'compose.yaml', 'Dockerfile', 'package.json', 'package-lock.json'],
  ...['envoy.yaml', 'config.example.yaml', 'cases.example.yaml', 'config.schema.json'],
];

/** The request id in the documents. In the lab's logs it replaces the id of a refused request. */
const exampleId = '6f1c2d6e-8d1f-4a55-9a1e-0d6a54a1c0de';

// `kubectl logs` shows standard error as well: an Envoy's own log, and the problems that ended an instance at its start.
const envoyText = '[2026-11-21 12:00:00.000][1][info][main] [source/server/server.cc:463] initializing epoch 0\n';
const authzText =
  'account-authz serve: /etc/account-authz/config.yaml:12:5: issuers[0].audiences: must name at least one\n';

describe('commands in the documents', () => {
  let directory: string;
  let authentication: AuthenticationService;
  let upstream: Upstream;
  let service: ServiceProcess;
  let envoy: RunningEnvoy;
  let config: Readonly<Record<string, unknown>>;
  let environment: NodeJS.ProcessEnv;
  let token: string;
  let refusedId: string;
  let commands: Server;
  const startDirectory = process.cwd();

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'account-authz-documents-'));
    const example = parse(await readFile(`${project}config.example.yaml`, 'utf8'));
    const [audience] = example.issuers[0].audiences;
    authentication = await startAuthenticationService({ audience });
    upstream = await startUpstream();
    // The commands append to it.
    const revoked = join(directory, 'work', 'revoked.jsonl');
    await mkdir(join(directory, 'work'));
    await writeFile(revoked, '{"jti":"nobody"}\n');
    config = {
      ...example,
      ...{ listen: '127.0.0.1:0', admin: '127.0.0.1:0' },
      issuers: [{ issuer: authentication.issuer, audiences: [audience], jwksUrl: authentication.jwksUrl }],
      // README.md protects the reader's own service.
      routes: [...example.routes, { path: '/api/orders/:account_id/*' }],
      revocation: { file: revoked },
    };
    service = await startServiceProcess(config);
    const file = writeFixture('documented.yaml', { ...config, listen: service.address });
    const { stdout: bootstrap } = await runCommand('render', ['envoy', '--config', file]);
    envoy = await startEnvoy({ bootstrap, upstream: upstream.port });
    const now = Math.floor(Date.now() / 1000);
    const identity = { uid: 'user-alice', app: 'web-app', acc: 'acme', role: 'owner' };
    const times = { iat: now - 10, exp: now + 600 };
    token = await authentication.signToken({ iss: authentication.issuer, aud: audience, ...identity, ...times });
    secrets.mint('token', token);
    const refused = await fetch(`http://127.0.0.1:${envoy.port}/api/subscriptions/accounts/globex`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(refused.status).to.equal(403);
    refusedId = refused.headers.get('x-request-id') ?? '';
    await Promise.all([service.logLine(refusedId), envoy.accessLogLine(refusedId)]);
    await layOut();
    environment = await surroundings();
    commands = createServer(runInLab);
    await once(commands.listen(join(directory, 'lab', 'commands')), 'listening');
    process.chdir(join(directory, 'work'));
  });
  after(async () => {
    process.chdir(startDirectory);
    commands?.close();
    await envoy?.stop();
    await service?.kill();
    await Promise.all([upstream?.stop(), authentication?.stop()]);
    await rm(directory, { recursive: true, force: true });
  });

  async function layOut(): Promise<void> {
    await mkdir(join(directory, 'bin'));
    await mkdir(join(directory, 'lab'));
    for (const name of copied) await cp(join(project, name), join(directory, 'work', name), { recursive: true });
    // `render` needs addresses that Envoy and the probes of a kubelet can connect to, `health` the one of admin.
    const addresses = { listen: service.address, admin: `0.0.0.0:${service.adminPort}` };
    await writeFile(join(directory, 'work', 'config.yaml'), stringify({ ...config, ...addresses }));
    await writeFile(join(directory, 'work', 'token.txt'), token);
    await writeFile(join(directory, 'work', 'refused-line.json'), JSON.stringify(await service.logLine(refusedId)));
    await cp(join(project, 'cases.example.yaml'), join(directory, 'work', 'cases.yaml'));
    for (const [name, { script }] of Object.entries(standIns)) {
      await writeFile(join(directory, 'bin', name), `#!/bin/bash\nset -euo pipefail\n${script}\n`);
      await chmod(join(directory, 'bin', name), 0o755);
    }
    const promtool = await promtoolBinary();
    if (promtool.startsWith('/')) await symlink(promtool, join(directory, 'bin', 'promtool'));
  }

  // The stand-in of account-authz sends the standard input, and has the arguments in a folder that the path names.
  async function runInLab(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const folder = join(directory, 'lab', request.url ?? '');
    const [name = '', ...args] = (await readFile(join(folder, 'arguments'), 'utf8')).split('\0').slice(0, -1);
    const input = await buffer(request);
    if (!isCommandName(name)) return void response.writeHead(404).end();
    const { code, stdout, stderr } = await runCommand(name, args, { input });
    await writeFile(join(folder, 'stdout'), stdout);
    await writeFile(join(folder, 'stderr'), stderr);
    response.end(String(code));
  }

  async function surroundings(): Promise<NodeJS.ProcessEnv> {
    const addresses: readonly (readonly [place: string, port: number])[] = [
      ['127.0.0.1:8080', envoy.port],
      ['ADDRESS:80', envoy.port],
      ['127.0.0.1:8081', envoy.readyPort],
      ['127.0.0.1:8090', authentication.port],
      ['127.0.0.1:9192', service.adminPort],
      ['127.0.0.1:9901', envoy.adminPort],
    ];
    const which = promisify(execFile);
    const { stdout: curl } = await which('which', ['curl']);
    const { stdout: kubectl } = await which('which', ['kubectl']).catch(() => ({ stdout: '' }));
    return {
      PATH: `${join(directory, 'bin')}:${process.env.PATH}`,
      HOME: directory,
      LAB: join(directory, 'lab'),
      PROJECT: project,
      NODE: process.execPath,
      CURL: curl.trim(),
      KUBECTL: kubectl.trim(),
      CONNECT_TO: addresses.map(([place, port]) => `--connect-to ${place}:127.0.0.1:${port}`).join(' '),
      GATEWAY: `127.0.0.1:${envoy.port}`,
      ADMIN: `127.0.0.1:${service.adminPort}`,
      KUSTOMIZE: await kustomizeBinary(),
      ENVOY: await envoyBinary(),
    };
  }

  const runPage = async (script: string): Promise<{ readonly code: number | null; readonly output: string }> => {
    const lines = (entries: readonly unknown[]): string =>
      entries.map(each => `${JSON.stringify(each).replaceAll(refusedId, exampleId)}\n`).join('');
    await writeFile(join(directory, 'lab', 'account-authz.log'), authzText + lines(service.log()));
    await writeFile(join(directory, 'lab', 'envoy.log'), envoyText + lines(envoy.accessLog()));
    // A page may render another one.
    await cp(join(project, 'envoy.yaml'), join(directory, 'work', 'envoy.yaml'));
    const child = spawn('/bin/bash', ['-c', script], { cwd: join(directory, 'work'), env: environment });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => {
        output += bytes.toString();
      });
    child.stdin.end();
    const code = await new Promise<number | null>(resolve => child.on('close', resolve));
    secrets.show('command', output);
    return { code, output };
  };

  for (const { path, blocks } of withCommands) {
    it(`of ${path} all succeed`, async () => {
      const script = blocks.map(block => withAssertions(commandsOf(block) ?? '')).join('\n');
      const { code, output } = await runPage(`${header}\n${script.replaceAll(/\bPID\b/g, String(service.pid))}`);
      expect(code, output).to.equal(0);
    });
  }

  it('are reported if they fail', async () => {
    for (const wrong of [
      'node dist/main.js check-config --config missing.yaml',
      'kubectl apply -k k8s/overlays/missing',
      'kubectl apply --kustomize k8s/overlays/service',
      'kubectl get pods --namespac subscriptions',
      'kubectl -n subscriptions logs deployment/subscriptions -c account-authz',
      'kubectl -n subscriptions logs -l account-authz/mode --tails=-1',
      'kubectl -n subscriptions logs -l account-authz/mode -c account-authz',
      'kubectl -n subscriptions exec deployment/subscriptions -c account-authz -- /nodejs/bin/node /app/dist/main.js health',
      'docker build -t registry.example.com/account-authz:0.1.0 --target missing .',
      'kind load docker-image registry.example.com/missing:0.1.0',
      'npm run missing',
      'docker compose --profile missing up',
      'curl -i http://127.0.0.1:8080/api/subscriptions   # 200 token_missing',
      'curl -i http://127.0.0.1:8080/api/subscriptions   # 401 token_expired',
      `curl -s http://127.0.0.1:8080/api/subscriptions | jq .reason   # "token_expired"`,
      'no-such-program',
    ])
      expect((await runPage(`${header}\n${withAssertions(wrong)}`)).code, wrong).to.not.equal(0);
  });
});

const header = `set -euo pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR`;

/** Appends a check of the comment behind a call: `# 401 token_missing` behind `curl -i`, `# "text"` behind `jq`. */
function withAssertions(commands: string): string {
  return commands
    .split('\n')
    .map(line => {
      const [, call, status, reason] = /^(curl -i .*?) +# (\d{3})\b:? ?([a-z]+_[a-z]+)?/.exec(line) ?? [];
      if (call !== undefined)
        return `said=$(${call}); grep -q ' ${status}' <<< "\${said%%$'\\r'*}"; grep -q '${reason ?? ''}' <<< "$said"`;
      const [, query, text] = /^(curl .*\| jq \S+) +# ("\w+")$/.exec(line) ?? [];
      return query === undefined ? line : `[ "$(${query})" = '${text}' ]`;
    })
    .join('\n');
}
