// The files that `npm run derive` makes from the code are up to date.
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { derivedFiles } from '../../tools/derive/derived-files.ts';

describe('derived files', function () {
  this.timeout(600_000); // the first run builds kustomize

  for (const { path, make } of derivedFiles) {
    it(`${path} is up to date: npm run derive`, async () => {
      expect(await readFile(new URL(`../../${path}`, import.meta.url), 'utf8')).to.equal(await make());
    });
  }
});
