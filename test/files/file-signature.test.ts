// The signature by which a changed file is detected without reading it.
import { mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { fileSignature, notARegularFile } from '../../src/files/file-signature.ts';

describe('fileSignature', () => {
  let folder: string;
  let file: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'file-signature-'));
    file = join(folder, 'file');
    await writeFile(file, 'one');
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('is equal for an unchanged file', async () => {
    expect(await fileSignature(file)).to.equal(await fileSignature(file));
  });

  it('differs after the size of the file changes', async () => {
    const before = await fileSignature(file);
    await writeFile(file, 'three');
    expect(await fileSignature(file)).not.to.equal(before);
  });

  it('differs for another file of the same size and modification time', async () => {
    const other = join(folder, 'other');
    await writeFile(other, 'two');
    await Promise.all([file, other].map(each => utimes(each, 1, 1)));
    const before = await fileSignature(file);
    await rename(other, file);
    expect(await fileSignature(file)).not.to.equal(before);
  });

  it('follows symbolic links', async () => {
    const link = join(folder, 'link');
    await symlink(file, link);
    expect(await fileSignature(link)).to.equal(await fileSignature(file));
  });

  it('is a constant for a directory and the error code for a missing file', async () => {
    expect(await fileSignature(folder)).to.equal(notARegularFile);
    expect(await fileSignature(join(folder, 'none'))).to.equal('ENOENT');
  });
});
