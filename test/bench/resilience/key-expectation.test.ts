import { expect } from 'chai';
import {
  isPublished,
  type KeyRule,
  type KeyVerdict,
  permittedVerdicts,
} from '../../../bench/resilience/key-expectation.ts';
import type { IssuerHistory } from '../../../bench/resilience/watched-issuer.ts';

const rule: KeyRule = { maxAgeMs: 10_000, cooldownMs: 1000, waitMs: 150, settleMs: 100 };

const fetch = (atMs: number, kids: readonly string[], tookMs = 0) => ({
  askedMs: atMs,
  answeredMs: atMs + tookMs,
  kids: new Set(kids),
});

// Old until 2 s, then new; the issuer is away from 5 s to 20 s.
const history: IssuerHistory = {
  fetches: [fetch(0, ['old']), fetch(2000, ['new']), fetch(4000, ['new']), fetch(21_000, ['new'])],
  outages: [{ fromMs: 5000, toMs: 20_000 }],
  publications: [
    { atMs: -10, kids: new Set(['old']) },
    { atMs: 1500, kids: new Set(['new']) },
  ],
};

describe('what the rule of keys permits', () => {
  const rows: readonly (readonly [what: string, kid: string, sentMs: number, tookMs: number, ...KeyVerdict[]])[] = [
    ['before the first fetch', 'old', -50, 5, 'keys_unavailable'],
    ['a key of the set', 'old', 500, 5, 'allowed'],
    ['a key of the set, however long it takes', 'old', 500, 400, 'allowed'],
    ['a new key in the cooldown', 'new', 900, 5, 'token_invalid'],
    ['a new key in the cooldown, slowly', 'new', 600, 160, 'token_invalid', 'keys_unavailable'],
    ['a new key after the cooldown, without asking the issuer', 'new', 1300, 5],
    ['a new key after the cooldown, waiting', 'new', 1300, 160, 'keys_unavailable'],
    ['a new key that a fetch brings', 'new', 1990, 20, 'allowed'],
    ['an old key at its end', 'old', 1995, 10, 'allowed', 'token_invalid'],
    ['an old key while the answer is taken in', 'old', 2050, 5, 'allowed', 'token_invalid'],
    ['an old key that is gone', 'old', 2200, 5, 'token_invalid'],
    ['a new key in its set', 'new', 2200, 5, 'allowed'],
    ['a stranger while all is well', 'nobody', 4500, 5, 'token_invalid'],
    ['a stranger at the beginning of an outage', 'nobody', 5010, 5, 'token_invalid', 'keys_unavailable'],
    ['a stranger in an outage', 'nobody', 5500, 5, 'keys_unavailable'],
    ['a known key in an outage within the age', 'new', 13_000, 5, 'allowed'],
    ['a known key as it becomes too old', 'new', 13_950, 5, 'allowed', 'keys_unavailable'],
    ['a known key that is too old', 'new', 14_100, 5, 'keys_unavailable'],
    ['a stranger when all is too old', 'nobody', 14_100, 5, 'keys_unavailable'],
    ['a known key before the first fetch after an outage', 'new', 20_500, 5, 'keys_unavailable'],
    ['a known key that waits for that fetch', 'new', 20_990, 20, 'allowed', 'keys_unavailable'],
    ['a known key after recovery', 'new', 21_200, 5, 'allowed'],
    ['a stranger after recovery', 'nobody', 21_200, 5, 'token_invalid'],
  ];
  for (const [what, kid, sentMs, tookMs, ...permitted] of rows) {
    it(`${what}: ${permitted.join(' or ') || 'nothing'}`, () => {
      const verdicts = permittedVerdicts(history, rule, { kid, sentMs, answeredMs: sentMs + tookMs });
      expect([...verdicts].sort()).to.deep.equal([...permitted].sort());
    });
  }

  it('counts the age from the beginning of a slow fetch', () => {
    const slow: IssuerHistory = { ...history, fetches: [fetch(0, ['old'], 3000)], outages: [] };
    const asked = (sentMs: number) => permittedVerdicts(slow, rule, { kid: 'old', sentMs, answeredMs: sentMs + 1 });
    expect([...asked(9800)]).to.deep.equal(['allowed']);
    expect([...asked(10_100)]).to.deep.equal(['keys_unavailable']);
  });
});

describe('a published key', () => {
  for (const [what, kid, sentMs, answeredMs, published] of [
    ['is one that the issuer vouches for', 'old', 100, 200, true],
    ['is not one before its publication', 'new', 100, 200, false],
    ['is not one that the issuer drops meanwhile', 'old', 1490, 1510, false],
    ['is not one that the issuer has dropped', 'old', 1600, 1700, false],
    ['is the new one at once', 'new', 1501, 1600, true],
  ] as const) {
    it(what, () => {
      expect(isPublished(history, { kid, sentMs, answeredMs })).to.equal(published);
    });
  }
});
