// The key set on disk: what is written, and everything that keeps it from being read back.
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { exportJWK } from 'jose';
import { type PublicJwk, parseKeySet } from '../../src/keys/jwks.ts';
import { createKeySeed, type KeySeed, type KeySeedSettings } from '../../src/keys/key-seed.ts';
import { secrets } from '../support/secrets.ts';
import { signingKey } from '../support/signing-key.ts';

describe('key seed', () => {
  let cacheDirectory: string;
  let publicJwks: readonly PublicJwk[];

  beforeEach(async () => {
    cacheDirectory = await mkdtemp(join(tmpdir(), 'account-authz-seed-'));
    const { kty, crv, x, y, kid } = (await signingKey('seeded')).publicJwk;
    publicJwks = [
      Object.fromEntries(Object.entries({ kty, crv, x, y, kid }).map(([name, value]) => [name, `${value}`])),
    ];
  });
  afterEach(async () => {
    for (const name of await readdir(cacheDirectory))
      secrets.show('key file', await readFile(join(cacheDirectory, name), 'utf8').catch(() => ''));
    await rm(cacheDirectory, { recursive: true });
  });

  const seed = (overrides: Partial<KeySeedSettings> = {}): KeySeed =>
    createKeySeed({
      cacheDirectory,
      issuer: 'https://issuer',
      source: 'jwksUrl https://issuer/jwks',
      algorithms: ['ES256'],
      ...overrides,
    });

  async function writtenFile(): Promise<string> {
    const [name = ''] = await readdir(cacheDirectory);
    return join(cacheDirectory, name);
  }

  /** Writes a seed and changes its fields on disk. */
  async function tampered(change: (fields: Record<string, unknown>) => unknown): Promise<KeySeed> {
    await seed().save(publicJwks, [['anchor']], 1_000);
    const path = await writtenFile();
    await writeFile(path, JSON.stringify(change(JSON.parse(await readFile(path, 'utf8')))));
    return seed();
  }

  it('gives back what was written, with the time of its confirmation', async () => {
    expect(await seed().save(publicJwks, [['anchor']], 1_234.5)).to.equal(undefined);
    const loaded = await seed().load();
    if (loaded.kind !== 'seed') throw new Error(JSON.stringify(loaded));
    expect(loaded.confirmedWallMs).to.equal(1_234);
    expect([...loaded.keySet.keys.keys()]).to.deep.equal(['seeded']);
    expect(loaded.keySet.keys.get('seeded')?.cryptoKeyFor('ES256')).to.not.equal(undefined);
  });

  it('holds nothing of a private key that is published beside the others', async () => {
    const { publicJwk, privateKey } = await signingKey('leaking');
    const keys = [(await signingKey('seeded')).publicJwk, { ...publicJwk, ...(await exportJWK(privateKey)) }];
    const read = await parseKeySet(Buffer.from(JSON.stringify({ keys })), ['ES256']);
    if (read.kind !== 'keySet') throw new Error(read.problem);
    await seed().save(read.publicJwks, [['anchor']], 1);
    const written = await readFile(await writtenFile(), 'utf8');
    expect(written).to.contain('seeded').and.to.not.contain('leaking');
    expect(written).to.not.match(/"d\\?"/);
  });

  it('is none where nothing was written, or not even a directory is', async () => {
    expect(await seed().load()).to.deep.equal({ kind: 'none' });
    const nowhere = seed({ cacheDirectory: join(cacheDirectory, 'no', 'such') });
    expect(await nowhere.load()).to.deep.equal({ kind: 'none' });
  });

  it('creates its directory, for itself alone', async () => {
    const deep = join(cacheDirectory, 'a', 'b');
    expect(await seed({ cacheDirectory: deep }).save(publicJwks, [['anchor']], 1)).to.equal(undefined);
    expect((await stat(deep)).mode & 0o777).to.equal(0o700);
  });

  it('is readable and writable by its owner alone', async () => {
    await seed().save(publicJwks, [['anchor']], 1);
    expect((await stat(await writtenFile())).mode & 0o777).to.equal(0o600);
  });

  it('is replaced whole and leaves no temporary file', async () => {
    await seed().save(publicJwks, [['anchor']], 1);
    await seed().save(publicJwks, [['anchor']], 2);
    expect(await readdir(cacheDirectory)).to.have.length(1);
    expect(await seed().load()).to.include({ kind: 'seed', confirmedWallMs: 2 });
  });

  for (const [name, overrides] of [
    ['issuer', { issuer: 'https://other' }],
    ['source', { source: 'jwksUrl https://other/jwks' }],
  ] as const) {
    it(`is not that of another ${name}`, async () => {
      await seed().save(publicJwks, [['anchor']], 1);
      expect(await seed(overrides).load()).to.deep.equal({ kind: 'none' });
    });
  }

  it('holds only keys for the algorithms of today', async () => {
    await seed().save(publicJwks, [['anchor']], 1);
    const loaded = await seed({ algorithms: ['RS256'] }).load();
    expect(loaded).to.deep.equal({ kind: 'problem', problem: 'seed not used: no usable key' });
  });

  const changes: readonly (readonly [string, (fields: Record<string, unknown>) => unknown, string])[] = [
    ['of another issuer under our name', fields => ({ ...fields, issuer: 'x' }), 'of another issuer or source'],
    ['of another source under our name', fields => ({ ...fields, source: 'x' }), 'of another issuer or source'],
    ['of another version', fields => ({ ...fields, version: 1 }), 'not a seed'],
    ['with no anchors', fields => ({ ...fields, anchors: undefined }), 'not a seed'],
    ['with anchors that are numbers', fields => ({ ...fields, anchors: [[1]] }), 'not a seed'],
    ['with other anchors', fields => ({ ...fields, anchors: [] }), 'damaged'],
    ['with a time that is text', fields => ({ ...fields, confirmedAt: '1' }), 'not a seed'],
    ['with a broken time', fields => ({ ...fields, confirmedAt: 1.5 }), 'not a seed'],
    ['with no set', fields => ({ ...fields, jwks: undefined }), 'not a seed'],
    ['with another set', fields => ({ ...fields, jwks: '{"keys":[]}' }), 'damaged'],
    ['that is an array', () => [], 'not a seed'],
  ];
  for (const [name, change, problem] of changes) {
    it(`${name}: ${problem}`, async () => {
      const read = await (await tampered(change)).load();
      expect(read).to.deep.equal({ kind: 'problem', problem: `seed not used: ${problem}` });
    });
  }

  for (const [name, text, problem] of [
    ['half a file', '{"version":1,', 'not JSON'],
    ['a member twice', '{"version":1,"version":1}', 'a member twice'],
    ['more than it can be', ' '.repeat(2 * 1024 * 1024), 'not a seed'],
  ] as const) {
    it(`${name}: ${problem}`, async () => {
      await seed().save(publicJwks, [['anchor']], 1);
      await writeFile(await writtenFile(), text);
      expect(await seed().load()).to.deep.equal({ kind: 'problem', problem: `seed not used: ${problem}` });
    });
  }

  describe('by who else may write', () => {
    const { getegid, geteuid } = process;
    const own = { uid: geteuid?.() ?? 0, gid: getegid?.() ?? 0 };
    const isRoot = own.uid === 0;
    const stranger = { uid: 4242, gid: 4242 };
    const refusedFile = 'seed not used: writable by others';
    const refusedFolder = 'seed not used: folder writable by others';
    type Row = readonly [
      what: string,
      at: 'file' | 'folder',
      mode: number,
      owner: typeof own,
      problem: string | undefined,
    ];
    const rows: readonly Row[] = [
      ['as fsGroup leaves it', 'file', 0o660, own, undefined],
      ['as fsGroup leaves it', 'folder', 0o2770, own, undefined],
      ['as the root of a volume with fsGroup', 'folder', 0o2775, { uid: 0, gid: own.gid }, undefined],
      ['that everybody may write', 'file', 0o602, own, refusedFile],
      ['that everybody may write', 'file', 0o666, own, refusedFile],
      ['of a group that is not ours', 'file', 0o660, { ...own, gid: 4242 }, refusedFile],
      ['that a group that is not ours reads', 'file', 0o640, { ...own, gid: 4242 }, undefined],
      ['of another user', 'file', 0o600, stranger, refusedFile],
      ['that everybody may write', 'folder', 0o777, own, refusedFolder],
      ['as the root of an emptyDir with fsGroup', 'folder', 0o2777, { uid: 0, gid: own.gid }, refusedFolder],
      ['in which everybody keeps to what is theirs', 'folder', 0o1777, own, undefined],
      ['of a group that is not ours', 'folder', 0o770, { ...own, gid: 4242 }, refusedFolder],
      ['of another user', 'folder', 0o700, stranger, refusedFolder],
    ];
    for (const [what, at, mode, owner, problem] of rows) {
      // Only root can give a file away.
      if (!isRoot && (owner.uid !== own.uid || owner.gid !== own.gid)) continue;
      it(`a ${at} ${what} (${mode.toString(8)}, ${owner.uid}:${owner.gid}) is ${problem ?? 'used'}`, async () => {
        await seed().save(publicJwks, [['anchor']], 1);
        const path = at === 'file' ? await writtenFile() : cacheDirectory;
        await chown(path, owner.uid, owner.gid);
        await chmod(path, mode);
        const loaded = await seed().load();
        if (problem === undefined) expect(loaded).to.include({ kind: 'seed' });
        else expect(loaded).to.deep.equal({ kind: 'problem', problem });
      });
    }

    it('says when it is written that the folder will not do', async () => {
      await chmod(cacheDirectory, 0o777);
      expect(await seed().save(publicJwks, [['anchor']], 1)).to.equal('seed not written: folder writable by others');
      expect(await readdir(cacheDirectory)).to.deep.equal([]);
      const below = seed({ cacheDirectory: join(cacheDirectory, 'below') });
      expect(await below.save(publicJwks, [['anchor']], 1)).to.equal(undefined);
      expect(await below.load()).to.include({ kind: 'seed' });
      await rm(join(cacheDirectory, 'below'), { recursive: true });
    });
  });

  it('behind a symbolic link is not used', async () => {
    await seed().save(publicJwks, [['anchor']], 1);
    const path = await writtenFile();
    const elsewhere = join(cacheDirectory, 'elsewhere');
    await writeFile(elsewhere, await readFile(path), { mode: 0o600 });
    await rm(path);
    await symlink(elsewhere, path);
    expect(await seed().load()).to.deep.equal({ kind: 'problem', problem: 'seed not used: not readable: ELOOP' });
  });

  it('that cannot be written says why and leaves nothing behind', async () => {
    const file = join(cacheDirectory, 'file');
    await writeFile(file, '');
    const problem = await seed({ cacheDirectory: file }).save(publicJwks, [['anchor']], 1);
    expect(problem).to.match(/^seed not written: E(?:EXIST|NOTDIR)$/);
    await seed().save(publicJwks, [['anchor']], 1);
    const path = await writtenFile().then(() => readdir(cacheDirectory));
    const name = path.find(entry => entry.endsWith('.json')) ?? '';
    await rm(join(cacheDirectory, name));
    await mkdir(join(cacheDirectory, name, 'occupied'), { recursive: true });
    expect(await seed().save(publicJwks, [['anchor']], 1)).to.match(/^seed not written: E/);
    expect((await readdir(cacheDirectory)).filter(entry => entry.endsWith('.tmp'))).to.deep.equal([]);
  });
});
