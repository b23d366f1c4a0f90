// Reading a file up to a bound, and the reason given for one that cannot be read.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadBoundedFile } from '../../src/files/bounded-file.ts';

describe('loadBoundedFile', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bounded-file-'));
    await writeFile(join(folder, 'ten'), '0123456789');
  });
  after(() => rm(folder, { recursive: true }));

  it('reads a file whose size equals the bound', async () => {
    const content = await loadBoundedFile(join(folder, 'ten'), 10);
    expect(content.kind === 'bytes' && Buffer.from(content.bytes).toString()).to.equal('0123456789');
  });

  const refused: readonly (readonly [name: string, reason: string, maxBytes?: number])[] = [
    ['ten', 'too large', 9],
    ['none', 'missing'],
    ['ten/below', 'missing'],
    ['nul\0', 'missing'],
    ['', 'not regular'],
    ['x'.repeat(300), 'other'],
  ];
  for (const [name, reason, maxBytes] of refused) {
    it(`gives the reason "${reason}" for ${JSON.stringify(name.slice(0, 10))}`, async () => {
      expect(await loadBoundedFile(join(folder, name), maxBytes)).to.include({ kind: 'problem', reason });
    });
  }
});
