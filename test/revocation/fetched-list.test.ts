// A revocation list by URL against a publisher: what confirms it, what is refused, when it is too old, and the copy on disk.
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { testCertificate } from '../../lab/test-certificate.ts';
import { createFileWatch } from '../../src/files/file-watch.ts';
import { createFetchedList, type FetchedListObserver, type ListSettings } from '../../src/revocation/fetched-list.ts';
import { principal } from '../support/facts.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { type Publisher, startPublisher } from '../support/publisher.ts';

type Fetched = Parameters<FetchedListObserver['onFetched']>[0];

const entry = (uid: string): string => `{"uid":"${uid}"}\n`;

describe('revocation list by URL', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let publisher: Publisher;
  let cacheDirectory: string;
  beforeEach(async () => {
    publisher = await startPublisher(entry('u-1'));
    cacheDirectory = freshFolder();
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await publisher.stop();
  });

  /** A list whose clocks stand still until a test advances them. */
  async function listLab(settings: Partial<ListSettings> = {}) {
    const fetches: Fetched[] = [];
    const warnings: string[] = [];
    let usable = 0;
    let advancedMs = 0;
    let wallShiftMs = 0;
    let inherited: Parameters<typeof createFetchedList>[0]['inherited'];
    const create = (changes: Partial<ListSettings> = {}) => {
      const list = createFetchedList({
        settings: {
          url: publisher.url,
          refreshSeconds: 5,
          maxAgeSeconds: 600,
          timeoutSeconds: 3,
          ...settings,
          ...changes,
        },
        observer: {
          onFetched: event => void fetches.push(event),
          onUsable: () => {
            usable += 1;
          },
          onWarning: problem => void warnings.push(problem),
        },
        proxy: {},
        seedReadOnly: false,
        inherited,
        limitFetches: fetch => fetch(),
        watchFiles: createFileWatch(),
        monotonicNow: () => 1_000_000 + advancedMs,
        wallNow: () => 1_700_000_000_000 + advancedMs + wallShiftMs,
        random: () => 0.5,
      });
      ends.push(list.stop);
      return list;
    };
    const list = create();
    const decision = (of = list): string => {
      const current = of.current();
      if ('kind' in current) return current.detail;
      const { iss, app, acc } = principal();
      const matches = (uid: string) => current.find({ iss, app, acc, uid, jti: undefined, sid: undefined, iat: 0 }, 0);
      return ['u-1', 'u-2'].filter(uid => matches(uid) !== undefined).join() || 'nobody';
    };
    return {
      list,
      fetches,
      warnings,
      usable: () => usable,
      decision,
      async start() {
        await list.start();
        await list.fetchEnded();
      },
      async refresh() {
        list.refreshNow();
        await list.fetchEnded();
        return fetches.at(-1);
      },
      advance(seconds: number) {
        advancedMs += seconds * 1000;
      },
      shiftWallClock(seconds: number) {
        wallShiftMs += seconds * 1000;
      },
      /** Another list of the same process, as a changed configuration makes one. */
      next(changes: Partial<ListSettings>) {
        inherited = () => list.exportList(changes.url ?? publisher.url);
        return create(changes);
      },
    };
  }

  it('is in force as soon as it is read, and a changed one too', async () => {
    const { start, decision, refresh, list, usable, fetches } = await listLab();
    expect(decision()).to.equal('no revocation list yet');
    await start();
    expect(decision()).to.equal('u-1');
    expect(list.status()).to.include({ state: 'usable', entries: 1, ageSeconds: 0, lastProblem: undefined });
    publisher.publish(`# two\n${entry('u-2')}${entry('u-3')}`);
    expect(await refresh()).to.deep.equal({ change: 'other list', problem: undefined, lines: [] });
    expect(decision()).to.equal('u-2');
    expect(fetches[0]?.change).to.equal(undefined);
    expect(usable()).to.equal(1);
  });

  it('is confirmed by a 304 to its own ETag, and by the same bytes, which are no change', async () => {
    const { start, refresh, advance, list } = await listLab();
    await start();
    advance(100);
    expect(await refresh()).to.include({ change: undefined, problem: undefined });
    expect(list.status().ageSeconds).to.equal(0);
    publisher.answer((_, response) => response.writeHead(200).end(entry('u-1')));
    advance(100);
    expect(await refresh()).to.include({ change: undefined, problem: undefined });
    expect(list.status().ageSeconds).to.equal(0);
    expect(publisher.requests.map(({ status }) => status)).to.deep.equal([200, 304, 200]);
  });

  const respond =
    (status: number, body: string | Uint8Array = entry('u-2'), headers: Record<string, string> = {}) =>
    (publishing: Publisher): void =>
      publishing.answer((_, response) => response.writeHead(status, { etag: '"bad"', ...headers }).end(body));
  const notJson = 'line 1 must be a JSON object on a line of its own';
  const bad: readonly (readonly [name: string, publish: (publishing: Publisher) => unknown, problem: string])[] = [
    ['an HTML page', respond(200, '<!doctype html>', { 'content-type': 'text/html' }), `text/html, ${notJson}`],
    ['an error', respond(500), 'status 500'],
    ['a 304 to no condition of ours', respond(304, ''), 'status 304'],
    ['a body without a byte', respond(200, ''), 'an empty body: an empty list is an empty line or a comment'],
    [
      'an empty gzip',
      respond(200, gzipSync(''), { 'content-encoding': 'gzip' }),
      'an empty body: an empty list is an empty line or a comment',
    ],
    ['a bad entry', respond(200, `${entry('u-2')}{"sid":""}\n`), 'line 2 sid must not be empty'],
    ['half a list', respond(200, `${entry('u-2')}{"uid":"u-`), 'line 2 must be a JSON object on a line of its own'],
    [
      'a body that is cut off',
      publishing =>
        publishing.answer((request, response) => {
          response.writeHead(200, { 'content-length': 1000 });
          response.write(entry('u-2'), () => request.socket.destroy());
        }),
      'connection closed',
    ],
    [
      'a gzip bomb',
      respond(200, gzipSync(Buffer.alloc(40 * 2 ** 20, '#')), { 'content-encoding': 'gzip' }),
      'body too large',
    ],
    [
      '100,001 entries',
      respond(200, entry('u-2').repeat(100_001)),
      'line 100001 the list must not have more than 100000 entries: remove those that have expired',
    ],
    [
      'a byte order mark',
      respond(200, `\ufeff${entry('u-2')}`),
      'line 1 must not start with a byte order mark: save the file as UTF-8 without it',
    ],
    ['a refused connection', publishing => publishing.stop(), 'connection refused'],
  ];
  for (const [name, publish, problem] of bad)
    it(`stays when its publisher sends ${name}, which confirms nothing`, async () => {
      const { start, refresh, decision, list, advance } = await listLab();
      // A condition is sent, except where the answer is a 304.
      if (problem === 'status 304') {
        await publish(publisher);
        await start();
        expect(decision()).to.equal('no revocation list yet, last fetch: status 304');
        return;
      }
      await start();
      advance(100);
      await publish(publisher);
      expect(await refresh()).to.include({ problem, change: undefined });
      expect(decision()).to.equal('u-1');
      const failed = { lastResult: 'failure', lastProblem: problem };
      expect(list.status()).to.include({ state: 'usable', ageSeconds: 100, ...failed });
      // The ETag of what was refused is not used.
      if (problem !== 'connection refused') {
        publisher.publish(entry('u-2'));
        await refresh();
        expect(publisher.requests.at(-1)?.headers['if-none-match']).to.not.equal('"bad"');
        expect(decision()).to.equal('u-2');
      }
    });

  it('is verified by its authority and name: an expired certificate and that of another host bring nothing', async () => {
    for (const [options, problem] of [
      [{ validFromHours: -48, validForHours: -24 }, 'tls: certificate expired'],
      [{ addresses: ['127.0.0.2'] }, 'tls: certificate for another name'],
    ] as const) {
      const authority = testCertificate({ name: 'list authority', isAuthority: true, addresses: [] });
      const secure = await startPublisher(entry('u-2'), testCertificate({ authority, ...options }));
      ends.push(secure.stop);
      const caFile = join(cacheDirectory, 'ca.pem');
      await writeFile(caFile, authority.cert);
      const { start, decision } = await listLab({ url: secure.url, caFile });
      await start();
      expect(decision()).to.equal(`no revocation list yet, last fetch: ${problem}`);
    }
  });

  it('is too old at maxAgeSeconds on the monotonic clock, and usable again once it is confirmed', async () => {
    const { start, refresh, decision, advance, shiftWallClock, list, usable } = await listLab();
    await start();
    await publisher.stop();
    shiftWallClock(-3600);
    advance(599.9);
    expect(decision()).to.equal('u-1');
    advance(0.1);
    expect(decision()).to.equal('revocation list too old');
    await refresh();
    expect(decision()).to.equal('revocation list too old, last fetch: connection refused');
    expect(list.status()).to.include({ state: 'stale', ageSeconds: 600 });
    await publisher.restart();
    await refresh();
    expect(decision()).to.equal('u-1');
    expect(publisher.requests.at(-1)).to.include({ status: 200 });
    expect(usable()).to.equal(2);
  });

  it('goes on with list and age under other times, and not under another query', async () => {
    const { start, next, decision, advance } = await listLab();
    await start();
    advance(100);
    await publisher.stop();
    const slower = next({ refreshSeconds: 60 });
    advance(50);
    await slower.start();
    expect(decision(slower)).to.equal('u-1');
    expect(slower.status().ageSeconds).to.equal(150);
    const other = next({ url: `${publisher.url}?tenant=secret` });
    await other.start();
    expect(decision(other)).to.equal('no revocation list yet');
    expect(other.status().url).to.equal(publisher.url);
  });

  describe('on disk', () => {
    it('is used at a start without its publisher, with its age, and its first request is conditional', async () => {
      const before = await listLab({ cacheDirectory });
      await before.start();
      before.advance(5);
      await before.refresh();
      await before.list.stop();
      const after = await listLab({ cacheDirectory });
      after.advance(100);
      await after.start();
      expect(after.decision()).to.equal('u-1');
      expect(publisher.requests.map(({ status }) => status)).to.deep.equal([200, 304, 304]);
      await publisher.stop();
      const alone = await listLab({ cacheDirectory });
      alone.advance(300);
      await alone.start();
      expect(alone.decision()).to.equal('u-1');
      expect(alone.list.status().ageSeconds).to.be.within(200, 300);
    });

    const unused: readonly (readonly [why: string, change: (folder: string) => Promise<unknown>, warning?: string])[] =
      [
        ['damaged', async folder => writeFile(join(folder, await named(folder, '.jsonl')), entry('u-3')), 'damaged'],
        ['without its bytes', async folder => rm(join(folder, await named(folder, '.jsonl'))), 'damaged'],
        [
          'of another source',
          async folder => {
            const file = join(folder, await named(folder, '.json'));
            await writeFile(file, (await readFile(file, 'utf8')).replace('revoked', 'other'));
          },
          'of another issuer or source',
        ],
      ];
    for (const [why, change, warning] of unused)
      it(`is not used when it is ${why}`, async () => {
        const before = await listLab({ cacheDirectory });
        await before.start();
        await before.list.stop();
        await change(cacheDirectory);
        await publisher.stop();
        const after = await listLab({ cacheDirectory });
        await after.start();
        expect(after.decision()).to.equal('no revocation list yet, last fetch: connection refused');
        expect(after.warnings).to.deep.equal([`seed not used: ${warning}`]);
      });

    it('is not used once it is older than maxAgeSeconds, or when the wall clock was set back', async () => {
      const before = await listLab({ cacheDirectory });
      await before.start();
      await before.list.stop();
      await publisher.stop();
      for (const [seconds, why] of [
        [600, 'too old'],
        [-1, 'from the future'],
      ] as const) {
        const after = await listLab({ cacheDirectory });
        after.shiftWallClock(seconds);
        await after.start();
        expect(after.warnings).to.deep.equal([`seed not used: ${why}`]);
        expect(after.decision()).to.match(/^no revocation list yet/);
      }
    });
  });
});

async function named(folder: string, end: string): Promise<string> {
  return (await readdir(folder)).find(name => name.endsWith(end)) ?? '';
}
