// The watch of the configuration file, on real folders: everything that editors, Kubernetes and mounts do to a file.
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
  /** What was told, as text; a problem in its words. */
  readonly told: string[];
  readonly problems: string[];
  /** Resolves once the last content told is this. */
  tells(content: string): Promise<void>;
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
    const told: string[] = [];
    const problems: string[] = [];
    const known = options.known ?? (await loadBoundedFile(path));
    const watch = await startFileWatch({
      file: path,
      known,
      onContent: async content => {
        told.push(content.kind === 'bytes' ? Buffer.from(content.bytes).toString() : content.problem);
      },
      onProblem: problem => problems.push(problem),
      settleMs: 150,
      pollMs: 40,
      ...options,
    });
    ends.push(watch.stop);
    return { watch, told, problems, tells: content => until(() => told.at(-1) === content) };
  }

  /** A link to it from a folder of its own, which tells nothing of what happens to the file: as in a mount of a single file. */
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
    ['by the events of the directory alone', path => path, { pollMs: never }],
    ['where the directory tells nothing', linkTo, {}],
  ];
  for (const [way, pathTo, options] of ways) {
    describe(way, () => {
      it('sees each swap of a Kubernetes volume', async () => {
        const mount = await mountSecret({ 'config.yaml': 'first' });
        ends.push(mount.remove);
        const { told, tells } = await rig(await pathTo(mount.path('config.yaml')), options);
        for (const content of ['second', 'third']) {
          await mount.update({ 'config.yaml': content });
          await tells(content);
        }
        expect(told).to.deep.equal(['second', 'third']);
      });

      const edits: readonly (readonly [name: string, edit: (content: string) => Promise<void>])[] = [
        ['an edit in place', content => writeFile(file, content)],
        [
          'a file renamed over it',
          async content => {
            await writeFile(`${file}~`, content);
            await rename(`${file}~`, file);
          },
        ],
        [
          'a file that is deleted and made again',
          async content => {
            await unlink(file);
            await writeFile(file, content);
          },
        ],
      ];
      for (const [edited, edit] of edits) {
        it(`sees ${edited}, twice`, async () => {
          const { tells, told } = await rig(await pathTo(file), options);
          for (const content of ['other', 'third']) {
            await edit(content);
            await tells(content);
          }
          expect(told).to.deep.equal(['other', 'third']);
        });
      }
    });
  }

  it('sees what changed before it began', async () => {
    const known = await loadBoundedFile(file);
    await writeFile(file, 'meanwhile');
    const { told, tells } = await rig(file, { known });
    await tells('meanwhile');
    expect(told).to.deep.equal(['meanwhile']);
  });

  it('tells nothing of a file that is written again with the same content', async () => {
    const { told, tells } = await rig();
    await writeFile(file, 'first');
    await writeFile(`${file}~`, 'first');
    await rename(`${file}~`, file);
    await writeFile(file, 'second');
    await tells('second');
    expect(told).to.deep.equal(['second']);
  });

  it('tells the first content again after another one', async () => {
    const { told, tells } = await rig();
    await writeFile(file, 'second');
    await tells('second');
    await writeFile(file, 'first');
    await tells('first');
    expect(told).to.deep.equal(['second', 'first']);
  });

  it('does not take half a file that is still being written', async () => {
    const { told, tells } = await rig(file, { settleMs: 1500 });
    await writeFile(file, 'half');
    await delay(200);
    await writeFile(file, 'half and the other half');
    await tells('half and the other half');
    expect(told).to.deep.equal(['half and the other half']);
  });

  it('tells that the file is gone, and its content when it is back', async () => {
    const { told, tells } = await rig();
    await unlink(file);
    await tells('the file does not exist');
    await writeFile(file, 'first');
    await tells('first');
    expect(told).to.deep.equal(['the file does not exist', 'first']);
  });

  it('tells one content at a time, and of a burst the newest alone', async () => {
    const told: string[] = [];
    const open: (() => void)[] = [];
    await rig(file, {
      onContent: content => {
        told.push(content.kind === 'bytes' ? Buffer.from(content.bytes).toString() : content.problem);
        return new Promise<void>(resolve => open.push(resolve));
      },
    });
    await writeFile(file, 'a');
    await until(() => told.length === 1);
    const beside = await rig();
    for (const content of ['b', 'c', 'd', 'e']) await writeFile(file, content);
    await beside.tells('e');
    expect(told).to.deep.equal(['a']);
    open[0]?.();
    await until(() => told.length === 2);
    expect(told).to.deep.equal(['a', 'e']);
  });

  it('tells at once when asked, the same content too', async () => {
    const { watch, told } = await rig(file, { settleMs: never, pollMs: never });
    watch.reportNow();
    await until(() => told.length === 1);
    await writeFile(file, 'second');
    watch.reportNow();
    await until(() => told.length === 2);
    expect(told).to.deep.equal(['first', 'second']);
  });

  it('does not tell again by itself what it told when asked', async () => {
    const { watch, told, tells } = await rig();
    await writeFile(file, 'second');
    watch.reportNow();
    await tells('second');
    await writeFile(file, 'third');
    await tells('third');
    expect(told).to.deep.equal(['second', 'third']);
  });

  it('does not read what is no regular file, and says so', async () => {
    const pipe = join(folder, 'pipe');
    expect(spawnSync('mkfifo', [pipe]).status).to.equal(0);
    const { watch, problems, told } = await rig(pipe, { known: { kind: 'bytes', bytes: Buffer.from('first') } });
    watch.reportNow();
    expect(problems).to.deep.equal(['not a regular file: a change needs a restart']);
    expect(told).to.deep.equal([]);
  });

  it('refuses a pipe that takes the place of the file', async () => {
    const { tells } = await rig();
    await unlink(file);
    expect(spawnSync('mkfifo', [file]).status).to.equal(0);
    await tells('the file is not a regular file');
  });

  it('tells nothing once it is stopped', async () => {
    const stopped = await rig();
    const living = await rig();
    stopped.watch.stop();
    await writeFile(file, 'second');
    await living.tells('second');
    stopped.watch.reportNow();
    await writeFile(file, 'third');
    await living.tells('third');
    expect(stopped.told).to.deep.equal([]);
  });
});
