// The value of a header that must not be repeated.
import { expect } from 'chai';
import { singleHeader } from '../../src/authz/request-facts.ts';
import { facts } from '../support/facts.ts';

describe('singleHeader', () => {
  const rows: readonly (readonly [name: string, values: string[] | undefined, value: string | undefined])[] = [
    ['returns the value of a header with one value', ['a'], 'a'],
    ['returns nothing for two values', ['a', 'b'], undefined],
    ['returns nothing for an empty list of values', [], undefined],
    ['returns nothing for an absent header', undefined, undefined],
  ];
  for (const [name, values, value] of rows) {
    it(name, () => {
      const headers = values === undefined ? {} : { 'x-a': values };
      expect(singleHeader(facts({ headers }), 'x-a')).to.equal(value);
    });
  }
});
