// The file watch when content is refused, a mount hangs, or loading takes long.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../lab/until.ts';
import { fileSignature } from '../../src/files/file-signature.ts';
import { accepted, createFileWatch, fileVersions, type WatchOutcome } from '../../src/files/file-watch.ts';
import { createDeferred } from '../../src/keys/deferred.ts';
import { ends, file, folder, pollMs, rig, somePolls, startWatchLab, stopWatchLab } from './watch-lab.ts';

describe('file watch', () => {
  beforeEach(startWatchLab);
  afterEach(stopWatchLab);

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
      expect(slow.retries).to.deep.equal([false, false]);
    });
  });

  describe('after refused content', () => {
    it('does not apply it again until the file changes', async () => {
      const refusing = await rig();
      refusing.outcome = { kind: 'refused', alsoWatch: [{ file, signature: 'other' }] };
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

    it('applies it again where a file that it names has changed since', async () => {
      const refusing = await rig();
      const alsoWatch = [{ file: join(folder, 'ca.pem'), signature: 'before' }];
      refusing.outcome = { kind: 'refused', alsoWatch };
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
});
