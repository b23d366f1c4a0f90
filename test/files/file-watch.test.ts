// The file watch: edits, links, swapped volumes, mounts of one file, and when a change counts.
import { spawnSync } from 'node:child_process';
import { rename, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { createDeferred } from '../../lab/deferred.ts';
import { until } from '../../lab/until.ts';
import { loadBoundedFile } from '../../src/files/bounded-file.ts';
import {
  accepted,
  createFileWatch,
  digestOf,
  type FileWatch,
  fileSignature,
  fileVersions,
  type WatchedFiles,
  type WatchOutcome,
} from '../../src/files/file-watch.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { mountSecret } from '../support/secret-mount.ts';
import { useEnds } from '../support/use-ends.ts';

const pollMs = 20;

interface Rig {
  readonly watch: FileWatch;
  /** The applied contents, or the problems of unreadable files. */
  readonly applied: string[];
  readonly retries: boolean[];
  outcome: WatchOutcome | Promise<WatchOutcome>;
  untilApplied(content: string): Promise<void>;
}

describe('file watch', () => {
  const ends = useEnds();
  let folder: string;
  let file: string;
  let other: string;

  beforeEach(async () => {
    folder = freshFolder();
    file = join(folder, 'config.yaml');
    other = join(folder, 'ca.pem');
    await writeFile(file, 'first');
  });

  async function rig(
    path = file,
    options: Partial<WatchedFiles<string>> = {},
    watchFiles = createFileWatch({ pollMs }),
  ): Promise<Rig> {
    const rigged: Rig = {
      applied: [],
      retries: [],
      outcome: accepted,
      untilApplied: content => until(() => rigged.applied.at(-1) === content),
      watch: watchFiles<string>({
        files: [path],
        known: await fileVersions(options.files ?? [path]),
        async load() {
          const content = await loadBoundedFile(path);
          return content.kind === 'bytes' ? Buffer.from(content.bytes).toString() : content.problem;
        },
        apply(content, isRetry) {
          rigged.applied.push(content);
          rigged.retries.push(isRetry);
          return rigged.outcome;
        },
        ...options,
      }),
    };
    ends.push(rigged.watch.stop);
    return rigged;
  }

  /** Resolves after some polls of a fresh watch: whatever another watch would apply by now, it has. */
  async function somePolls(): Promise<void> {
    let polls = 0;
    const signatureOf = async (): Promise<string> => {
      polls += 1;
      return 'same';
    };
    const counting = createFileWatch({ pollMs, signatureOf });
    const { watch } = await rig(other, {}, counting);
    await until(() => polls > 6);
    watch.stop();
  }

  it('applies nothing where a file with the bytes in use was replaced before the first poll', async () => {
    const [version = { file, signature: '' }] = await fileVersions([file]);
    await writeFile(`${file}~`, 'first');
    await rename(`${file}~`, file);
    const known = [{ ...version, digest: digestOf(Buffer.from('first')) }];
    const { applied, untilApplied } = await rig(file, { known });
    await somePolls();
    expect(applied).to.deep.equal([]);
    await writeFile(file, 'second');
    await untilApplied('second');
  });

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
      'an edit of the same size and modification time',
      async content => {
        await writeFile(file, content.slice(0, 5));
        await utimes(file, 1, 1);
      },
    ],
  ];
  for (const [name, edit] of edits) {
    it(`applies ${name}, twice, and each only once`, async () => {
      const { untilApplied, applied } = await rig();
      for (const content of ['other', 'third']) {
        await edit(content);
        await untilApplied(content);
      }
      await somePolls();
      expect(applied).to.deep.equal(['other', 'third']);
    });
  }

  it('applies each swap of a Kubernetes volume, and not one with the same bytes', async () => {
    const mount = await mountSecret({ 'config.yaml': 'first' });
    const { applied, untilApplied } = await rig(mount.path('config.yaml'));
    // Until the first polls, the watch knows the signature of the file and not its bytes.
    await somePolls();
    for (const content of ['first', 'second', 'second', 'third']) {
      await mount.update({ 'config.yaml': content });
      await (content === 'first' ? somePolls() : untilApplied(content));
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

  it('applies nothing while the bytes stay the same, whatever their times, and on request neither', async () => {
    const { applied, watch } = await rig();
    await somePolls();
    await utimes(file, 1, 1);
    await somePolls();
    await writeFile(`${file}~`, 'first');
    await rename(`${file}~`, file);
    watch.applyNow();
    await writeFile(join(folder, 'neighbour'), 'one');
    await somePolls();
    expect(applied).to.deep.equal([]);
  });

  it('applies a change at once on request, and does not repeat it', async () => {
    const { watch, applied, untilApplied } = await rig(file, {}, createFileWatch({ pollMs: 3_600_000 }));
    await writeFile(file, 'second');
    watch.applyNow();
    await untilApplied('second');
    watch.applyNow();
    await somePolls();
    expect(applied).to.deep.equal(['second']);
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
    const known = [{ file, signature: 'none' }];
    const { untilApplied } = await rig(file, { known, load }, createFileWatch({ pollMs, signatureOf }));
    await untilApplied('content');
    // The last one is that after its bytes were compared.
    expect(seenAtLoad).to.deep.equal(['one', 'two', 'three', 'four', 'four', 'four']);
  });

  it('drops content of which one file has changed while it was loaded', async () => {
    let loads = 0;
    const { applied, untilApplied } = await rig(file, {
      files: [file, other],
      async load() {
        loads += 1;
        if (loads === 1) await writeFile(other, 'new');
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
    const { applied } = await rig(file, { files: [file, other] });
    await writeFile(other, 'new');
    await until(() => applied.length > 0);
    await somePolls();
    expect(applied).to.deep.equal(['first']);
  });

  for (const meanwhile of ['before a change', 'while content is applied']) {
    it(`applies nothing and polls no more once it is stopped ${meanwhile}`, async () => {
      let polls = 0;
      const signatureOf = (path: string): Promise<string> => {
        polls += 1;
        return fileSignature(path);
      };
      const stopped = await rig(file, {}, createFileWatch({ pollMs, signatureOf }));
      const applying = createDeferred<WatchOutcome>();
      stopped.outcome = applying.promise;
      if (meanwhile === 'while content is applied') {
        await writeFile(file, 'second');
        await stopped.untilApplied('second');
      }
      stopped.watch.stop();
      applying.resolve({ kind: 'retry' });
      const [before] = [polls];
      await writeFile(file, 'third');
      stopped.watch.applyNow();
      await somePolls();
      expect(stopped.applied).to.not.contain('third');
      expect(polls).to.be.at.most(before + 1);
    });
  }

  describe('after refused content', () => {
    it('does not apply it again until the file changes', async () => {
      const refusing = await rig();
      refusing.outcome = { kind: 'refused', alsoWatch: [{ file, signature: 'other' }] };
      await writeFile(file, 'bad');
      await refusing.untilApplied('bad');
      refusing.watch.applyNow();
      await somePolls();
      await writeFile(file, 'good');
      await refusing.untilApplied('good');
      expect(refusing.applied).to.deep.equal(['bad', 'good']);
    });

    it('applies it again when a file that it names arrives, and then no longer watches that file', async () => {
      const refusing = await rig();
      refusing.outcome = { kind: 'refused', alsoWatch: await fileVersions([other]) };
      await writeFile(file, 'names ca.pem');
      await refusing.untilApplied('names ca.pem');
      refusing.outcome = accepted;
      await somePolls();
      await writeFile(other, 'arrived');
      await until(() => refusing.applied.length === 2);
      await writeFile(other, 'changed');
      await somePolls();
      expect(refusing.applied).to.deep.equal(['names ca.pem', 'names ca.pem']);
    });

    it('applies it again where a file that it names has changed since', async () => {
      const refusing = await rig();
      refusing.outcome = { kind: 'refused', alsoWatch: [{ file: other, signature: 'before' }] };
      await writeFile(file, 'names ca.pem');
      await until(() => refusing.applied.length > 1);
    });

    it('applies it again at each poll after the outcome "retry", and says so', async () => {
      const retrying = await rig();
      retrying.outcome = { kind: 'retry' };
      await writeFile(file, 'locked');
      await until(() => retrying.applied.length > 2);
      retrying.outcome = accepted;
      const { length } = retrying.applied;
      await until(() => retrying.applied.length > length);
      await somePolls();
      expect(retrying.retries.slice(0, 3)).to.deep.equal([false, true, true]);
      expect(retrying.applied).to.have.lengthOf.at.most(length + 2);
    });
  });

  it('begins no poll while one hangs, and does not keep other watches waiting', async () => {
    const released = createDeferred<string>();
    let polls = 0;
    const signatureOf = (path: string): Promise<string> => {
      if (path === file) return fileSignature(path);
      polls += 1;
      return released.promise;
    };
    const watchFiles = createFileWatch({ pollMs, signatureOf });
    await rig(other, {}, watchFiles);
    const living = await rig(file, {}, watchFiles);
    await writeFile(file, 'second');
    await living.untilApplied('second');
    expect(polls).to.equal(1);
    released.resolve('released');
  });

  it('says once that a file is mounted alone and never changes, after its source was replaced', async function () {
    const source = join(folder, 'source');
    await Promise.all([source, `${source}~`, other].map(each => writeFile(each, 'mounted')));
    if (spawnSync('mount', ['--bind', source, file]).status !== 0) return this.skip();
    ends.push(() => expect(spawnSync('umount', [file]).status).to.equal(0));
    const alone: string[] = [];
    const watchFiles = createFileWatch({ pollMs, onMountedAlone: path => alone.push(path) });
    const rigs = [await rig(file, {}, watchFiles), await rig(file, {}, watchFiles)];
    await somePolls();
    expect(alone).to.deep.equal([]);
    await rename(`${source}~`, source);
    await until(() => alone.length > 0);
    rigs[0]?.watch.applyNow();
    await somePolls();
    expect({ alone, applied: rigs.map(({ applied }) => applied) }).to.deep.equal({ alone: [file], applied: [[], []] });
  });
});
