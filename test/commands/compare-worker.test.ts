// The thread that counts what a changed configuration allows more, as it was built, without a limit of time.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { builtFile } from '../../lab/built.ts';
import { changed } from '../../lab/config-file.ts';

const bytes = (changes: Readonly<Record<string, unknown>>): Uint8Array => Buffer.from(stringify(changed(changes)));

describe('the comparison at a reload', () => {
  const rows: readonly (readonly [what: string, old: object, now: object, widens: boolean])[] = [
    ['nothing changed', {}, {}, false],
    ['an application more', { apps: ['web'] }, { apps: ['web', 'tv'] }, true],
    ['an application less', { apps: ['web', 'tv'] }, { apps: ['web'] }, false],
    ['another key source, which cannot be ordered', {}, { 'issuers.0.jwksUrl': 'https://other.test/keys' }, true],
  ];
  for (const [what, old, now, widens] of rows) {
    it(`says ${widens} where ${what}`, async () => {
      const worker = new Worker(builtFile('compare-worker.js'), { workerData: [bytes({ ...old }), bytes({ ...now })] });
      const messages: unknown[] = [];
      worker.on('message', message => messages.push(message));
      await once(worker, 'exit');
      expect(messages.at(-1)).to.deep.equal({ widens, rows: widens ? 1 : 0 });
    });
  }
});
