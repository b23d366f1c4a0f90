// The warning about an old nghttp2: versions are compared by their numbers.
import { expect } from 'chai';
import { nghttp2Warning } from '../../src/service/nghttp2.ts';

describe('nghttp2 warning', () => {
  for (const [nghttp2, isOld] of [
    ['1.61.0', true],
    ['1.68.0', true],
    ['1.9.9', true],
    ['1.68', true],
    ['1.68.1', false],
    ['1.70.0', false],
    ['1.100.0', false],
    ['2.0.0', false],
    [undefined, true],
  ] as const) {
    it(`${isOld ? 'is given' : 'is not given'} for ${nghttp2 ?? 'a Node that names none'}`, () => {
      expect(nghttp2Warning({ ...process.versions, nghttp2 }) !== undefined).to.equal(isOld);
    });
  }
});
