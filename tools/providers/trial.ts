// Tries one provider: its tokens, a key rotation, and an outage.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type DecodedToken, fixtureFile, headings, readFixture } from '../../lab/provider-page.ts';
import { type Gateway, keyTimes, settingsOf, startGateway } from './gateway.ts';
import { decodeToken } from './oauth.ts';
import { type Case, type Logout, type Provider, type Request, refusals } from './provider.ts';
import { tryToken } from './token-trial.ts';

export interface Result {
  readonly grant: string;
  readonly name: string;
  readonly expected: string;
  readonly got: string;
}

interface Trial {
  readonly provider: Provider;
  readonly gateway: Gateway;
  readonly add: (result: Result) => void;
}

const user = 'authorization code';
const service = 'client credentials';
const own: Request = { path: '/api/subscriptions/accounts/acme' };
const globex = '/api/subscriptions/accounts/globex';
const allowedUser = '200 member of acme, app web';
const allowedService = '200 owner of acme, app billing';
/** The longest backoff while there is no usable set. */
const recoverySeconds = 15;
/** Of the revocation list. */
const refreshSeconds = 1;

export async function tryProvider(
  provider: Provider,
  { add, captures }: { readonly add: Trial['add']; readonly captures: boolean },
): Promise<void> {
  await provider.setUp();
  await shapes(provider, add, captures);
  for (const { heading, cases, later } of provider.variants) {
    if (provider.page.sections.includes(heading)) await provider.runSection(heading);
    const gateway = await startGateway(settingsOf(provider), heading);
    try {
      const addTo = (section: string) => (result: Result) => add({ ...result, name: `${section}: ${result.name}` });
      await askCases(gateway, await cases(), addTo(heading));
      if (later === undefined) continue;
      await provider.runSection(later.heading);
      await gateway.configure(later.heading);
      await askCases(gateway, await later.cases(), addTo(later.heading));
    } finally {
      await gateway.stop();
    }
  }
  if (provider.logout !== undefined) await logOut(provider, provider.logout, add);
  const trial = { grant: service, settings: settingsOf(provider)() };
  await tryToken(await provider.serviceToken(), trial, add);
  const gateway = await startGateway(settingsOf(provider));
  try {
    const trial = { provider, gateway, add };
    await tokens(trial);
    await rotation(trial);
    await outage(trial);
  } finally {
    await gateway.stop();
  }
}

/** Members and types of the tokens are those of the fixture. */
async function shapes(provider: Provider, add: Trial['add'], captures: boolean): Promise<void> {
  const decoded = {
    user: decodeToken(await provider.userToken()),
    service: decodeToken(await provider.serviceToken()),
  };
  if (captures) {
    const text = [...provider.addresses].reduce(
      (result, [page, run]) => result.replaceAll(run, page),
      JSON.stringify(decoded, null, 2),
    );
    writeFileSync(fixtureFile(provider.id), `${text}\n`);
  }
  const fixture = readFixture(provider.id);
  for (const [kind, grant] of [['user', user] as const, ['service', service] as const]) {
    const expected = shapeOf(fixture[kind]);
    add({ grant, name: 'header and claims', expected, got: shapeOf(decoded[kind]) });
  }
}

function shapeOf(token: DecodedToken): string {
  const members = (value: unknown, path: string): string[] => {
    if (Array.isArray(value)) return [...new Set(value.map(item => `${path}[] ${typeof item}`))];
    if (typeof value !== 'object' || value === null) return [`${path} ${typeof value}`];
    return Object.entries(value).flatMap(([name, member]) => members(member, `${path}/${name}`));
  };
  return members(token, '').toSorted().join(', ');
}

async function askCases(gateway: Gateway, cases: readonly Case[], add: Trial['add']): Promise<void> {
  for (const { grant, name, token = '', expected, ...request } of cases) {
    add({ grant, name, expected, got: await gateway.ask(token, { ...own, ...request }) });
  }
}

async function tokens({ provider, gateway, add }: Trial): Promise<void> {
  const ofUser = { grant: user, token: await provider.userToken() };
  const ofService = { grant: service, token: await provider.serviceToken() };
  const other = async (username: string) => ({ grant: user, token: await provider.userToken(username) });
  const listed = { path: '/api/subscriptions' };
  const short = await provider.shortToken();
  await askCases(
    gateway,
    [
      { grant: service, token: short, name: 'a token of two seconds, new', expected: '200 owner of acme, app short' },
      { ...ofUser, name: 'own account in the path', expected: allowedUser },
      { ...ofUser, ...listed, name: 'list without an account', expected: allowedUser },
      { ...ofUser, ...listed, name: 'in a header', headers: { 'x-account-id': 'acme' }, expected: allowedUser },
      { ...ofUser, name: 'another account in the path', path: globex, expected: '403 account_mismatch' },
      { ...ofUser, name: 'a method that its role may not use', method: 'DELETE', expected: '403 role_forbidden' },
      { grant: user, token: forged(ofUser.token), name: 'another signature', expected: refusals.signature },
      { ...(await other('both')), name: 'roles member and admin', expected: '200 admin of acme, app web' },
      { ...(await other('homeless')), name: 'a user without an account', expected: refusals.account },
      { ...(await other('roleless')), name: 'a user without a role', expected: '403 role_forbidden' },
      { ...ofService, name: 'DELETE, which its role may use', method: 'DELETE', expected: allowedService },
      { ...ofService, name: 'another account in the path', path: globex, expected: '403 account_mismatch' },
      ...(await provider.cases()),
    ],
    add,
  );
  const toleranceSeconds = 31;
  await delay(Math.max(0, (Number(decodeToken(short).claims.exp) + toleranceSeconds) * 1000 - Date.now()));
  const expired = { grant: service, token: short, name: 'a token of two seconds, 31 s after its end' };
  await askCases(gateway, [{ ...expired, expected: '401 token_expired' }], add);
}

