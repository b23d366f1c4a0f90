// `npm run try`: protects a user's own service on this machine. Writes its configuration, renders the bootstrap of Envoy, starts
// account-authz, Envoy and the authentication service of the demo, and sends an allowed and a refused request. Stops on Ctrl-C, or with
// --once after the two requests.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { parse } from 'yaml';
import { envoyBinary, type RunningEnvoy, startEnvoy } from '../test/support/envoy.ts';
import { startServiceProcess } from '../test/support/service-process.ts';
import { startAuthenticationService } from './authentication-service.ts';
import { send } from './http-client.ts';
import { choosePorts } from './ports.ts';
import { messageOf } from './run-story.ts';
import { createTerminal, type Terminal } from './terminal.ts';

const usage = `npm run try -- --upstream HOST:PORT --route PATH [--route PATH ...] [--out DIR] [--once]

  --upstream HOST:PORT   your service, on this machine
  --route PATH           what to protect: '/api/orders/:account_id/*' is this path and everything under it
  --out DIR              where config.yaml, envoy.yaml and token.txt go; try if not given
  --once                 ends after the two requests
`;

const { values } = parseArgs({
  options: {
    upstream: { type: 'string', default: '127.0.0.1:9000' },
    route: { type: 'string', multiple: true, default: ['/api/orders/:account_id/*'] },
    out: { type: 'string', default: 'try' },
    once: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));

if (values.help) process.stdout.write(usage);
else await tryIt();

async function tryIt(): Promise<void> {
  const terminal = createTerminal();
  const stops: (() => Promise<unknown>)[] = [];
  const interrupted = new Promise<void>(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  try {
    const isAsExpected = await protect(terminal, stops);
    if (!isAsExpected) process.exitCode = 1;
    if (isAsExpected && !values.once) await interrupted;
  } catch (error) {
    terminal.verdict(messageOf(error), false);
    process.exitCode = 1;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
  process.exit();
}

async function protect(terminal: Terminal, stops: (() => Promise<unknown>)[]): Promise<boolean> {
  const { upstream, route: routes, out } = values;
  const ports = await choosePorts({
    authentication: 8090,
    listen: 9191,
    admin: 9192,
    gateway: 8080,
    ready: 8081,
    envoyAdmin: 9901,
  });
  const audience = 'https://api.example.com';
  const authentication = await startAuthenticationService({
    port: ports.authentication,
    audience,
    accessTokenSeconds: 3600,
  });
  stops.push(() => authentication.stop());

  await mkdir(out, { recursive: true });
  const config = join(out, 'config.yaml');
  const envoyFile = join(out, 'envoy.yaml');
  const tokenFile = join(out, 'token.txt');
  const written = configurationText(routes, authentication.issuer, audience, ports);
  await writeFile(config, written);
  terminal.title('The configuration: one file is the whole policy');
  terminal.text(written.trimEnd());

  terminal.title('The bootstrap of Envoy, rendered from it');
  const render = [
    'render',
    'envoy',
    '--config',
    config,
    '--listen',
    `127.0.0.1:${ports.gateway}`,
    '--upstream',
    upstream,
  ];
  terminal.text(`$ account-authz ${render.join(' ')} > ${envoyFile}`);
  const bootstrap = await runProduct(render);
  await writeFile(envoyFile, bootstrap);
  const check = ['check-config', '--config', config, '--envoy', envoyFile];
  terminal.text(`$ account-authz ${check.join(' ')}`);
  terminal.text((await runProduct(check)).trimEnd().split('\n').at(-1) ?? '');

  terminal.title('Running');
  terminal.started(
    'authentication service',
    `${authentication.issuer}, for trying: yours takes its place in ${config}`,
  );
  const service = await startServiceProcess(parse(written));
  stops.push(() => service.stop());
  terminal.started('account-authz', `account-authz serve --config ${config}`);
  terminal.starting('Envoy, installed the first time');
  await envoyBinary();
  const envoy = await startEnvoy({ bootstrap, listener: ports.gateway, ready: ports.ready, admin: ports.envoyAdmin });
  stops.push(() => envoy.stop());
  terminal.started('Envoy', `envoy -c ${envoyFile}`);

  const now = Math.floor(Date.now() / 1000);
  const identity = { uid: 'alice', app: 'try', acc: 'acme', role: 'owner' };
  const token = await authentication.signToken({
    iss: authentication.issuer,
    aud: audience,
    iat: now,
    exp: now + 3600,
    ...identity,
  });
  await writeFile(tokenFile, token, { mode: 0o600 });
  terminal.title(`Two requests of alice of acme, whose token is in ${tokenFile}`);
  const [own, other] = [await ask(envoy, token, 'acme'), await ask(envoy, token, 'globex')];
  const isReached = own.status !== 401 && own.status !== 403 && own.status !== 503;
  terminal.text(`${own.status}  GET ${own.target}    ${isReached ? 'from your service' : 'not from your service'}`);
  terminal.text(`${other.status}  GET ${other.target}    ${reasonOf(other.body)}, your service never saw it`);
  terminal.text('');
  const curl = (target: string): string =>
    `curl -i -H "authorization: Bearer $(cat ${tokenFile})" http://127.0.0.1:${envoy.port}${target}`;
  terminal.text(curl(own.target));
  terminal.text(curl(other.target));
  const isRefused = other.status === 403;
  if (own.status === 503)
    terminal.verdict(`Nothing answers on ${upstream}: start your service, then run this again`, false);
  else terminal.verdict(values.once ? 'Done' : 'Everything stays up until Ctrl-C', isReached && isRefused);
  return isReached && isRefused;
}

/** The output of a command of the product; rejects with its error. */
async function runProduct(args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(process.execPath, [main, ...args]);
  const { stdout } = await run.catch(({ stderr }) => {
    throw new Error(String(stderr).trimEnd());
  });
  return stdout;
}

async function ask(envoy: RunningEnvoy, token: string, account: string) {
  const [route = ''] = values.route;
  const path = route
    .replace(/\/\*$/, '')
    .replace(':account_id', account)
    .replaceAll(/:[^/]+/g, 'x');
  const target = path.includes(account) ? path : `${path}?account_id=${account}`;
  const headers = { authorization: `Bearer ${token}` };
  const { status, body } = await send({ origin: `http://127.0.0.1:${envoy.port}`, target, headers });
  return { target, status, body };
}

function reasonOf(body: string): string {
  return /"reason":"([a-z_]+)"/.exec(body)?.[1] ?? 'refused';
}

function configurationText(
  routes: readonly string[],
  issuer: string,
  audience: string,
  ports: { readonly listen: number; readonly admin: number },
): string {
  return `listen: 127.0.0.1:${ports.listen}
admin: 127.0.0.1:${ports.admin}
issuers:
  - issuer: ${issuer}
    audiences: [${audience}]
    jwksUrl: ${issuer}/.well-known/jwks.json
routes:
${routes.map(route => `  - path: ${JSON.stringify(route)}\n`).join('')}account: { headers: [x-account-id], query: [account_id] }
roles:
  owner: ['*']
  member: [GET, HEAD]
`;
}
