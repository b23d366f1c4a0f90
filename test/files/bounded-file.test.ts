// Reading a file up to a bound, and the reason given for one that cannot be read.
import { readdirSync, readlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadBoundedFile, loadInSlices, loadRegularFile } from '../../src/files/bounded-file.ts';
import { freshFolder } from '../support/fresh-folder.ts';

describe('a file', () => {
  const folder = freshFolder();
  before(() => writeFile(join(folder, 'ten'), '0123456789'));

  for (const load of [loadBoundedFile, loadRegularFile]) {
    it(`is read where its size equals the bound (${load.name})`, async () => {
      const content = await load(join(folder, 'ten'), 10);
      expect(content.kind === 'bytes' && Buffer.from(content.bytes).toString()).to.equal('0123456789');
    });
  }

  it('is read slice by slice', async () => {
    const slices: Buffer[] = [];
    const keep = async (slice: Buffer): Promise<void> => void slices.push(slice);
    expect(await loadInSlices(join(folder, 'ten'), 10, keep)).to.equal(undefined);
    expect(Buffer.concat(slices).toString()).to.equal('0123456789');
  });

  const refused: readonly (readonly [name: string, reason: string, problem: string, maxBytes?: number])[] = [
    ['ten', 'too large', 'the file is larger than 9 bytes', 9],
    ['none', 'missing', 'the file does not exist'],
    ['ten/below', 'missing', 'the file does not exist'],
    ['nul\0', 'missing', 'the file does not exist'],
    ['', 'not regular', 'the file is a directory'],
    ['x'.repeat(300), 'other', 'the file cannot be read (ENAMETOOLONG)'],
  ];
  for (const [name, reason, problem, maxBytes] of refused) {
    it(`is refused for the reason "${reason}": ${JSON.stringify(name.slice(0, 10))}`, async () => {
      const content = await loadBoundedFile(join(folder, name), maxBytes);
      expect(content).to.deep.equal({ kind: 'problem', reason, problem });
    });
  }

  it('is refused for the reason "denied" where the user of the process may not read it', async () => {
    const file = join(folder, 'denied');
    await writeFile(file, '', { mode: 0 });
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      const problem = 'the file cannot be read: permission denied';
      expect(await loadBoundedFile(file)).to.deep.equal({ kind: 'problem', reason: 'denied', problem });
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  it('is closed after it is read, and after it is refused', async () => {
    const file = join(folder, 'ten');
    for (const maxBytes of [9, 10]) await loadBoundedFile(file, maxBytes);
    const isOpen = (name: string): boolean => {
      try {
        return readlinkSync(`/proc/self/fd/${name}`) === file;
      } catch {
        // Closed since it was listed.
        return false;
      }
    };
    expect(readdirSync('/proc/self/fd').filter(isOpen)).to.deep.equal([]);
  });

  it('passes a fault of its reader on', async () => {
    const fault = new Error('a fault');
    const read = loadInSlices(join(folder, 'ten'), 10, () => {
      throw fault;
    });
    expect(await read.catch(error => error)).to.equal(fault);
  });

  // A pipe would block until somebody writes to it; a device may have no end.
  for (const name of ['.', '/dev/zero']) {
    it(`must be a regular one where only such are read: ${name}`, async () => {
      const path = name === '.' ? folder : name;
      const problem = { kind: 'problem', reason: 'not regular', problem: 'the file is not a regular file' };
      expect(await loadRegularFile(path, 10)).to.deep.equal(problem);
      expect(await loadInSlices(path, 10, () => undefined)).to.deep.equal(problem);
    });
  }
});
