// What a running key ring keeps in files: the seed in cacheDirectory, and a jwksFile as its source.
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { createDeferred } from '../../lab/deferred.ts';
import type { TestIssuer } from '../../lab/test-issuer.ts';
import { createFileWatch, fileSignature } from '../../src/files/file-watch.ts';
import { KeyFileError } from '../../src/keys/key-ring.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { issuerWith, jwk, kindOf, loaded, ringLab, stopRings } from './ring-lab.ts';

describe('files of a key ring', () => {
  let directory: string;

  beforeEach(async () => {
    directory = freshFolder();
  });
  afterEach(stopRings);

  describe('seed', () => {
    const writeSeed = async (issuer: TestIssuer): Promise<void> => {
      const { ring } = await loaded({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      await ring.stop();
      await issuer.stop();
    };

    it('K-002 makes the last good key set usable while the issuer is down', async () => {
      const issuer = await issuerWith(['k1']);
      await writeSeed(issuer);
      const { ring, usable } = ringLab({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      await ring.start();
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(ring.status().state).to.equal('usable');
      expect(usable).to.deep.equal(['https://issuer']);
      expect(await kindOf(ring.find('unknown'))).to.equal('unavailable');
    });

    it('is confirmed on disk by a status 304', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      advance(1_000);
      ring.find('unknown');
      await refreshed(2);
      await ring.stop();
      const [name = ''] = await readdir(directory);
      const { confirmedAt } = JSON.parse(await readFile(join(directory, name), 'utf8'));
      expect(confirmedAt - Date.now()).to.be.within(990_000, 1_000_000);
    });

    it('causes one warning and no error if it cannot be written', async () => {
      const issuer = await issuerWith(['k1'], { etag: false });
      const file = join(directory, 'file');
      await writeFile(file, '');
      const { ring, advance, refreshed, warnings } = await loaded(
        { jwksUrl: issuer.jwksUrl },
        { cacheDirectory: file },
      );
      advance(6);
      ring.find('unknown');
      await refreshed(2);
      await ring.stop();
      expect(ring.current('k1')?.kid).to.equal('k1');
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.match(/^seed not written: /);
    });

    it('is being read when the ring is stopped, twice: nothing is fetched', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring } = ringLab({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      const starting = ring.start();
      await ring.stop();
      await starting;
      await ring.stop();
      expect(issuer.requests()).to.have.length(0);
    });
  });

  describe('jwksFile', () => {
    const replace = async (path: string, text: string): Promise<void> => {
      await writeFile(`${path}.new`, text);
      await rename(`${path}.new`, path);
    };

    it('is loaded once start has resolved', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const { ring } = ringLab({ jwksFile: path });
      await ring.start();
      expect(ring.current('k1')?.kid).to.equal('k1');
    });

    for (const [name, text, problem] of [
      ['that is missing', undefined, 'the file does not exist'],
      ['that is malformed', '{', 'not JSON'],
      ['without a usable key', '{"keys":[]}', 'no usable key: the list is empty'],
    ] as const) {
      it(`${name} fails the start with an error that names the file: ${problem}`, async () => {
        const path = join(directory, 'jwks.json');
        if (text !== undefined) await writeFile(path, text);
        const { ring } = ringLab({ jwksFile: path });
        const error: unknown = await ring.start().catch((reason: unknown) => reason);
        expect(error).to.be.instanceOf(KeyFileError);
        expect(ring.find('k1')).to.deep.equal({ kind: 'unavailable', detail: 'stopped' });
        expect(String(error)).to.equal(`Error: jwksFile of https://issuer: ${problem}: ${path}`);
      });
    }

    it('is never written to the cache directory', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const { ring } = await loaded({ jwksFile: path }, { cacheDirectory: join(directory, 'cache') });
      await ring.stop();
      expect(await readdir(directory)).to.deep.equal(['jwks.json']);
    });

    it('is reloaded when it changes, and a malformed version keeps the last good key set', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const times = { cooldownSeconds: 0.01 };
      const { ring, refreshed, refreshes } = await loaded({ jwksFile: path }, times, {}, 'running');
      await replace(path, '{');
      expect(await refreshed(2)).to.include({ result: 'failure', problem: 'not JSON', keys: 1 });
      expect(ring.current('k1')?.kid).to.equal('k1');
      await replace(path, JSON.stringify({ keys: [await jwk('k2')] }));
      // On a busy machine a retry may still read the malformed version.
      while ((await refreshed(refreshes.length + 1)).result === 'failure');
      expect(ring.current('k1')).to.equal(undefined);
      expect(ring.current('k2')?.kid).to.equal('k2');
    });

    it('is reloaded when it changes between the first read and the first poll of its watch', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const changed = createDeferred<void>();
      const signatureOf = (file: string): Promise<string> => changed.promise.then(() => fileSignature(file));
      const watchFiles = createFileWatch({ pollMs: 10, signatureOf });
      const times = { cooldownSeconds: 0.01 };
      const { ring, refreshed } = await loaded({ jwksFile: path }, times, {}, 'running', { watchFiles });
      expect(ring.current('k1')?.kid).to.equal('k1');
      await replace(path, JSON.stringify({ keys: [await jwk('k2')] }));
      changed.resolve();
      await refreshed(2);
      expect(ring.current('k2')?.kid).to.equal('k2');
    });

    it('is read again every refreshSeconds without a change event', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const times = { cooldownSeconds: 0.01, refreshSeconds: 0.1 };
      const { refreshed } = await loaded({ jwksFile: path }, times, {}, 'running');
      expect(await refreshed(3)).to.include({ result: 'success' });
    });
  });
});
