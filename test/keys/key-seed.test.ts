// The key set on disk: what is written, and every reason not to use it at the next start.
import { randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { exportJWK } from 'jose';
import { secrets } from '../../lab/secrets.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { removeLeftovers } from '../../src/http/document-seed.ts';
import { type KeySet, parseKeySet } from '../../src/keys/jwks.ts';
import { createKeyRings } from '../../src/keys/key-rings.ts';
import { createKeySeed, type InheritedKeys, type KeySeedSettings } from '../../src/keys/key-seed.ts';
import { freshFolder } from '../support/fresh-folder.ts';

describe('key seed', () => {
  let cacheDirectory: string;
  let publicJwks: KeySet['publicJwks'];

  beforeEach(async () => {
    cacheDirectory = freshFolder();
    const { kty, crv, x, y, kid } = (await signingKey('seeded')).publicJwk;
    publicJwks = [
      Object.fromEntries(Object.entries({ kty, crv, x, y, kid }).map(([name, value]) => [name, `${value}`])),
    ];
  });
  afterEach(async () => {
    for (const name of await readdir(cacheDirectory))
      secrets.show('key file', await readFile(join(cacheDirectory, name), 'utf8').catch(() => ''));
  });

  function seedWith(overrides: Partial<KeySeedSettings>) {
    let result: string | undefined;
    const seed = createKeySeed({
      cacheDirectory,
      issuers: ['https://issuer'],
      location: 'https://issuer/jwks',
      algorithms: ['ES256'],
      readOnly: false,
      maxAgeMs: 1_000,
      wallNow: () => 2_000,
      onWarning: problem => {
        result = problem;
      },
      ...overrides,
    });
    return { seed, result: () => result };
  }

  /** Resolves to the reported problem. */
  async function save(
    overrides: Partial<KeySeedSettings> = {},
    confirmedWallMs = 1_234.5,
  ): Promise<string | undefined> {
    const { seed, result } = seedWith(overrides);
    seed.save(publicJwks, confirmedWallMs);
    await seed.written();
    return result();
  }

  /** Resolves to the keys, to the reported problem, or to undefined without a seed. */
  async function load(overrides: Partial<KeySeedSettings> = {}): Promise<InheritedKeys | string | undefined> {
    const { seed, result } = seedWith(overrides);
    return (await seed.load()) ?? result();
  }

  async function writtenFile(): Promise<string> {
    const [name = ''] = await readdir(cacheDirectory);
    return join(cacheDirectory, name);
  }

  /** Writes a seed, then changes its fields on disk. */
  async function tamper(change: (fields: Record<string, unknown>) => unknown): Promise<void> {
    await save();
    const path = await writtenFile();
    await writeFile(path, JSON.stringify(change(JSON.parse(await readFile(path, 'utf8')))));
  }

  it('leaves no temporary file of a killed process, and every file that is not surely one', async () => {
    const seedName = `${'a1'.repeat(32)}.json`;
    const own = (id: string): string => `${seedName}.${randomUUID().slice(0, -1)}${id}.tmp`;
    const [old, young, link] = [own('0'), own('1'), own('2')];
    const kept = [`${seedName}.tmp`, 'x.json.tmp', `${old}.bak`, `X${old}`, seedName];
    for (const name of [old, young, ...kept]) {
      await writeFile(join(cacheDirectory, name), '');
      const seconds = Date.now() / 1000 - (name === young ? 50 : 70);
      await utimes(join(cacheDirectory, name), seconds, seconds);
    }
    await symlink(join(cacheDirectory, young), join(cacheDirectory, link));
    const keys = { refreshSeconds: 1, maxAgeSeconds: 1, cooldownSeconds: 1, timeoutSeconds: 1, cacheDirectory };
    const observer = { onRefresh: () => undefined, onUsable: () => undefined, onWarning: () => undefined };
    const start = (seedReadOnly: boolean) => createKeyRings({ observer, proxy: {}, seedReadOnly }).prepare([], keys);
    await start(true);
    expect(await readdir(cacheDirectory)).to.include(old);
    await start(false);
    expect(await readdir(cacheDirectory)).to.have.members([young, link, ...kept]);
    await removeLeftovers(join(cacheDirectory, 'missing'));
  });

  it('returns the saved keys and their age', async () => {
    expect(await save()).to.equal(undefined);
    const loaded = await load();
    if (typeof loaded !== 'object') throw new Error(loaded);
    expect(loaded.ageMs).to.equal(2_000 - 1_234);
    const [key] = loaded.set.keys.keys();
    expect([...loaded.set.kids]).to.deep.equal(['seeded']);
    expect(key?.cryptoKeyFor('ES256')).to.not.equal(undefined);
  });

  it('contains nothing of a published private key', async () => {
    const { publicJwk, privateKey } = await signingKey('leaking');
    const keys = [(await signingKey('seeded')).publicJwk, { ...publicJwk, ...(await exportJWK(privateKey)) }];
    const read = await parseKeySet(Buffer.from(JSON.stringify({ keys })), ['ES256']);
    if (read.kind !== 'keySet') throw new Error(read.problem);
    const { seed } = seedWith({});
    seed.save(read.publicJwks, 1);
    await seed.written();
    const written = await readFile(await writtenFile(), 'utf8');
    expect(written).to.contain('seeded').and.to.not.contain('leaking');
    expect(written).to.not.match(/"d\\?"/);
  });

  it('is absent if the file or its directory does not exist', async () => {
    expect(await load()).to.equal(undefined);
    expect(await load({ cacheDirectory: join(cacheDirectory, 'no', 'such') })).to.equal(undefined);
  });

  it('creates its directory with mode 0700', async () => {
    const deep = join(cacheDirectory, 'a', 'b');
    expect(await save({ cacheDirectory: deep })).to.equal(undefined);
    expect((await stat(deep)).mode & 0o777).to.equal(0o700);
  });

  it('is written with mode 0600', async () => {
    await save();
    expect((await stat(await writtenFile())).mode & 0o777).to.equal(0o600);
  });

  it('is replaced atomically without a temporary file left over', async () => {
    await save();
    await save({}, 1_999);
    expect(await readdir(cacheDirectory)).to.have.length(1);
    expect(await load()).to.include({ ageMs: 1 });
  });

  it('is used by a ring that shares an issuer with the one that wrote it', async () => {
    await save({ issuers: ['https://a', 'https://b'] });
    expect(await load({ issuers: ['https://b', 'https://c'] })).to.include({ ageMs: 766 });
  });

  const notUsed: readonly (readonly [string, Partial<KeySeedSettings>, string | undefined])[] = [
    ['for other issuers', { issuers: ['https://other'] }, 'seed not used: of another issuer or source'],
    ['for another location', { location: 'https://other/jwks' }, undefined],
    ['once it is too old', { wallNow: () => 2_234 }, 'seed not used: too old'],
    ['if it is from the future', { wallNow: () => 1_233 }, 'seed not used: from the future'],
    [
      'if its keys are for other algorithms than the configured ones',
      { algorithms: ['RS256'] },
      'seed not used: no usable key: seeded (algorithms has none for P-256)',
    ],
  ];
  for (const [when, overrides, problem] of notUsed) {
    it(`is not used ${when}`, async () => {
      await save();
      expect(await load(overrides)).to.equal(problem);
    });
  }

  it('is never written by a reader', async () => {
    expect(await save({ readOnly: true })).to.equal(undefined);
    expect(await readdir(cacheDirectory)).to.deep.equal([]);
  });

  const changes: readonly (readonly [string, (fields: Record<string, unknown>) => unknown, string])[] = [
    ['a seed of another issuer', fields => ({ ...fields, issuers: ['x'] }), 'of another issuer or source'],
    ['a seed of another source', fields => ({ ...fields, location: 'x' }), 'of another issuer or source'],
    ['a seed of another version', fields => ({ ...fields, version: 4 }), 'not a seed'],
    ['a seed without issuers', fields => ({ ...fields, issuers: undefined }), 'of another issuer or source'],
    ['a seed with a string as time', fields => ({ ...fields, confirmedAt: '1' }), 'not a seed'],
    ['a seed with a fractional time', fields => ({ ...fields, confirmedAt: 1.5 }), 'not a seed'],
    ['a seed without a key set', fields => ({ ...fields, jwks: undefined }), 'not a seed'],
    ['a seed with a changed key set', fields => ({ ...fields, jwks: '{"keys":[]}' }), 'damaged'],
    ['a file that holds an array', () => [], 'not a seed'],
  ];
  for (const [name, change, problem] of changes) {
    it(`${name} is not used: ${problem}`, async () => {
      await tamper(change);
      expect(await load()).to.equal(`seed not used: ${problem}`);
    });
  }

  for (const [name, text, problem] of [
    ['a truncated file', '{"version":1,', 'not JSON'],
    ['a file with a duplicate member', '{"version":1,"version":1}', 'a member twice'],
    ['a file of 2 MiB', ' '.repeat(2 * 1024 * 1024), 'not a seed'],
  ] as const) {
    it(`${name} is not used: ${problem}`, async () => {
      await save();
      await writeFile(await writtenFile(), text);
      expect(await load()).to.equal(`seed not used: ${problem}`);
    });
  }

  describe('owner and mode', () => {
    const { getegid, geteuid } = process;
    const own = { uid: geteuid?.() ?? 0, gid: getegid?.() ?? 0 };
    const isRoot = own.uid === 0;
    const foreignOwner = { uid: 4242, gid: 4242 };
    const refusedFile = 'seed not used: writable by others';
    const refusedFolder = 'seed not used: folder writable by others';
    type Row = readonly [what: string, at: 'file' | 'folder', mode: number, owner: typeof own, problem?: string];
    const rows: readonly Row[] = [
      ['with the mode that fsGroup sets', 'file', 0o660, own],
      ['with the mode that fsGroup sets', 'folder', 0o2770, own],
      ['that is the root of a volume with fsGroup', 'folder', 0o2775, { uid: 0, gid: own.gid }],
      ['that everybody can write', 'file', 0o602, own, refusedFile],
      ['that everybody can write', 'file', 0o666, own, refusedFile],
      ['that a foreign group can write', 'file', 0o660, { ...own, gid: 4242 }, refusedFile],
      ['that a foreign group can read', 'file', 0o640, { ...own, gid: 4242 }],
      ['of another user', 'file', 0o600, foreignOwner, refusedFile],
      ['that everybody can write', 'folder', 0o777, own, refusedFolder],
      ['that is the root of an emptyDir with fsGroup', 'folder', 0o2777, { uid: 0, gid: own.gid }, refusedFolder],
      ['with the sticky bit', 'folder', 0o1777, own],
      ['that a foreign group can write', 'folder', 0o770, { ...own, gid: 4242 }, refusedFolder],
      ['of another user', 'folder', 0o700, foreignOwner, refusedFolder],
    ];
    for (const [what, at, mode, owner, problem] of rows) {
      // Only root can change the owner of a file.
      if (!isRoot && (owner.uid !== own.uid || owner.gid !== own.gid)) continue;
      it(`a ${at} ${what} (${mode.toString(8)}, ${owner.uid}:${owner.gid}) ${problem === undefined ? 'is used' : `fails with "${problem}"`}`, async () => {
        await save();
        const path = at === 'file' ? await writtenFile() : cacheDirectory;
        await chown(path, owner.uid, owner.gid);
        await chmod(path, mode);
        if (problem === undefined) expect(await load()).to.include({ ageMs: 766 });
        else expect(await load()).to.equal(problem);
      });
    }

    it('are checked on save too: a folder writable by others is a problem', async () => {
      await chmod(cacheDirectory, 0o777);
      expect(await save()).to.equal('seed not written: folder writable by others');
      expect(await readdir(cacheDirectory)).to.deep.equal([]);
      const below = { cacheDirectory: join(cacheDirectory, 'below') };
      expect(await save(below)).to.equal(undefined);
      expect(await load(below)).to.include({ ageMs: 766 });
      await rm(join(cacheDirectory, 'below'), { recursive: true });
    });
  });

  it('is not used if its file is a symbolic link', async () => {
    await save();
    const path = await writtenFile();
    const elsewhere = join(cacheDirectory, 'elsewhere');
    await writeFile(elsewhere, await readFile(path), { mode: 0o600 });
    await rm(path);
    await symlink(elsewhere, path);
    expect(await load()).to.equal('seed not used: not a seed');
  });

  it('reports why it cannot be written and leaves no temporary file', async () => {
    const file = join(cacheDirectory, 'file');
    await writeFile(file, '');
    expect(await save({ cacheDirectory: file })).to.match(/^seed not written: E(?:EXIST|NOTDIR)$/);
    await save();
    const path = await writtenFile().then(() => readdir(cacheDirectory));
    const name = path.find(entry => entry.endsWith('.json')) ?? '';
    await rm(join(cacheDirectory, name));
    await mkdir(join(cacheDirectory, name, 'occupied'), { recursive: true });
    expect(await save()).to.match(/^seed not written: E/);
    expect((await readdir(cacheDirectory)).filter(entry => entry.endsWith('.tmp'))).to.deep.equal([]);
  });
});
