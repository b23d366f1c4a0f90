// The authorities of a caFile, and when one of them is gone.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { testCertificate } from '../../lab/test-certificate.ts';
import { hasAll, loadAuthorities, loadCaFile, recall } from '../../src/keys/key-authorities.ts';

const [one, two, namesake] = ['one', 'two', 'one'].map(
  name => testCertificate({ name, isAuthority: true, addresses: [] }).cert,
);

describe('authorities of caFile', () => {
  let folder: string;
  let file: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-ca-'));
    file = join(folder, 'ca.pem');
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function authoritiesOf(text: string) {
    await writeFile(file, text);
    return loadAuthorities(file);
  }

  it('are none without a file', async () => {
    expect(await loadAuthorities(undefined)).to.deep.equal([]);
  });

  it('are one for each certificate, by its key and not by its name', async () => {
    const found = await authoritiesOf(`${one}${two}${namesake}`);
    expect(new Set(found as readonly string[]).size).to.equal(3);
    expect(await authoritiesOf(`# a comment\n${one}`)).to.deep.equal([(found as readonly string[])[0]]);
  });

  it('are the same in another file with the same certificate', async () => {
    const before = (await authoritiesOf(`${one}`)) as readonly string[];
    expect(hasAll(await authoritiesOf(`# renewed\n${two}${one}`), before)).to.equal(true);
  });

  for (const [what, text, problem] of [
    ['without a certificate', 'text', 'CA file without certificate'],
    ['that is cut off', `${one}${two}`.slice(0, -100), 'CA file not readable'],
  ] as const) {
    it(`are a problem in a file ${what}`, async () => {
      expect(await authoritiesOf(text)).to.deep.equal({ kind: 'problem', problem });
    });
  }

  it('are a problem if the file is missing', async () => {
    expect(await loadAuthorities(file)).to.deep.equal({ kind: 'problem', problem: 'CA file not readable' });
  });

  it('keep the content of the file, which is parsed once', async () => {
    const text = `# seen by no other test\n${one}`;
    await writeFile(file, text);
    const loaded = await loadCaFile(file);
    expect(loaded.kind === 'caFile' && loaded.content.toString()).to.equal(text);
    expect(await loadCaFile(file)).to.equal(loaded);
  });

  const rows: readonly (readonly [string, Parameters<typeof hasAll>, boolean])[] = [
    [
      'the same',
      [
        ['a', 'b'],
        ['b', 'a'],
      ],
      true,
    ],
    ['one more', [['a', 'b'], ['a']], true],
    ['one gone', [['a'], ['a', 'b']], false],
    ['another one', [['b'], ['a']], false],
    ['none before', [[], []], true],
    ['a broken file', [{ kind: 'problem', problem: 'CA file not readable' }, ['a']], true],
  ];
  for (const [what, parameters, expected] of rows) {
    it(`${expected ? 'are all there' : 'are not all there'} with ${what}`, () => {
      expect(hasAll(...parameters)).to.equal(expected);
    });
  }
});

describe('recent values', () => {
  it('are the last eight that were asked for', () => {
    const recent = new Map<string, number>();
    let made = 0;
    const ask = (id: string): number => recall(recent, id, () => (made += 1));
    for (let i = 0; i < 8; i += 1) ask(`${i}`);
    expect(ask('0')).to.equal(1);
    expect(ask('8')).to.equal(9);
    expect(recent.size).to.equal(8);
    expect(ask('0')).to.equal(1);
    expect(ask('1')).to.equal(10);
  });
});
