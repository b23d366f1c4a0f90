// Small issuers: libraries and servers that people make an authorization server of. Each runs as a program of a few lines in its own language
// and gives a token by its own flow, which takes the entry of docs/providers/others.md to the product.
import { readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { freePorts } from '../../lab/free-ports.ts';
import { go, installed, java, type Language, node, python } from './distributions.ts';
import { decodeToken } from './oauth.ts';
import { startServer } from './server-process.ts';
import { type TokenTrial, tryToken } from './token-trial.ts';
import type { Result } from './trial.ts';

const programs = fileURLToPath(new URL('issuers/', import.meta.url));
const page = readFileSync(new URL('../../docs/providers/others.md', import.meta.url), 'utf8');
const machine = { grant_type: 'client_credentials', client_id: 'billing', client_secret: 'secret' };

interface SmallIssuer extends Pick<TokenTrial, 'initArgs' | 'initCode'> {
  /** As in the table of the page. */
  readonly name: string;
  readonly language: Language;
  /** Of issuers/, and its arguments. */
  readonly program: string;
  readonly packages: readonly string[];
  /** Whose answer says that it is up. Default `/keys`. */
  readonly keys?: string;
  /** Default `/token`. */
  readonly tokens?: string;
  readonly form?: Readonly<Record<string, string>>;
  /** Runs only where it is named: its build takes most of an hour. */
  readonly isSlow?: true;
}

/** Their tokens name the cloud, which is not asked. */
const emulator = { keys: '/health', initArgs: ['--offline'], initCode: 3 } as const;

const issuers: readonly SmallIssuer[] = [
  {
    name: 'better-auth, jwt',
    language: node,
    program: 'better-auth.mjs',
    packages: ['better-auth@1.7.25'],
    keys: '/api/auth/jwks',
    initCode: 3,
  },
  {
    name: 'better-auth, oauth-provider',
    language: node,
    program: 'better-auth-oauth.mjs',
    packages: ['better-auth@1.7.25', '@better-auth/oauth-provider@1.7.5'],
    keys: '/api/auth/jwks',
    form: { grant_type: 'client_credentials', resource: 'https://api.example.com' },
  },
  {
    name: 'OpenAuth',
    language: node,
    program: 'openauth.mjs',
    packages: ['@openauthjs/openauth@0.4.3', 'hono@4.13.19'],
    keys: '/.well-known/jwks.json',
    form: { ...machine, provider: 'service' },
  },
  {
    name: 'Authlib',
    language: python,
    program: 'authlib-server.py',
    packages: ['authlib==1.9.10', 'flask==3.1.3'],
    keys: '/jwks',
    form: { ...machine, scope: 'orders:read' },
  },
  {
    name: 'django-oauth-toolkit',
    language: python,
    program: 'django-server.py',
    packages: ['django-oauth-toolkit==3.4.1', 'django==5.2.19'],
    keys: '/o/.well-known/jwks.json',
    tokens: '/o/token/',
    form: machine,
  },
  {
    name: 'zitadel/oidc',
    language: go('.', './trial'),
    program: 'zitadel.go',
    packages: ['github.com/zitadel/oidc/v3@v3.52.0'],
    tokens: '/oauth/token',
    form: { ...machine, client_id: 'sid1', client_secret: 'verysecret', scope: 'openid orders:read' },
  },
  {
    name: 'spring-authorization-server',
    language: java,
    program: 'Main.java',
    packages: ['spring-boot-starter-oauth2-authorization-server', '4.0.0'],
    keys: '/oauth2/jwks',
    tokens: '/oauth2/token',
    form: { ...machine, scope: 'orders:read' },
  },
  {
    name: 'dex',
    language: go('tool', 'sh'),
    program: 'dex.sh',
    // Release 2.45.1; its module has no version of that name.
    packages: ['github.com/dexidp/dex/cmd/dex@v0.0.0-20260303133905-11d2eeb52b42'],
    form: {
      ...{ ...machine, grant_type: 'password', username: 'alice@example.com', password: 'secret' },
      scope: 'openid groups audience:server:client_id:api',
    },
    initCode: 3,
  },
  {
    name: 'cognito-local',
    language: node,
    program: 'cognito.mjs cognito-local',
    packages: ['cognito-local@5.3.0'],
    ...emulator,
  },
  {
    name: 'moto',
    language: { ...python, start: 'node' },
    program: 'cognito.mjs python3 -m moto.server',
    packages: ['moto[cognitoidp,server]==5.2.5'],
    ...emulator,
  },
  {
    name: 'SPIRE',
    language: go('tool', 'node'),
    program: 'spire.mjs',
    packages: ['cmd/spire-server', 'cmd/spire-agent', 'support/oidc-discovery-provider'].map(
      each => `github.com/spiffe/spire/${each}@v1.13.3`,
    ),
    initCode: 3,
    isSlow: true,
  },
];

/** The names that `--only` takes, and whether all of them includes it. */
export const smallIssuers = issuers.map(({ name, isSlow = false }) => ({ name, isSlow }));

/** What the row of the page has for it, with the address of the run and what the token names. */
function entryOf(name: string, url: string, { iss, client_id }: Readonly<Record<string, unknown>>) {
  const row = page.split('\n').find(line => line.startsWith(`| ${name} `)) ?? '';
  const text = row.replaceAll('https://auth.example.com', url).replaceAll('CLIENT', `${client_id}`);
  const entry = parse(/`(\{.*?\})` \|/.exec(text.replaceAll('POOL', `${iss}`.replace(/.*\//, '')))?.[1] ?? '');
  if (entry?.issuer === undefined) throw new Error(`docs/providers/others.md has no entry for ${name}`);
  const lifetime = /`maxLifetimeSeconds: (\d+)`/.exec(row)?.[1];
  const names = /`names: \['?([^\]']+)'?\]`/.exec(row)?.[1];
  return {
    issuers: [entry],
    routes: [{ path: '/api/*' }],
    roles: { owner: names === undefined ? ['GET'] : { methods: ['GET'], names: [names] } },
    ...(lifetime !== undefined && { token: { maxLifetimeSeconds: Number(lifetime) } }),
  };
}

/** Its token takes the entry of the page. */
export async function trySmallIssuer(issuerName: string, add: (result: Result) => void): Promise<void> {
  const found = issuers.find(each => each.name === issuerName);
  if (found === undefined) throw new Error(`no small issuer ${issuerName}`);
  const { name, language, program, packages, keys = '/keys', tokens = '/token', form = {}, initArgs, initCode } = found;
  const [file = ''] = program.split(' ');
  const version = packages.at(-1)?.replace(/.*[=@]/, '');
  const folder = await installed(`${name.replace(/[/ ,]+/, '-')}-${version}`, async unfinished => {
    await copyFile(join(programs, file), join(unfinished, file));
    await language.install(unfinished, packages);
  });
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-issuer-'));
  const [port, other] = await freePorts(2);
  const url = `http://127.0.0.1:${port}`;
  await copyFile(join(programs, file), join(folder, file));
  const server = await startServer({
    name,
    command: 'sh',
    args: ['-c', `cd '${folder}' && exec ${language.start} ${program}`],
    env: { PORT: `${port}`, OTHER_PORT: `${other}`, URL: url, DATA: directory, PYTHONPATH: join(folder, 'lib') },
    healthUrl: url + keys,
  });
  try {
    const answer = await fetch(url + tokens, { method: 'POST', body: new URLSearchParams(form) });
    const { access_token: token } = (await answer.json()) as { readonly access_token: string };
    const settings = entryOf(name, url, decodeToken(token).claims);
    await tryToken(token, { grant: form.grant_type ?? 'session', settings, initArgs, initCode }, add);
  } finally {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
}
