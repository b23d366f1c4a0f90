// The watch that polls files: what it reports, and when it ends.

import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { createDeferred } from '../../src/deferred.ts';
import { createFileWatch } from '../../src/files/file-watch.ts';

const pollMs = 20;
// More than two polls, after which a stable change is reported.
const settledMs = 10 * pollMs;

describe('file watch', () => {
  const watchFiles = createFileWatch(pollMs);
  const ends: (() => void)[] = [];
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'account-authz-watch-'));
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) end();
    await rm(directory, { recursive: true });
  });

  /** Watches, and waits until the first signature is known. */
  async function watched(...files: readonly string[]) {
    const first = createDeferred<void>();
    const seen = { changes: 0 };
    ends.push(
      watchFiles(files, () => {
        seen.changes += 1;
        first.resolve();
      }),
    );
    await sleep(settledMs);
    expect(seen.changes).to.equal(0);
    return { seen, changed: first.promise };
  }

  it('reports a file that is replaced by a rename', async () => {
    const file = join(directory, 'replaced');
    await writeFile(file, 'one');
    const { changed } = await watched(file);
    await writeFile(`${file}.new`, 'one');
    await rename(`${file}.new`, file);
    await changed;
  });

  it('reports a file behind a symbolic link that Kubernetes swaps', async () => {
    for (const version of ['..1', '..2']) {
      await mkdir(join(directory, version));
      await writeFile(join(directory, version, 'file'), 'same');
    }
    await symlink('..1', join(directory, '..data'));
    await symlink('..data/file', join(directory, 'file'));
    const { changed } = await watched(join(directory, 'file'));
    await symlink('..2', join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    await changed;
  });

  it('reports a file that is created, and one that is removed', async () => {
    const created = join(directory, 'created');
    const removed = join(directory, 'removed');
    await writeFile(removed, 'one');
    const first = await watched(created);
    const second = await watched(removed);
    await writeFile(created, 'one');
    await rm(removed);
    await Promise.all([first.changed, second.changed]);
  });

  it('reports a file whose error code changes', async () => {
    const parent = join(directory, 'parent');
    const { changed } = await watched(join(parent, 'file'));
    await writeFile(parent, 'not a folder');
    await changed;
  });

  it('reports a change of one of several files once', async () => {
    const files = ['one', 'two'].map(name => join(directory, name));
    for (const file of files) await writeFile(file, 'old');
    const { seen, changed } = await watched(...files);
    await writeFile(files[1] ?? '', 'new text');
    await changed;
    await sleep(settledMs);
    expect(seen.changes).to.equal(1);
  });

  it('reports a change only after two polls have found the same signature', async () => {
    const file = join(directory, 'half-written');
    await writeFile(file, 'half');
    const { changed } = await watched(file);
    const writtenMs = performance.now();
    await writeFile(file, 'half and half');
    await changed;
    expect(performance.now() - writtenMs).to.be.at.least(0.9 * pollMs);
  });

  it('does not report other files of the directory', async () => {
    const file = join(directory, 'quiet');
    await writeFile(file, 'one');
    const { seen } = await watched(file);
    await writeFile(join(directory, 'neighbour'), 'one');
    await sleep(settledMs);
    expect(seen.changes).to.equal(0);
  });

  it('reports to each watch of the same file until that watch ends', async () => {
    const file = join(directory, 'shared');
    await writeFile(file, 'one');
    const { seen, changed } = await watched(file);
    const other = await watched(file);
    ends.pop()?.();
    await writeFile(file, 'another');
    await changed;
    expect([seen.changes, other.seen.changes]).to.deep.equal([1, 0]);
  });
});
