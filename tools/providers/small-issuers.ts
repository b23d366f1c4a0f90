// Small issuers: libraries that people build an authorization server of. Each runs as a program of a few lines in its own language, gets a
// token by its own flow, and `init` and `explain` of the built product read it with the entry of docs/providers.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { runProduct } from '../../lab/command.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { installOnce } from '../../lab/programs.ts';
import { startServer } from './server-process.ts';
import type { Result } from './trial.ts';

type Install = (folder: string, packages: readonly string[], file: string) => Promise<unknown>;

const cache = fileURLToPath(new URL('../../.cache/providers/', import.meta.url));
const programs = fileURLToPath(new URL('issuers/', import.meta.url));
const page = readFileSync(new URL('../../docs/providers/others.md', import.meta.url), 'utf8');
const runFile = promisify(execFile);
const run = (cwd: string, command: string, ...args: readonly string[]) =>
  runFile(command, args, { cwd, timeout: 20 * 60_000, maxBuffer: 1 << 26 });

const node: Install = (folder, packages) =>
  run(folder, 'npm', 'install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', ...packages);
const python: Install = (folder, packages) =>
  run(folder, 'python3', '-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--target', 'lib', ...packages);
const go: Install = async (folder, [module = '', main = '.']) => {
  await run(folder, 'go', 'mod', 'init', 'trial');
  await run(folder, 'go', 'get', module);
  if (main === '.') await run(folder, 'go', 'mod', 'tidy');
  await run(folder, 'go', 'build', '-o', 'trial', main);
};
/** A starter of Spring Boot. */
const java: Install = async (folder, [starter = '', version = '']) => {
  const id = (name: string) => `<groupId>org.springframework.boot</groupId><artifactId>${name}</artifactId>`;
  const parent = `<parent>${id('spring-boot-starter-parent')}<version>${version}</version></parent>`;
  const pom = `<modelVersion>4.0.0</modelVersion><artifactId>trial</artifactId>${parent}<dependencies><dependency>${id(starter)}</dependency></dependencies>`;
  await writeFile(join(folder, 'pom.xml'), `<project>${pom}</project>`);
  await run(folder, 'mvn', '-B', '-q', 'dependency:copy-dependencies', '-DoutputDirectory=lib');
};

const machine = { grant_type: 'client_credentials', client_id: 'billing', client_secret: 'secret' };

interface SmallIssuer {
  /** As in the table of the page. */
  readonly name: string;
  /** Of issuers/. */
  readonly file: string;
  readonly install: Install;
  readonly packages: readonly string[];
  readonly command: readonly [string, ...string[]];
  /** Its key set. */
  readonly keys: string;
  readonly tokens: string;
  readonly form: Readonly<Record<string, string>>;
}

const issuers: readonly SmallIssuer[] = [
  {
    name: 'better-auth',
    keys: '/api/auth/jwks',
    file: 'better-auth.mjs',
    install: node,
    packages: ['better-auth@1.7.25'],
    command: ['node', 'better-auth.mjs'],
    tokens: '/token',
    form: {},
  },
  {
    name: 'OpenAuth',
    keys: '/.well-known/jwks.json',
    file: 'openauth.mjs',
    install: node,
    packages: ['@openauthjs/openauth@0.4.3', 'hono@4.13.19'],
    command: ['node', 'openauth.mjs'],
    tokens: '/token',
    form: { ...machine, provider: 'service' },
  },
  {
    name: 'Authlib',
    keys: '/jwks',
    file: 'authlib-server.py',
    install: python,
    packages: ['authlib==1.9.10', 'flask==3.1.3'],
    command: ['python3', 'authlib-server.py'],
    tokens: '/token',
    form: { ...machine, scope: 'orders:read' },
  },
  {
    name: 'django-oauth-toolkit',
    keys: '/o/.well-known/jwks.json',
    file: 'django-server.py',
    install: python,
    packages: ['django-oauth-toolkit==3.4.1', 'django==5.2.19'],
    command: ['python3', 'django-server.py'],
    tokens: '/o/token/',
    form: machine,
  },
  {
    name: 'zitadel/oidc',
    keys: '/keys',
    file: 'zitadel.go',
    install: go,
    packages: ['github.com/zitadel/oidc/v3@v3.52.0'],
    command: ['./trial'],
    tokens: '/oauth/token',
    form: { ...machine, client_id: 'sid1', client_secret: 'verysecret', scope: 'openid orders:read' },
  },
  {
    name: 'spring-authorization-server',
    keys: '/oauth2/jwks',
    file: 'Main.java',
    install: java,
    packages: ['spring-boot-starter-oauth2-authorization-server', '4.0.0'],
    command: ['java', '-cp', 'lib/*', 'Main.java'],
    tokens: '/oauth2/token',
    form: { ...machine, scope: 'orders:read' },
  },
];

