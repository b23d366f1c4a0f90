// How a claim source is written for people.
import { expect } from 'chai';
import { type ClaimSource, describeSource, textOf } from '../../src/token/claim-source.ts';

describe('description of a claim source', () => {
  const rows: readonly (readonly [source: ClaimSource, text: string, written: string])[] = [
    ['org_id', 'org_id', '"org_id"'],
    [{ keysOf: '/organization' }, '/organization', '{ keysOf: "/organization" }'],
    [{ keysOf: 'roles', having: '{acc}' }, 'roles', '{ keysOf: "roles", having: "{acc}" }'],
    [{ wordsOf: '/{acc}/scope' }, '/{acc}/scope', '{ wordsOf: "/{acc}/scope" }'],
  ];
  for (const [source, text, written] of rows) {
    it(`is ${written}`, () => {
      expect(describeSource(source)).to.equal(written);
      expect(textOf(source)).to.equal(text);
    });
  }
});
