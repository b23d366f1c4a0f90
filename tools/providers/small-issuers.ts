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
import { startGateway } from './gateway.ts';
import { decodeToken } from './oauth.ts';
import { startServer } from './server-process.ts';
import type { Result } from './trial.ts';

type Install = (folder: string, packages: readonly string[]) => Promise<unknown>;

const cache = fileURLToPath(new URL('../../.cache/providers/', import.meta.url));
const programs = fileURLToPath(new URL('issuers/', import.meta.url));
const page = readFileSync(new URL('../../docs/providers/others.md', import.meta.url), 'utf8');
const runFile = promisify(execFile);
const run = (cwd: string, command: string, ...args: readonly string[]) =>
  runFile(command, args, { cwd, timeout: 20 * 60_000, maxBuffer: 1 << 26 });

const node: Install = (folder, packages) =>
  run(
    folder,
    'npm',
    'install',
    '--prefix',
    folder,
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--legacy-peer-deps',
    ...packages,
  );
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

/** By the ending of its program. */
const languages: Readonly<Record<string, readonly [Install, string]>> = {
  mjs: [node, 'node'],
  py: [python, 'python3'],
  go: [go, './trial'],
  java: [java, "java -cp 'lib/*'"],
};
const machine = { grant_type: 'client_credentials', client_id: 'billing', client_secret: 'secret' };

/** Of an API with one operation, so that nothing is left to choose. */
const document = { openapi: '3.1.0', security: [{ token: [] }], paths: { '/api/a': { get: {} } } };

interface SmallIssuer {
  /** As in the table of the page. */
  readonly name: string;
  /** Of issuers/. */
  readonly program: string;
  readonly packages: readonly string[];
  /** Its key set. */
  readonly keys: string;
  /** Default `/token`. */
  readonly tokens?: string;
  readonly form: Readonly<Record<string, string>>;
  /** Of `init`: 3 where no metadata names the keys. */
  readonly initCode?: 3;
}

const issuers: readonly SmallIssuer[] = [
  {
    name: 'better-auth, jwt',
    program: 'better-auth.mjs',
    packages: ['better-auth@1.7.25'],
    keys: '/api/auth/jwks',
    form: {},
    initCode: 3,
  },
  {
    name: 'better-auth, oauth-provider',
    program: 'better-auth-oauth.mjs',
    packages: ['better-auth@1.7.25', '@better-auth/oauth-provider@1.7.5'],
    keys: '/api/auth/jwks',
    form: { grant_type: 'client_credentials', resource: 'https://api.example.com' },
  },
  {
    name: 'OpenAuth',
    program: 'openauth.mjs',
    packages: ['@openauthjs/openauth@0.4.3', 'hono@4.13.19'],
    keys: '/.well-known/jwks.json',
    form: { ...machine, provider: 'service' },
  },
  {
    name: 'Authlib',
    program: 'authlib-server.py',
    packages: ['authlib==1.9.10', 'flask==3.1.3'],
    keys: '/jwks',
    form: { ...machine, scope: 'orders:read' },
  },
  {
    name: 'django-oauth-toolkit',
    program: 'django-server.py',
    packages: ['django-oauth-toolkit==3.4.1', 'django==5.2.19'],
    keys: '/o/.well-known/jwks.json',
    tokens: '/o/token/',
    form: machine,
  },
  {
    name: 'zitadel/oidc',
    program: 'zitadel.go',
    packages: ['github.com/zitadel/oidc/v3@v3.52.0'],
    keys: '/keys',
    tokens: '/oauth/token',
    form: { ...machine, client_id: 'sid1', client_secret: 'verysecret', scope: 'openid orders:read' },
  },
  {
    name: 'spring-authorization-server',
    program: 'Main.java',
    packages: ['spring-boot-starter-oauth2-authorization-server', '4.0.0'],
    keys: '/oauth2/jwks',
    tokens: '/oauth2/token',
    form: { ...machine, scope: 'orders:read' },
  },
];

export const smallIssuers = issuers.map(({ name }) => name);

/** What the row of the page has for it, with the address of the run. */
function entryOf(name: string, url: string): object {
  const row = page.split('\n').find(line => line.startsWith(`| ${name} `)) ?? '';
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
  const { program, packages, keys, tokens = '/token', form, initCode = 0 } = found;
  const [install, command] = languages[program.replace(/.*\./, '')] ?? [];
  const folder = join(cache, `${name.replace(/[/ ,]+/, '-')}-${packages.at(-1)?.replace(/.*[=@]/, '')}`);
  if (!existsSync(folder))
    await installOnce(folder, async unfinished => {
      await copyFile(join(programs, program), join(unfinished, program));
      await install?.(unfinished, packages);
    });
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-issuer-'));
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  await copyFile(join(programs, program), join(folder, program));
  const server = await startServer({
    name,
    command: 'sh',
    args: ['-c', `cd '${folder}' && exec ${command} ${program}`],
    env: { PORT: `${port}`, URL: url, DATA: directory, PYTHONPATH: join(folder, 'lib') },
    healthUrl: url + keys,
  });
  try {
    const answer = await fetch(url + tokens, { method: 'POST', body: new URLSearchParams(form) });
    const { access_token: input } = (await answer.json()) as { readonly access_token: string };
    const grant = form.grant_type ?? 'session';
    const api = join(directory, 'openapi.json');
    await writeFile(api, JSON.stringify(document));
    const made = await runProduct(['init', '--openapi', api], { input });
    add({ grant, name: 'init', expected: `exit code ${initCode}`, got: `exit code ${made.code}` });
    const { client_id, aud } = decodeToken(input).claims;
    const configs = { 'the page': entryOf(name, url), ...(initCode === 0 && { init: parse(made.stdout) }) };
    for (const [source, settings] of Object.entries(configs)) {
      const config = join(directory, 'config.json');
      await writeFile(config, JSON.stringify(settings));
      const explained = await runProduct(['explain', '--config', config, '--path', '/api/a', '--json'], { input });
      const { reason = explained.stderr } = JSON.parse(explained.stdout || '{}') as { readonly reason?: string };
      add({ grant, name: `explain with ${source}`, expected: 'allowed', got: reason });
      const gateway = await startGateway(() => settings);
      const got = await gateway.ask(input, { path: '/api/a' }).finally(() => gateway.stop());
      add({ grant, name: `serve with ${source}`, expected: `200 owner of acme, app ${client_id ?? aud}`, got });
    }
  } finally {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
}