// In the middle, because the last character of base64url may contain unused bits (RFC 4648 section 3.5).
function forged(token: string): string {
  const at = token.lastIndexOf('.') + 100;
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}

async function rotation({ provider, gateway, add }: Trial): Promise<void> {
  const ask = async (name: string, token: string, expected = allowedService): Promise<void> =>
    add({ grant: service, name, expected, got: await gateway.ask(token) });
  const old = await provider.serviceToken();
  const before = (await gateway.keySet()).kids;
  await provider.runSection(headings.publish);
  await until(async () => (await gateway.keySet()).kids.length > before.length, keyTimes.refreshSeconds);
  await ask('new key published: a new token of the old key', await provider.serviceToken());
  await provider.runSection(headings.sign);
  const token = await provider.serviceToken();
  add({
    grant: service,
    name: 'signed with the new key',
    expected: 'true',
    got: String(!before.includes(kidOf(token))),
  });
  await ask('new key signs: its first token', token);
  await ask('new key signs: a token of the old key', old);
  await provider.runSection(headings.remove);
  await until(async () => !(await gateway.keySet()).kids.includes(kidOf(old)), keyTimes.refreshSeconds);
  await ask('old key removed: a token of the new key', token);
  await ask('old key removed: a token of the old key', old, refusals.key);
  await provider.runSection(headings.replace);
  const replaced = await provider.serviceToken();
  await until(async () => (await gateway.ask(replaced)) === allowedService, 3 * keyTimes.cooldownSeconds);
  await ask('a key that signs at once', replaced);
}

/** A session that ends at the provider is refused by two instances behind one Envoy. */
async function logOut(provider: Provider, logout: Logout, add: Trial['add']): Promise<void> {
  await provider.runSection(logout.heading);
  const program = fileURLToPath(new URL('../../docs/example/backchannel-logout.mjs', import.meta.url));
  const child = spawn(process.execPath, [program], { env: { ...process.env, ...logout.env }, stdio: 'inherit' });
  await until(
    () =>
      fetch(logout.listUrl).then(
        ({ ok }) => ok,
        () => false,
      ),
    recoverySeconds,
  );
  const revocation = { url: logout.listUrl, refreshSeconds };
  const gateway = await startGateway(settingsOf(provider), undefined, { instances: 2, revocation });
  const report = (name: string, expected: string, got: string): void => add({ grant: user, name, expected, got });
  try {
    const [ended, other] = [await provider.userTokens('alice'), await provider.userToken()];
    for (const token of [ended.access_token, other]) report('before the logout', allowedUser, await gateway.ask(token));
    const revoked = '401 token_revoked';
    const startedMs = performance.now();
    await logout.signOut(ended);
    // Each instance reads the list at its own time.
    const isRevoked = async (): Promise<boolean> => (await gateway.ask(ended.access_token)) === revoked;
    await until(async () => (await isRevoked()) && gateway.revoking() === 2, refreshSeconds + 2);
    const seconds = (performance.now() - startedMs) / 1000;
    const isSoon = seconds <= refreshSeconds + 2 ? '' : ' too late';
    const name = `logged out: refused by both after ${seconds.toFixed(2)} s`;
    report(name, revoked, `${await gateway.ask(ended.access_token)}${isSoon}`);
    report('logged out: instances that refuse it', '2', String(gateway.revoking()));
    report('logged out: another session of the user', allowedUser, await gateway.ask(other));
  } finally {
    await gateway.stop();
    child.kill();
  }
}

function kidOf(token: string): string {
  return String(decodeToken(token).header.kid);
}

async function outage({ provider, gateway, add }: Trial): Promise<void> {
  const ask = async (name: string, token: string, expected: string): Promise<void> =>
    add({ grant: service, name, expected, got: await gateway.ask(token) });
  const known = await provider.serviceToken();
  const unseen = await provider.serviceToken();
  await gateway.ask(known);
  await provider.stop();
  await ask('outage: a token seen before', known, allowedService);
  await ask('outage: a token not seen before', unseen, allowedService);
  await until(async () => (await gateway.ask(known)) !== allowedService, keyTimes.maxAgeSeconds);
  await ask('outage: keys that are too old', known, '503 keys_unavailable, Retry-After');
  await provider.start();
  await until(async () => (await gateway.ask(known)) === allowedService, recoverySeconds);
  await ask('recovery: the token seen before', known, allowedService);
  add({
    grant: user,
    name: 'recovery: a new token',
    expected: allowedUser,
    got: await gateway.ask(await provider.userToken()),
  });
}

async function until(question: () => Promise<boolean>, limitSeconds: number): Promise<void> {
  const end = performance.now() + (limitSeconds + 5) * 1000;
  while (!(await question()) && performance.now() < end) await delay(100);
}
