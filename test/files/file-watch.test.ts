// The watch on a real file system: edits by editors, volumes of Kubernetes, refused content, and a mount that hangs.
import { mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createDeferred } from '../../src/deferred.ts';
import { loadBoundedFile } from '../../src/files/bounded-file.ts';
import { fileSignature } from '../../src/files/file-signature.ts';
import {
  accepted,
  createFileWatch,
  type FileWatch,
  fileVersions,
  type WatchedFiles,
  type WatchOutcome,
} from '../../src/files/file-watch.ts';
import { mountSecret } from '../support/secret-mount.ts';
import { until } from '../support/until.ts';

const pollMs = 20;

describe('file watch', () => {
  const ends: (() => unknown)[] = [];
  let folder: string;
  let file: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-watch-'));
    file = join(folder, 'config.yaml');
    await writeFile(file, 'first');
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await rm(folder, { recursive: true, force: true });
  });

  interface Rig {
    readonly watch: FileWatch;
    /** The applied contents, or the problems of unreadable files. */
    readonly applied: string[];
    readonly retries: boolean[];
    outcome: WatchOutcome | Promise<WatchOutcome>;
    untilApplied(content: string): Promise<void>;
  }

  async function rig(
    path = file,
    options: Partial<WatchedFiles<string>> = {},
    watchFiles = createFileWatch({ pollMs }),
  ) {
    const rigged: Rig = {
      applied: [],
      retries: [],
      outcome: accepted,
      untilApplied: content => until(() => rigged.applied.at(-1) === content),
      watch: watchFiles<string>({
        files: [path],
        known: await fileVersions([path]),
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
    const done = createDeferred<void>();
    const counting = createFileWatch({
      pollMs,
      async signatureOf(path) {
        polls += 1;
        if (polls > 6) done.resolve();
        return fileSignature(path);
      },
    });
    const { stop } = counting({ files: [file], load: async () => undefined, apply: () => accepted });
    await done.promise;
    stop();
  }

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
    const other = await rig(file, { known: [] });
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
    const { applied } = await rig(
      file,
      { known: [{ file, signature: 'one' }] },
      createFileWatch({ pollMs, signatureOf }),
    );
    await until(() => applied.length > 0);
    // The fifth poll, and the look after the load.
    expect(seen.slice(0, 6)).to.deep.equal(['one', 'two', 'three', 'four', 'four', 'four']);
  });

  it('drops content that has changed while it was loaded', async () => {
    let loads = 0;
    const { applied, untilApplied } = await rig(file, {
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

  describe('applyNow', () => {
    it('applies at once, even unchanged content, and the watch does not repeat it', async () => {
      const { watch, applied, untilApplied } = await rig();
      watch.applyNow();
      await untilApplied('first');
      await writeFile(file, 'second');
      watch.applyNow();
      await untilApplied('second');
      await somePolls();
      expect(applied).to.deep.equal(['first', 'second']);
    });

    it('applies again after the content that is being applied', async () => {
      const first = createDeferred<WatchOutcome>();
      const slow = await rig();
      slow.outcome = first.promise;
      slow.watch.applyNow();
      await slow.untilApplied('first');
      slow.watch.applyNow();
      slow.outcome = accepted;
      first.resolve(accepted);
      await until(() => slow.applied.length === 2);
    });
  });

  describe('after refused content', () => {
    it('does not apply it again until the file changes', async () => {
      const refusing = await rig();
      refusing.outcome = { kind: 'refused', alsoWatch: [] };
      await writeFile(file, 'bad');
      await refusing.untilApplied('bad');
      await somePolls();
      await writeFile(file, 'good');
      await refusing.untilApplied('good');
      expect(refusing.applied).to.deep.equal(['bad', 'good']);
    });

    it('applies it again when a file that it names arrives, and then no longer watches that file', async () => {
      const named = join(folder, 'ca.pem');
      const refusing = await rig();
      refusing.outcome = { kind: 'refused', alsoWatch: await fileVersions([named]) };
      // Arrives between the attempt and the next poll.
      await writeFile(file, 'names ca.pem');
      await refusing.untilApplied('names ca.pem');
      refusing.outcome = accepted;
      await writeFile(named, 'arrived');
      await until(() => refusing.applied.length === 2);
      await writeFile(named, 'changed');
      await somePolls();
      expect(refusing.applied).to.deep.equal(['names ca.pem', 'names ca.pem']);
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

  describe('on a mount that hangs', () => {
    const hanging = () => {
      const released = createDeferred<void>();
      let polls = 0;
      const signatureOf = async (path: string): Promise<string> => {
        if (!path.endsWith('hangs')) return fileSignature(path);
        polls += 1;
        await released.promise;
        return 'released';
      };
      ends.push(released.resolve);
      return { polls: () => polls, watchFiles: createFileWatch({ pollMs, signatureOf }) };
    };

    it('begins no poll while one is in flight', async () => {
      const { polls, watchFiles } = hanging();
      await rig(join(folder, 'hangs'), { known: [] }, watchFiles);
      await somePolls();
      expect(polls()).to.equal(1);
    });

    it('still applies changes of the other files', async () => {
      const { watchFiles } = hanging();
      const files = [file, join(folder, 'hangs')];
      const both = await rig(file, {}, watchFiles);
      watchFiles({ files, load: async () => undefined, apply: () => accepted });
      await writeFile(file, 'second');
      await both.untilApplied('second');
    });
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