export const smallIssuers = issuers.map(({ name }) => name);

/** What the row of the page has for it, with the address of the run. */
function settingsOf(name: string, url: string): object {
  const row = page.split('\n').find(line => line.startsWith(`| ${name} `) || line.startsWith(`| [${name}]`)) ?? '';
  const entry = parse(/`(\{.*?\})` \|/.exec(row.replaceAll('https://auth.example.com', url))?.[1] ?? '');
  if (entry?.issuer === undefined) throw new Error(`docs/providers/others.md has no entry for ${name}`);
  const lifetime = /`maxLifetimeSeconds: (\d+)`/.exec(row)?.[1];
  const token = lifetime === undefined ? {} : { token: { maxLifetimeSeconds: Number(lifetime) } };
  return { issuers: [entry], routes: [{ path: '/api/*' }], roles: { owner: ['GET'] }, ...token };
}

/** `init` makes a configuration of the token, and the entry of the page allows it. */
export async function trySmallIssuer(name: string, add: (result: Result) => void): Promise<void> {
  const found = issuers.find(each => each.name === name);
  if (found === undefined) throw new Error(`no small issuer ${name}`);
  const { file, install, packages, command, keys, tokens, form } = found;
  const folder = join(cache, `${name.replace('/', '-')}-${packages.at(-1)?.replace(/.*[=@]/, '')}`);
  if (!existsSync(folder))
    await installOnce(folder, async unfinished => {
      await copyFile(join(programs, file), join(unfinished, file));
      await install(unfinished, packages, file);
    });
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-issuer-'));
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  await copyFile(join(programs, file), join(folder, file));
  const server = await startServer({
    name,
    command: 'sh',
    args: ['-c', `cd '${folder}' && exec ${command.map(each => `'${each}'`).join(' ')}`],
    env: { PORT: `${port}`, URL: url, DATA: directory, PYTHONPATH: join(folder, 'lib') },
    healthUrl: url + keys,
  });
  try {
    const answer = await fetch(url + tokens, { method: 'POST', body: new URLSearchParams(form) });
    const { access_token: input } = (await answer.json()) as { readonly access_token: string };
    const made = await runProduct(['init'], { input });
    const grant = form.grant_type ?? 'session';
    const said = /the signature of the token is (NOT )?verified/.exec(made.stderr)?.[0] ?? made.stderr;
    // better-auth's jwt plugin serves no metadata that would name its keys.
    const expected = `the signature of the token is ${name === 'better-auth' ? 'NOT ' : ''}verified`;
    add({ grant, name: 'init', expected, got: said });
    const config = join(directory, 'config.json');
    await writeFile(config, JSON.stringify(settingsOf(name, url)));
    const explained = await runProduct(['explain', '--config', config, '--path', '/api/a', '--json'], { input });
    const { reason = explained.stderr } = JSON.parse(explained.stdout || '{}') as { readonly reason?: string };
    add({ grant, name: 'explain with the entry of the page', expected: 'allowed', got: reason });
  } finally {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
}
