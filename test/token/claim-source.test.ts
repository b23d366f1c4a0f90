// How a claim source is written for people.
import { expect } from 'chai';
import { type ClaimSource, describeSource, type FieldSource, textsOf } from '../../src/token/claim-source.ts';

describe('description of a claim source', () => {
  const rows: readonly (readonly [source: ClaimSource | FieldSource, text: string, written: string])[] = [
    ['org_id', 'org_id', '"org_id"'],
    [['sub', '/id'], 'sub,/id', '["sub", "/id"]'],
    [{ keysOf: '/organization' }, '/organization', '{ keysOf: "/organization" }'],
    [{ keysOf: 'roles', having: '{acc}' }, 'roles', '{ keysOf: "roles", having: "{acc}" }'],
    [{ wordsOf: '/{acc}/scope' }, '/{acc}/scope', '{ wordsOf: "/{acc}/scope" }'],
  ];
  for (const [source, text, written] of rows) {
    it(`is ${written}`, () => {
      expect(describeSource(source)).to.equal(written);
      expect(textsOf(source).join()).to.equal(text);
    });
  }
});
