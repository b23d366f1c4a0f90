// `npm run try`: protects a user's own service on this machine. Writes its configuration, renders the bootstrap of Envoy, and runs
// account-authz and Envoy with these files beside the authentication service of the demo. Sends requests of a user of two accounts, two that
// are allowed and one that is refused. Stops on Ctrl-C, or with --once after the requests.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { parse } from 'yaml';
import { envoyBinary, startEnvoy } from '../lab/envoy.ts';
import { startServiceProcess } from '../lab/service-process.ts';
import { parseListenAddress } from '../src/text/listen-address.ts';
import { type AuthenticationService, startAuthenticationService } from './authentication-service.ts';
import { chooseFreePorts, choosePorts } from './ports.ts';
import { messageOf } from './run-sections.ts';
import { createTerminal, type Terminal } from './terminal.ts';
import { ask, isEnvoyUnanswered, ownErrorNote, reasonOf } from './try-answers.ts';
import { openTryFolder, type TryFolder } from './try-folder.ts';

const usage = `npm run try -- --upstream HOST:PORT --route PATH [--route PATH ...] [--account NAME] [--path PATH] [--out DIR] [--any-ports] [--once]
npm run try -- --upstream HOST:PORT --config FILE [--out DIR] [--any-ports]

  --upstream HOST:PORT   your service, on this machine
  --config FILE          a configuration of yours, such as account-authz init prints, with the tokens of its issuers
  --route PATH           what to protect: '/api/orders/:account_id/*' is this path and everything under it
  --account NAME         which parameter of the routes is the account, if they have several
  --path PATH            a path that your service has, to ask for: '/api/orders/:account_id/open'; from the first route if not given
  --out DIR              where config.yaml, envoy.yaml and token.txt go; try if not given. An edited file is kept, and used
  --any-ports            takes free ports in the place of 8080 and the other usual ones
  --once                 ends after the requests
`;

