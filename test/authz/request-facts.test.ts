import { expect } from 'chai';
import { singleHeader } from '../../src/authz/request-facts.ts';
import { facts } from '../support/facts.ts';

describe('the one value of a header', () => {
  const rows: readonly (readonly [name: string, lines: string[] | undefined, value: string | undefined])[] = [
    ['its line', ['a'], 'a'],
    ['nothing where there are two', ['a', 'b'], undefined],
    ['nothing where there is none', [], undefined],
    ['nothing where it is absent', undefined, undefined],
  ];
  for (const [name, lines, value] of rows) {
    it(`is ${name}`, () => {
      const headers = lines === undefined ? {} : { 'x-a': lines };
      expect(singleHeader(facts({ headers }), 'x-a')).to.equal(value);
    });
  }
});
