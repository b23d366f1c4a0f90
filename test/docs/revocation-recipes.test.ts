// The three recipes of docs/revocation.md for who writes a list by URL, as a reader runs them, against a fetched list.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import express from 'express';
import { SignJWT } from 'jose';
import { freePorts } from '../../lab/free-ports.ts';
import { startRedis } from '../../lab/redis.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import { createFileWatch } from '../../src/files/file-watch.ts';
import { createFetchedList } from '../../src/revocation/fetched-list.ts';
import { principal } from '../support/facts.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { useEnds } from '../support/use-ends.ts';

const page = readFileSync(new URL('../../docs/revocation.md', import.meta.url), 'utf8');
const example = fileURLToPath(new URL('../../docs/example/backchannel-logout.mjs', import.meta.url));
const day = 86_400;

describe('recipes of docs/revocation.md', () => {
  const ends = useEnds();
  let folder: string;
  beforeEach(async () => {
    folder = freshFolder();
  });

  /** The only block of shell under the heading. */
  const shell = (heading: string): string =>
    /```sh\n([\s\S]*?)```/.exec(page.slice(page.indexOf(`### ${heading}`)))?.[1] ?? '';

  function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    const child = spawn(command, args, { cwd: folder, env, stdio: 'ignore', detached: true });
    const exited = once(child, 'exit');
    ends.push(async () => {
      // With what a loop has started.
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid);
      await exited;
    });
    return exited;
  }

  /** Any web server with an ETag. */
  async function serveFolder(): Promise<string> {
    const server = express().use(express.static(folder)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/revoked.jsonl`;
  }

  /** What matches a token now. */
  async function fetchList(url: string) {
    const list = createFetchedList({
      settings: { url, refreshSeconds: 1, maxAgeSeconds: 600, timeoutSeconds: 3 },
      observer: { onFetched: () => undefined, onUsable: () => undefined, onWarning: () => undefined },
      proxy: {},
      seedReadOnly: true,
      limitFetches: fetch => fetch(),
      watchFiles: createFileWatch(),
      monotonicNow: () => performance.now(),
    });
    ends.push(list.stop);
    await list.start();
    await list.fetchEnded();
    return {
      list,
      async matches(token: { uid?: string; iss?: string; jti?: string; sid?: string; iat?: number }) {
        list.refreshNow();
        await list.fetchEnded();
        const { iss, uid, app, acc } = principal();
        const current = list.current();
        if ('kind' in current) throw new Error(current.detail);
        const found = { iss, uid, app, acc, jti: undefined, sid: undefined, iat: 0, ...token };
        return current.find(found, Date.now() / 1000);
      },
    };
  }

  it('write and rename a file that a web server serves', async () => {
    await writeFile(join(folder, 'revoked.jsonl'), '# nobody\n');
    const { matches } = await fetchList(await serveFolder());
    expect(await matches({ uid: 'user-mallory' })).to.equal(undefined);
    await run('bash', ['-ec', shell('A file behind any web server')]);
    expect(await matches({ uid: 'user-mallory' })).to.equal('uid');
  });

  it('take logout tokens alone, and keep what they have taken through a restart', async () => {
    const key = await signingKey('k1');
    const issuer = await startTestIssuer({ keys: [key.publicJwk] });
    ends.push(() => issuer.stop());
    const [port] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const env = {
      ...process.env,
      ISSUER: issuer.url,
      JWKS_URL: issuer.jwksUrl,
      CLIENT_IDS: 'web,app',
      PORT: `${port}`,
    };
    const begin = async (): Promise<void> => {
      run(process.execPath, [example], env);
      await until(() =>
        fetch(`${url}/revoked.jsonl`).then(
          () => true,
          () => false,
        ),
      );
    };
    await begin();
    const { matches } = await fetchList(`${url}/revoked.jsonl`);
    const now = Math.floor(Date.now() / 1000);
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    const good = { iss: issuer.url, aud: 'web', iat: now, jti: 'l-1', events };
    const send = async (claims: Readonly<Record<string, unknown>>, kid = 'k1', signed = key): Promise<number> => {
      const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid }).sign(signed.privateKey);
      const { status } = await fetch(url, { method: 'POST', body: new URLSearchParams({ logout_token: token }) });
      return status;
    };
    const forged: readonly Readonly<Record<string, unknown>>[] = [
      { ...good, sid: 's', iss: 'https://other.example' },
      { ...good, sid: 's', aud: 'other' },
      { ...good, sid: 's', iat: now - day },
      { ...good, sid: 's', nonce: 'n' },
      { ...good, sid: 's', events: {} },
      { ...good },
    ];
    for (const claims of forged) expect(await send(claims), JSON.stringify(claims)).to.equal(400);
    expect(await send({ ...good, sid: 's' }, 'k1', await signingKey('k2'))).to.equal(400);
    const { iss } = good;
    expect(await matches({ iss, sid: 's' })).to.equal(undefined);
    expect(await send({ ...good, sid: 'session-1', sub: 'alice' })).to.equal(200);
    expect(await send({ ...good, sub: 'bob' })).to.equal(200);
    for (let restarted = 0; restarted < 2; restarted += 1) {
      expect(await matches({ iss, sid: 'session-1' })).to.equal('iss, sid');
      expect(await matches({ sid: 'session-1' })).to.equal(undefined);
      expect(await matches({ iss, uid: 'bob', iat: now })).to.equal('iss, uid, issuedBefore');
      expect(await matches({ iss, uid: 'bob', iat: now + 1 })).to.equal(undefined);
      expect(await matches({ iss, uid: 'alice', sid: 'session-2' })).to.equal(undefined);
      await ends.pop()?.();
      if (restarted === 0) await begin();
    }
  });

  it('export a denylist of Redis, and keep the list when Redis is gone', async () => {
    const redis = await startRedis();
    ends.push(() => redis.stop());
    // The reader's loop, without its pause, against this Redis.
    const loop = shell('A denylist in Redis or Valkey')
      .replace('redis-cli ', `redis-cli -s ${redis.socket} `)
      .replace('sleep 2', 'sleep 0.1');
    const cli = (...args: readonly string[]) => run('redis-cli', ['-s', redis.socket, ...args], redis.env);
    await cli('set', 'auth:denylist:to"ken-1', '1', 'EX', '300');
    await cli('set', 'auth:denylist:short', '1', 'PX', '900');
    run('bash', ['-c', loop], redis.env);
    const file = join(folder, 'revoked.jsonl');
    const text = () => readFile(file, 'utf8').catch(() => '');
    await until(async () => (await text()).includes('ken-1'));
    const { matches } = await fetchList(await serveFolder());
    expect(await matches({ jti: 'to"ken-1' })).to.equal('jti');
    await until(async () => (await matches({ jti: 'short' })) === undefined);
    await redis.stop();
    await until(async () => (await readFile(`${file}.new`, 'utf8').catch(() => '')) === '# exported from Redis\n');
    expect(await matches({ jti: 'to"ken-1' })).to.equal('jti');
  });
});
