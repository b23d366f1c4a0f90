// The file watch: edits, links, swapped volumes, and when a change counts.
import { rename, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../lab/until.ts';
import { fileSignature } from '../../src/files/file-signature.ts';
import { accepted, createFileWatch, fileVersions, type WatchOutcome } from '../../src/files/file-watch.ts';
import { createDeferred } from '../../src/keys/deferred.ts';
import { mountSecret } from '../support/secret-mount.ts';
import { ends, file, folder, pollMs, rig, somePolls, startWatchLab, stopWatchLab } from './watch-lab.ts';

describe('file watch', () => {
  beforeEach(startWatchLab);
  afterEach(stopWatchLab);

  const edits: readonly (readonly [name: string, edit: (content: string) => Promise<void>])[] = [
    ['an in-place edit', content => writeFile(file, content)],
    [
      'an atomic rename over the file',
      async content => {
        await writeFile(`${file}~`, content);
        await rename(`${file}~`, file);
      },
    ],
    [
      'a file that is deleted and created again',
      async content => {
        await unlink(file);
        await writeFile(file, content);
      },
    ],
  ];
  for (const [edited, edit] of edits) {
    it(`applies ${edited}, twice`, async () => {
      const { untilApplied, applied } = await rig();
      for (const content of ['other', 'third']) {
        await edit(content);
        await untilApplied(content);
      }
      expect(applied).to.deep.equal(['other', 'third']);
    });
  }

  it('applies each swap of a Kubernetes volume', async () => {
    const mount = await mountSecret({ 'config.yaml': 'first' });
    ends.push(mount.remove);
    const { applied, untilApplied } = await rig(mount.path('config.yaml'));
    for (const content of ['second', 'third']) {
      await mount.update({ 'config.yaml': content });
      await untilApplied(content);
    }
    expect(applied).to.deep.equal(['second', 'third']);
  });

  it('applies a change behind a symbolic link', async () => {
    const link = join(folder, 'link.yaml');
    await symlink(file, link);
    const { untilApplied } = await rig(link);
    await writeFile(file, 'second');
    await untilApplied('second');
  });

  it('applies a change from before the watch started', async () => {
    const known = await fileVersions([file]);
    await writeFile(file, 'meanwhile');
    const { untilApplied } = await rig(file, { known });
    await untilApplied('meanwhile');
  });

  it('applies nothing while the files stay as they are, or as they were at the first poll', async () => {
    const { applied } = await rig();
    const other = await rig(file, { files: [file, join(folder, 'key.pem')], known: [] });
    await writeFile(join(folder, 'neighbour'), 'one');
    await somePolls();
    expect([applied, other.applied]).to.deep.equal([[], []]);
  });

  it('reports a deleted file, and its content when it exists again', async () => {
    const { applied, untilApplied } = await rig();
    await unlink(file);
    await untilApplied('the file does not exist');
    await writeFile(file, 'first');
    await untilApplied('first');
    expect(applied).to.deep.equal(['the file does not exist', 'first']);
  });

  it('applies a change only after two polls have found the same signature', async () => {
    const signatures = ['one', 'two', 'three', 'four', 'four'];
    const seen: string[] = [];
    const signatureOf = async (): Promise<string> => {
      const signature = signatures.shift() ?? 'four';
      seen.push(signature);
      return signature;
    };
    let seenAtLoad: readonly string[] = [];
    const load = async (): Promise<string> => {
      seenAtLoad = [...seen];
      return 'content';
    };
    const known = [{ file, signature: 'one' }];
    const { untilApplied } = await rig(file, { known, load }, createFileWatch({ pollMs, signatureOf }));
    await untilApplied('content');
    expect(seenAtLoad).to.deep.equal(['one', 'two', 'three', 'four', 'four']);
  });

  it('drops content of which one file has changed while it was loaded', async () => {
    let loads = 0;
    const files = [file, join(folder, 'key.pem')];
    const { applied, untilApplied } = await rig(file, {
      files,
      known: await fileVersions(files),
      async load() {
        loads += 1;
        if (loads === 1) await writeFile(file, 'the whole');
        return loads === 1 ? 'half' : 'the whole';
      },
    });
    await writeFile(file, 'changed');
    await untilApplied('the whole');
    expect(applied).to.deep.equal(['the whole']);
  });

  it('applies one content at a time, and only the newest of a burst', async () => {
    const first = createDeferred<WatchOutcome>();
    const slow = await rig();
    slow.outcome = first.promise;
    await writeFile(file, 'a');
    await slow.untilApplied('a');
    for (const content of ['b', 'c', 'd', 'e']) await writeFile(file, content);
    await somePolls();
    expect(slow.applied).to.deep.equal(['a']);
    slow.outcome = accepted;
    first.resolve(accepted);
    await slow.untilApplied('e');
    expect(slow.applied).to.deep.equal(['a', 'e']);
  });

  it('applies a change of one of several files once', async () => {
    const files = [file, join(folder, 'key.pem')];
    const { applied } = await rig(file, { files, known: await fileVersions(files) });
    await writeFile(join(folder, 'key.pem'), 'new');
    await until(() => applied.length > 0);
    await somePolls();
    expect(applied).to.deep.equal(['first']);
  });

  it('polls a file once for all its watches', async () => {
    const polls: string[] = [];
    const signatureOf = async (path: string): Promise<string> => {
      polls.push(path);
      return fileSignature(path);
    };
    const watchFiles = createFileWatch({ pollMs: 3_600_000, signatureOf });
    for (let i = 0; i < 3; i += 1) await rig(file, { known: [] }, watchFiles);
    expect(polls).to.deep.equal([file]);
  });

  it('polls a file no more once its last watch is stopped during a poll', async () => {
    const polled = createDeferred<string>();
    let polls = 0;
    const signatureOf = (): Promise<string> => {
      polls += 1;
      return polled.promise;
    };
    const { watch } = await rig(file, { known: [] }, createFileWatch({ pollMs, signatureOf }));
    watch.stop();
    polled.resolve('one');
    await somePolls();
    expect(polls).to.equal(1);
  });

  for (const meanwhile of ['', ', also where it is stopped meanwhile']) {
    it(`begins no other poll once content is applied${meanwhile}`, async () => {
      const looks: string[] = [];
      const signatureOf = async (path: string): Promise<string> => {
        looks.push(path);
        return 'one';
      };
      const watchFiles = createFileWatch({ pollMs: 3_600_000, signatureOf });
      const { watch } = await rig(
        file,
        {
          apply() {
            if (meanwhile !== '') watch.stop();
            return accepted;
          },
        },
        watchFiles,
      );
      watch.applyNow();
      await somePolls();
      // The first poll, and a look before and after the load.
      expect(looks).to.deep.equal([file, file, file]);
    });
  }

  it('applies nothing after it is stopped', async () => {
    const watchFiles = createFileWatch({ pollMs });
    const stopped = await rig(file, {}, watchFiles);
    const living = await rig(file, {}, watchFiles);
    stopped.watch.stop();
    await writeFile(file, 'second');
    await living.untilApplied('second');
    stopped.watch.applyNow();
    await somePolls();
    expect(stopped.applied).to.deep.equal([]);
  });
});
