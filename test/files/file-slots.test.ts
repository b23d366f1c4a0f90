// The bound of file operations in flight, with files that block: pipes without a writer.
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadBoundedFile } from '../../src/files/bounded-file.ts';
import { withFileSlot } from '../../src/files/file-slots.ts';
import { createDeferred } from '../../src/keys/deferred.ts';

describe('file slots', () => {
  it('run one operation at a time in each directory, in order, and two in all', async () => {
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const operations = ['/a/1', '/a/2', '/b/1', '/c/1'].map(file =>
      withFileSlot(file, async () => {
        begun.push(file);
        const { promise, resolve } = createDeferred<void>();
        ends.set(file, resolve);
        await promise;
      }),
    );
    const end = async (file: string): Promise<void> => {
      ends.get(file)?.();
      await new Promise(resolve => setImmediate(resolve));
    };
    expect(begun).to.deep.equal([]);
    await end('none');
    expect(begun).to.deep.equal(['/a/1', '/b/1']);
    await end('/b/1');
    expect(begun).to.deep.equal(['/a/1', '/b/1', '/c/1']);
    await end('/a/1');
    expect(begun).to.deep.equal(['/a/1', '/b/1', '/c/1', '/a/2']);
    await end('/a/2');
    await end('/c/1');
    await Promise.all(operations);
  });

  it('are free again after an operation that failed', async () => {
    const failed = withFileSlot('/a/1', () => Promise.reject(new Error('failed')));
    expect(await failed.catch((error: Error) => error.message)).to.equal('failed');
    expect(await withFileSlot('/a/1', async () => 'next')).to.equal('next');
  });

  it('keep the thread pool and other directories usable while a directory hangs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'file-slots-'));
    const hung = join(folder, 'hung');
    await mkdir(hung);
    await writeFile(join(folder, 'other'), 'other');
    const pipes = Array.from({ length: 6 }, (_, i) => join(hung, `pipe${i}`));
    expect(spawnSync('mkfifo', pipes).status).to.equal(0);
    const reading = pipes.map(pipe => loadBoundedFile(pipe));
    try {
      // With six threads taken, neither would end: Node's pool has four.
      expect((await readFile(join(folder, 'other'))).toString()).to.equal('other');
      expect(await loadBoundedFile(join(folder, 'other'))).to.include({ kind: 'bytes' });
    } finally {
      for (const pipe of pipes) await writeFile(pipe, 'ends');
      await Promise.all(reading);
      await rm(folder, { recursive: true });
    }
  });
});