const { values } = parseArgs({
  options: {
    upstream: { type: 'string', default: '127.0.0.1:9000' },
    config: { type: 'string' },
    route: { type: 'string', multiple: true, default: ['/api/orders/:account_id/*'] },
    account: { type: 'string' },
    path: { type: 'string' },
    out: { type: 'string', default: 'try' },
    'any-ports': { type: 'boolean', default: false },
    once: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const audience = 'https://api.example.com';
const usualPorts = { authentication: 8090, admin: 9192, gateway: 8080, ready: 8081, envoyAdmin: 9901 };
/** Alice owns the first, is a member of the second, and has nothing to do with the third. */
const accounts = ['acme', 'globex', 'initech'];
const doneText = values.once ? 'Done' : 'Everything stays up until Ctrl-C';

/** What try reads of the configuration that it runs, which may be an edited one. */
interface UsedConfig {
  readonly issuers: readonly { readonly issuer: string; readonly audiences: readonly string[] }[];
  readonly routes: readonly { readonly path: string }[];
  readonly account?: { readonly parameter?: string };
}

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
    // Neither a signal handler nor the children keep this process alive.
    setInterval(() => undefined, 60_000);
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
  const files = await writeFiles(terminal);
  const { origin, authentication } = await startParts(files, terminal, stops);
  if (authentication === undefined) {
    const { config, tokenFile } = files;
    terminal.title(`${config.issuers[0]?.issuer ?? ''} issues the tokens: put one into ${tokenFile}, and send it`);
    terminal.text(
      '# 200 is the answer of your service; for an account that the token does not have: 403 account_mismatch',
    );
    terminal.text(curlCommand(files, origin, 'ACCOUNT'));
    terminal.verdict(doneText, true);
    return true;
  }
  return sendRequests(files, origin, authentication, terminal);
}

/** What `try` has written, or found edited. */
interface Files {
  readonly folder: TryFolder;
  readonly configFile: string;
  readonly envoyFile: string;
  readonly tokenFile: string;
  /** The text of configFile, and what is read of it. */
  readonly configText: string;
  readonly config: UsedConfig;
}

async function writeFiles(terminal: Terminal): Promise<Files> {
  const { upstream, config: ownFile, out } = values;
  const folder = await openTryFolder(out);
  const configFile = ownFile ?? folder.path('config.yaml');
  const envoyFile = folder.path('envoy.yaml');
  const ports = await (values['any-ports'] ? chooseFreePorts(usualPorts) : choosePorts(usualPorts));
  const configText = await (ownFile === undefined ? writeConfig(folder, ports, terminal) : readFile(ownFile, 'utf8'));

  terminal.title('The bootstrap of Envoy, rendered from it');
  const listeners = ['--readiness-port', `${ports.ready}`, '--envoy-admin-port', `${ports.envoyAdmin}`];
  const addresses = ['--listen', `127.0.0.1:${ports.gateway}`, ...listeners, '--upstream', upstream];
  const render = ['render', 'envoy', '--config', configFile, ...addresses];
  terminal.text(`$ account-authz ${render.map(shellWord).join(' ')} > ${shellWord(envoyFile)}`);
  await folder.write('envoy.yaml', await runProduct(render));
  if (folder.isEdited('envoy.yaml')) terminal.text(keptNote(envoyFile, 'this command does not change it'));
  const check = ['check-config', '--config', configFile, '--envoy', envoyFile];
  terminal.text(`$ account-authz ${check.map(shellWord).join(' ')}`);
  terminal.text((await runProduct(check)).trimEnd().split('\n').at(-1) ?? '');
  return {
    folder,
    configFile,
    envoyFile,
    tokenFile: ownFile === undefined ? folder.path('token.txt') : 'token.txt',
    configText,
    config: parse(configText),
  };
}

async function writeConfig(
  folder: TryFolder,
  ports: Parameters<typeof configurationText>[2],
  terminal: Terminal,
): Promise<string> {
  const { route: routes, out } = values;
  const written = configurationText(routes, accountParameter(routes), ports, await listenIn(out));
  const text = await folder.write('config.yaml', written);
  terminal.title('The configuration: one file is the whole policy');
  if (folder.isEdited('config.yaml'))
    terminal.text(keptNote(folder.path('config.yaml'), '--route and --account do not change it'));
  terminal.text(text.trimEnd());
  return text;
}

/** `authentication` is undefined if the tokens are another issuer's. */
async function startParts(
  { configFile, envoyFile, configText, config }: Files,
  terminal: Terminal,
  stops: (() => Promise<unknown>)[],
): Promise<{ readonly origin: string; readonly authentication: AuthenticationService | undefined }> {
  terminal.title('Running');
  const authentication = values.config === undefined ? await startOwnIssuer(config) : undefined;
  if (authentication !== undefined) {
    stops.push(() => authentication.stop());
    const note = `for trying: yours takes its place in ${configFile}`;
    terminal.started('authentication service', `${authentication.issuer}, ${note}`);
  }
  const service = await startServiceProcess(parse(configText), {
    file: configFile,
    ready: authentication !== undefined,
  });
  stops.push(() => service.stop());
  terminal.started('account-authz', `account-authz serve --config ${shellWord(configFile)}`);
  terminal.starting('Envoy, installed the first time');
  await envoyBinary();
  const envoy = await startEnvoy({ file: envoyFile });
  stops.push(() => envoy.stop());
  terminal.started('Envoy', `envoy -c ${shellWord(envoyFile)}`);
  return { origin: `http://127.0.0.1:${envoy.port}`, authentication };
}

/** Resolves to whether each answer is as expected. */
async function sendRequests(
  files: Files,
  origin: string,
  authentication: AuthenticationService,
  terminal: Terminal,
): Promise<boolean> {
  const { folder, tokenFile, config } = files;
  const token = (await folder.write('token.txt', await tokenOf(authentication, config))).trim();
  terminal.title(`Alice, owner of acme and member of globex, with one token, which is in ${tokenFile}`);
  if (folder.isEdited('token.txt')) terminal.text(keptNote(tokenFile, 'the requests have the token in it'));
  let isAsExpected = true;
  const ownErrors = new Set<number>();
  for (const account of accounts) {
    const target = targetOf(config, account);
    const response = await ask(origin, target, token);
    const { status } = response;
    if (isEnvoyUnanswered(response)) {
      terminal.text(`${status}  GET ${target}    allowed, and Envoy got no answer of your service`);
      terminal.verdict(`Nothing answers on ${values.upstream}: start your service, then run this again`, false);
      return false;
    }
    const reason = reasonOf(response);
    isAsExpected &&= (reason === undefined) === (account !== 'initech');
    if (reason === undefined && status >= 400) ownErrors.add(status);
    const seen = reason === undefined ? 'from your service' : `${reason}, your service never saw it`;
    terminal.text(`${status}  GET ${target}    ${seen}`);
  }
  // Envoy's own 404, where no route has the path, does not depend on the account.
  if (isAsExpected) for (const status of ownErrors) terminal.text(ownErrorNote(status));
  terminal.text('');
  for (const account of accounts) terminal.text(curlCommand(files, origin, account));
  terminal.text('# she is a member of globex, and roles lets a member read: 403 role_forbidden');
  terminal.text(curlCommand(files, origin, 'globex', '-X DELETE'));
  terminal.verdict(doneText, isAsExpected);
  return isAsExpected;
}

function curlCommand({ tokenFile, config }: Files, origin: string, account: string, ...options: string[]): string {
  const authorization = `-H "authorization: Bearer $(cat ${shellWord(tokenFile)})"`;
  return ['curl -i', ...options, authorization, shellWord(`${origin}${targetOf(config, account)}`)].join(' ');
}

/** The parameter of the routes that is the account. */
function accountParameter(routes: readonly string[]): string {
  if (values.account !== undefined) return values.account;
  const names = [
    ...new Set(routes.flatMap(route => Array.from(route.matchAll(/\/:([^/]+)/g), ([, name = '']) => name))),
  ];
  if (names.length === 0 || names.includes('account_id')) return 'account_id';
  const [only = '', ...others] = names;
  if (others.length === 0) return only;
  throw new Error(
    `--route has the parameters ${names.join(', ')}: name the account with --account, such as --account ${only}`,
  );
}

/** Undefined if the configuration names an issuer of the user, or one that runs already. */
async function startOwnIssuer({ issuers }: UsedConfig): Promise<AuthenticationService | undefined> {
  const [{ issuer = '', audiences: [used = audience] = [] } = {}] = issuers;
  const port = /^http:\/\/127\.0\.0\.1:(\d+)$/.exec(issuer)?.[1];
  if (port === undefined) return undefined;
  return startAuthenticationService({ port: Number(port), audience: used, accessTokenSeconds: 3600 }).catch(error => {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return undefined;
    throw error;
  });
}

function tokenOf(authentication: AuthenticationService, { issuers }: UsedConfig): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const accounts = { acme: 'owner', globex: 'member' };
  const times = { iat: now, exp: now + 3600 };
  const aud = issuers[0]?.audiences[0] ?? audience;
  return authentication.signToken({ iss: authentication.issuer, aud, ...times, uid: 'alice', app: 'try', accounts });
}

/** The output of a command of the product; rejects with its error. */
async function runProduct(args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(process.execPath, [main, ...args]);
  const { stdout } = await run.catch(({ stderr }) => {
    throw new Error(String(stderr).trimEnd());
  });
  return stdout;
}

function targetOf({ routes, account: { parameter = 'account_id' } = {} }: UsedConfig, account: string): string {
  const isAccount = (segment: string): boolean => segment === `:${parameter}`;
  const own = values.config && routes.find(({ path }) => path.split('/').some(isAccount))?.path;
  const segments = (values.path ?? own ?? routes[0]?.path ?? '/').replace(/\/\*$/, '').split('/');
  const path = segments.map(each => (isAccount(each) ? account : each.replace(/^:.*/, 'x'))).join('/');
  return segments.some(isAccount) || values.config !== undefined ? path : `${path}?account_id=${account}`;
}

function keptNote(file: string, effect: string): string {
  return `# ${file} was edited and is kept: ${effect}. Remove the file to begin again.`;
}

/** As one word of a POSIX shell. */
function shellWord(text: string): string {
  return /^[\w./:@,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A socket in the folder; loopback where its path is too long for one (sun_path of unix(7)). */
async function listenIn(folder: string): Promise<string> {
  const socket = `unix:${resolve(folder, 'authz.sock')}`;
  if (parseListenAddress(socket).kind === 'unix') return socket;
  const { listen } = await chooseFreePorts({ listen: 0 });
  return `127.0.0.1:${listen}`;
}

function configurationText(
  routes: readonly string[],
  parameter: string,
  ports: { readonly authentication: number; readonly admin: number },
  listen: string,
): string {
  const issuer = `http://127.0.0.1:${ports.authentication}`;
  const places = `headers: [x-account-id], query: [account_id]`;
  return `listen: ${JSON.stringify(listen)}
admin: 127.0.0.1:${ports.admin}
issuers:
  - issuer: ${issuer}
    audiences: [${audience}]
    jwksUrl: ${issuer}/.well-known/jwks.json
    claims: { acc: { keysOf: /accounts }, role: '/accounts/{acc}' } # of "accounts": { "acme": "owner", "globex": "member" }
routes:
${routes.map(route => `  - path: ${JSON.stringify(route)}\n`).join('')}account: { ${places}${parameter === 'account_id' ? '' : `, parameter: ${JSON.stringify(parameter)}`} }
roles:
  owner: ['*']
  member: [GET, HEAD]
`;
}
