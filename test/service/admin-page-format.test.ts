// The texts of the admin page for times, counts and shares.
import { expect } from 'chai';
import {
  formatCount,
  formatDuration,
  formatInstant,
  formatShare,
  formatShortTime,
} from '../../src/service/admin-page-format.ts';

describe('formats of the admin page', () => {
  const rows: readonly (readonly [name: string, spelt: string, expected: string])[] = [
    ['zero seconds', formatDuration(0), '0 s'],
    ['a fraction of a second', formatDuration(0.9), '0 s'],
    ['a negative time', formatDuration(-5), '0 s'],
    ['seconds', formatDuration(59.9), '59 s'],
    ['exactly a minute', formatDuration(60), '1 min 0 s'],
    ['minutes and seconds', formatDuration(252), '4 min 12 s'],
    ['hours and minutes, without seconds', formatDuration(3 * 3600 + 5 * 60 + 59), '3 h 5 min'],
    ['an hour and a second', formatDuration(3601), '1 h 0 min'],
    ['days and hours', formatDuration(400 * 86_400 + 4 * 3600), '400 d 4 h'],
    ['microseconds', formatShortTime(0.00025), '250\u00a0µs'],
    ['milliseconds', formatShortTime(0.0025), '2.5\u00a0ms'],
    ['microseconds with a fraction', formatShortTime(0.000142137), '142\u00a0µs'],
    ['seconds with a fraction', formatShortTime(1.5), '1.5\u00a0s'],
    ['a count', formatCount(1_234_567), '1,234,567'],
    ['a share', formatShare(1, 3), '33.3%'],
    ['a full share', formatShare(7, 7), '100%'],
    ['an almost full share', formatShare(99_999, 100_000), '99.9%'],
    ['an instant', formatInstant(Date.UTC(2026, 10, 21, 12, 0, 3)), '2026-11-21 12:00:03 UTC'],
  ];
  for (const [name, spelt, expected] of rows) {
    it(`writes ${name} as ${expected}`, () => {
      expect(spelt).to.equal(expected);
    });
  }
});
