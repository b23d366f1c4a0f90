// Points in time as revocation lists, policy tests and options write them.
import { expect } from 'chai';
import { parseDateTime, parseInstant } from '../../src/text/instant.ts';

describe('parseDateTime', () => {
  const good: readonly (readonly [text: string, seconds: number])[] = [
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01t00:00:01z', 1],
    ['1970-01-01T01:30:00+01:30', 0],
    ['1969-12-31T22:30:00-01:30', 0],
    ['1970-01-01T00:00:00-00:00', 0],
    ['1970-01-01T00:00:02.5Z', 2.5],
    ['1970-01-01T00:00:02.000250Z', 2.00025],
    ['2024-02-29T00:00:00Z', 1_709_164_800],
    ['0001-01-01T00:00:00Z', -62_135_596_800],
  ];
  for (const [text, seconds] of good) {
    it(`reads ${text}`, () => {
      expect(parseDateTime(text)).to.equal(seconds);
    });
  }

  const bad = [
    '',
    '0',
    'now',
    '1970-01-01',
    '1970-01-01T00:00:00',
    '1970-01-01T00:00Z',
    '1970-01-01 00:00:00Z',
    ...'2023-02-29T00:00:00Z 1970-13-01T00:00:00Z 1970-01-01T24:00:00Z 1970-01-01T00:00:60Z 1970-01-01T00:00:00.Z 1970-01-01T00:00:00+1:30 1970-01-01T00:00:00+0130 +001970-01-01T00:00:00Z'.split(
      ' ',
    ),
    ' 1970-01-01T00:00:00Z',
    '1970-01-01T00:00:00Z\n',
    '1970-01-01T00:00:00ZZ',
    '１970-01-01T00:00:00Z',
  ];
  for (const text of bad) {
    it(`rejects ${JSON.stringify(text)}`, () => {
      expect(parseDateTime(text)).to.equal(undefined);
    });
  }
});

describe('parseInstant', () => {
  const good: readonly (readonly [text: string, seconds: number])[] = [
    ['0', 0],
    ['1700000000', 1_700_000_000],
    ['999999999999', 999_999_999_999],
    ['1700000000.5', 1_700_000_000.5],
    ['1700000000.000001', 1_700_000_000.000001],
    ['1970-01-01T00:00:01Z', 1],
  ];
  for (const [text, seconds] of good) {
    it(`reads ${text}`, () => {
      expect(parseInstant(text)).to.equal(seconds);
    });
  }
  for (const text of [
    '',
    '-1',
    '1.',
    '.5',
    '1e9',
    '0x1',
    ' 1',
    '1 ',
    '1.1234567',
    '1000000000000',
    '1a',
    'a1',
    '1.a',
  ]) {
    it(`rejects ${JSON.stringify(text)}`, () => {
      expect(parseInstant(text)).to.equal(undefined);
    });
  }
});
