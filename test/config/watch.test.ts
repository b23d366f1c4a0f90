// The configuration file watch on a real file system: edits by editors, Kubernetes volumes, and mounts without events.
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type FileWatch, type FileWatchOptions, startFileWatch } from '../../src/config/watch.ts';
import { loadBoundedFile } from '../../src/files/bounded-file.ts';
import { mountSecret } from '../support/secret-mount.ts';
import { until } from '../support/service.ts';

interface Rig {
  readonly watch: FileWatch;
  /** The reported contents, and the texts of read errors. */
  readonly reported: string[];
  readonly problems: string[];
  /** Resolves when this is the last reported content. */
  untilReported(content: string): Promise<void>;
}

const never = 3_600_000;

describe('configuration watch', () => {
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

  async function rig(path = file, options: Partial<FileWatchOptions> = {}): Promise<Rig> {
    const reported: string[] = [];
    const problems: string[] = [];
    const known = options.known ?? (await loadBoundedFile(path));
    const watch = await startFileWatch({
      file: path,
      known,
      onContent: async content => {
        reported.push(content.kind === 'bytes' ? Buffer.from(content.bytes).toString() : content.problem);
      },
      onProblem: problem => problems.push(problem),
      settleMs: 150,
      pollMs: 40,
      ...options,
    });
    ends.push(watch.stop);
    return { watch, reported, problems, untilReported: content => until(() => reported.at(-1) === content) };
  }

  /** Links to the file from another folder, which has no events for the file, as in a mount of a single file. */
  async function linkTo(target: string): Promise<string> {
    const link = join(folder, 'elsewhere', 'config.yaml');
    await mkdir(join(folder, 'elsewhere'));
    await symlink(target, link);
    return link;
  }

  const ways: readonly (readonly [
    name: string,
    pathTo: (path: string) => Promise<string> | string,
    options: Partial<FileWatchOptions>,
  ])[] = [
    ['with directory events and without polling', path => path, { pollMs: never }],
    ['without directory events', linkTo, {}],
  ];
  for (const [way, pathTo, options] of ways) {
    describe(way, () => {
      it('reports each swap of a Kubernetes volume', async () => {
        const mount = await mountSecret({ 'config.yaml': 'first' });
        ends.push(mount.remove);
        const { reported, untilReported } = await rig(await pathTo(mount.path('config.yaml')), options);
        for (const content of ['second', 'third']) {
          await mount.update({ 'config.yaml': content });
          await untilReported(content);
        }
        expect(reported).to.deep.equal(['second', 'third']);
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
          'a file that is deleted and created again',
          async content => {
            await unlink(file);
            await writeFile(file, content);
          },
        ],
      ];
      for (const [edited, edit] of edits) {
        it(`reports ${edited}, twice`, async () => {
          const { untilReported, reported } = await rig(await pathTo(file), options);
          for (const content of ['other', 'third']) {
            await edit(content);
            await untilReported(content);
          }
          expect(reported).to.deep.equal(['other', 'third']);
        });
      }
    });
  }

  it('reports a change from before the watch started', async () => {
    const known = await loadBoundedFile(file);
    await writeFile(file, 'meanwhile');
    const { reported, untilReported } = await rig(file, { known });
    await untilReported('meanwhile');
    expect(reported).to.deep.equal(['meanwhile']);
  });

  it('does not report a rewrite with the same content', async () => {
    const { reported, untilReported } = await rig();
    await writeFile(file, 'first');
    await writeFile(`${file}~`, 'first');
    await rename(`${file}~`, file);
    await writeFile(file, 'second');
    await untilReported('second');
    expect(reported).to.deep.equal(['second']);
  });

  it('reports the first content again after another one', async () => {
    const { reported, untilReported } = await rig();
    await writeFile(file, 'second');
    await untilReported('second');
    await writeFile(file, 'first');
    await untilReported('first');
    expect(reported).to.deep.equal(['second', 'first']);
  });

  it('waits until a file that is being written is complete (debounce)', async () => {
    const { reported, untilReported } = await rig(file, { settleMs: 1500 });
    await writeFile(file, 'half');
    await delay(200);
    await writeFile(file, 'half and the other half');
    await untilReported('half and the other half');
    expect(reported).to.deep.equal(['half and the other half']);
  });

  it('reports a deleted file, and its content when it exists again', async () => {
    const { reported, untilReported } = await rig();
    await unlink(file);
    await untilReported('the file does not exist');
    await writeFile(file, 'first');
    await untilReported('first');
    expect(reported).to.deep.equal(['the file does not exist', 'first']);
  });

  it('reports one content at a time, and only the newest of a burst', async () => {
    const reported: string[] = [];
    const open: (() => void)[] = [];
    await rig(file, {
      onContent: content => {
        reported.push(content.kind === 'bytes' ? Buffer.from(content.bytes).toString() : content.problem);
        return new Promise<void>(resolve => open.push(resolve));
      },
    });
    await writeFile(file, 'a');
    await until(() => reported.length === 1);
    const other = await rig();
    for (const content of ['b', 'c', 'd', 'e']) await writeFile(file, content);
    await other.untilReported('e');
    expect(reported).to.deep.equal(['a']);
    open[0]?.();
    await until(() => reported.length === 2);
    expect(reported).to.deep.equal(['a', 'e']);
  });

  it('reports at once on reportNow, even unchanged content', async () => {
    const { watch, reported } = await rig(file, { settleMs: never, pollMs: never });
    watch.reportNow();
    await until(() => reported.length === 1);
    await writeFile(file, 'second');
    watch.reportNow();
    await until(() => reported.length === 2);
    expect(reported).to.deep.equal(['first', 'second']);
  });

  it('does not repeat by itself what reportNow has reported', async () => {
    const { watch, reported, untilReported } = await rig();
    await writeFile(file, 'second');
    watch.reportNow();
    await untilReported('second');
    await writeFile(file, 'third');
    await untilReported('third');
    expect(reported).to.deep.equal(['second', 'third']);
  });

  it('reports a problem instead of reading a pipe', async () => {
    const pipe = join(folder, 'pipe');
    expect(spawnSync('mkfifo', [pipe]).status).to.equal(0);
    const { watch, problems, reported } = await rig(pipe, { known: { kind: 'bytes', bytes: Buffer.from('first') } });
    watch.reportNow();
    expect(problems).to.deep.equal(['not a regular file: a change needs a restart']);
    expect(reported).to.deep.equal([]);
  });

  it('reports an error when a pipe replaces the file', async () => {
    const { untilReported } = await rig();
    await unlink(file);
    expect(spawnSync('mkfifo', [file]).status).to.equal(0);
    await untilReported('the file is not a regular file');
  });

  it('reports nothing after it is stopped', async () => {
    const stopped = await rig();
    const living = await rig();
    stopped.watch.stop();
    await writeFile(file, 'second');
    await living.untilReported('second');
    stopped.watch.reportNow();
    await writeFile(file, 'third');
    await living.untilReported('third');
    expect(stopped.reported).to.deep.equal([]);
  });
});
