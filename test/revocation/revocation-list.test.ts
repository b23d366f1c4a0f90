// The revocation list: which tokens an entry matches, and the cost of a lookup.
import { expect } from 'chai';
import fc from 'fast-check';
import { createRevocationList, type RevocableToken, selectorNames } from '../../src/revocation/revocation-list.ts';
import { principal } from '../support/facts.ts';
import { runs } from '../support/foreign-bytes.ts';

/** An entry of the revocation file. */
interface Entry {
  readonly iss?: string | undefined;
  readonly uid?: string | undefined;
  readonly acc?: string | undefined;
  readonly app?: string | undefined;
  readonly jti?: string | undefined;
  readonly sid?: string | undefined;
  readonly issuedBefore?: number | undefined;
  readonly expires?: number | undefined;
}

function listOf(...entries: readonly Entry[]) {
  const list = createRevocationList();
  for (const { issuedBefore = Infinity, expires = Infinity, ...values } of entries)
    list.add({ kind: 'revocation', values, issuedBefore, expires });
  return list;
}

const now = 1_700_000_000;

function tokenOf(changes: Partial<RevocableToken> = {}): RevocableToken {
  const { iss, uid, app, acc } = principal();
  return { iss, uid, app, acc, jti: undefined, sid: undefined, iat: undefined, ...changes };
}

describe('revocation list', () => {
  it('matches no token when it is empty', () => {
    expect(listOf().find(tokenOf({ jti: 'a', iat: now }), now)).to.equal(undefined);
    expect(listOf().entries).to.equal(0);
  });

  it('tells long values apart by their last character', () => {
    const long = 'j'.repeat(500);
    const list = listOf({ jti: `${long}1` }, { jti: '1'.repeat(42) });
    expect(list.find(tokenOf({ jti: `${long}1` }), now)).to.equal('jti');
    expect(list.find(tokenOf({ jti: '1'.repeat(42) }), now)).to.equal('jti');
    for (const other of [`${long}2`, long, '1'.repeat(41), '1'.repeat(43)])
      expect(list.find(tokenOf({ jti: other }), now)).to.equal(undefined);
  });

  for (const name of selectorNames) {
    it(`matches by ${name} alone, byte for byte, and reports ${name}`, () => {
      const token = tokenOf({ jti: 'Id-1', sid: 'Session-1' });
      const value = token[name] ?? '';
      expect(listOf({ [name]: value }).find(token, now)).to.equal(name);
      expect(listOf({ [name]: value.toUpperCase() }).find(token, now)).to.equal(undefined);
      expect(listOf({ [name]: `${value} ` }).find(token, now)).to.equal(undefined);
    });
  }

  it('matches a token only if every member of the entry is equal', () => {
    const list = listOf({ uid: 'alice', acc: 'acct1' });
    expect(list.find(tokenOf({ uid: 'alice' }), now)).to.equal('uid, acc');
    expect(list.find(tokenOf({ uid: 'alice', acc: 'acct2' }), now)).to.equal(undefined);
    expect(list.find(tokenOf({ uid: 'bob' }), now)).to.equal(undefined);
  });

  it('distinguishes two values from one value that contains the separator', () => {
    const list = listOf({ app: 'a', jti: 'b\0c' });
    expect(list.find(tokenOf({ jti: 'b\0c', app: 'a' }), now)).to.equal('app, jti');
    expect(listOf({ sid: 'a', jti: 'b\0c' }).find(tokenOf({ sid: 'a\0b', jti: 'c' }), now)).to.equal(undefined);
    expect(listOf({ acc: 'a', app: 'b', jti: 'c' }).find(tokenOf({ acc: 'a', jti: 'b\0c' }), now)).to.equal(undefined);
  });

  it('never matches a token without jti by an entry with jti', () => {
    expect(
      listOf({ jti: 'undefined' }, { uid: 'alice', jti: 'undefined' }, { uid: 'alice', jti: '' }).find(
        tokenOf({ uid: 'alice' }),
        now,
      ),
    ).to.equal(undefined);
  });

  it('matches no entry with acc if no account is addressed', () => {
    const token = tokenOf({ uid: 'alice', acc: undefined });
    expect(listOf({ acc: 'acct1' }, { uid: 'alice', acc: 'acct1' }, { acc: 'undefined' }).find(token, now)).to.equal(
      undefined,
    );
    expect(listOf({ acc: 'acct1' }, { uid: 'alice' }).find(token, now)).to.equal('uid');
  });

  it('matches tokens with an iat before issuedBefore or without an iat', () => {
    const list = listOf({ uid: 'alice', issuedBefore: now });
    expect(list.find(tokenOf({ uid: 'alice', iat: now - 1 }), now)).to.equal('uid, issuedBefore');
    expect(list.find(tokenOf({ uid: 'alice' }), now)).to.equal('uid, issuedBefore');
    expect(list.find(tokenOf({ uid: 'alice', iat: now }), now)).to.equal(undefined);
  });

  it('ignores an entry once it has expired', () => {
    const list = listOf({ uid: 'alice', expires: now });
    expect(list.find(tokenOf({ uid: 'alice' }), now - 0.001)).to.equal('uid');
    expect(list.find(tokenOf({ uid: 'alice' }), now)).to.equal(undefined);
    expect(list.entries).to.equal(1);
  });

  it('keeps an entry with an earlier issuedBefore that expires later', () => {
    const uid = 'alice';
    const list = listOf({ uid, issuedBefore: now, expires: now + 10 }, { uid, issuedBefore: now - 100 });
    const token = tokenOf({ uid: 'alice', iat: now - 50 });
    expect(list.find(token, now + 9)).to.equal('uid, issuedBefore');
    expect(list.find(token, now + 10)).to.equal(undefined);
    expect(list.find(tokenOf({ uid: 'alice', iat: now - 101 }), now + 10)).to.equal('uid, issuedBefore');
  });

  it('agrees with a linear search over all entries', () => {
    const some = fc.option(fc.constantFrom('a', 'b'), { nil: undefined });
    const at = fc.option(fc.integer({ min: 0, max: 6 }), { nil: undefined });
    const entry = fc
      .record({ iss: some, uid: some, acc: some, app: some, sid: some, jti: some, issuedBefore: at, expires: at })
      .filter(each => selectorNames.some(name => each[name] !== undefined));
    const value = fc.constantFrom('a', 'b', 'c');
    const claims = fc.record({ iss: value, uid: value, acc: value, app: value, sid: some, jti: some, iat: at });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 40, size: 'max' }), claims, (entries, token) => {
        const { iat } = token;
        const list = listOf(...entries);
        for (let at = -1; at <= 7; at += 1) {
          const matching = entries.filter(
            each =>
              selectorNames.every(name => each[name] === undefined || each[name] === token[name]) &&
              (each.issuedBefore === undefined || iat === undefined || iat < each.issuedBefore) &&
              (each.expires === undefined || at < each.expires),
          );
          const found = list.find(token, at);
          expect(found !== undefined, `at ${at}`).to.equal(matching.length > 0);
          if (found === undefined) continue;
          const named = (each: Entry): string => selectorNames.filter(name => each[name] !== undefined).join(', ');
          expect(matching.map(named)).to.include(found.replace(', issuedBefore', ''));
        }
      }),
      runs(150),
    );
  });

  it('decides correctly with ten thousand overlapping entries for one key', () => {
    const at = (i: number) => ({ uid: 'alice', issuedBefore: now - i, expires: now + i });
    const entries = Array.from({ length: 10_000 }, (_, i) => at(i));
    const list = listOf(...entries.slice(5000), ...entries.slice(0, 5000));
    for (const i of [0, 1, 4999, 5000, 9998]) {
      expect(list.find(tokenOf({ uid: 'alice', iat: now - i - 2 }), now + i)).to.equal('uid, issuedBefore');
      expect(list.find(tokenOf({ uid: 'alice', iat: now - i - 1 }), now + i)).to.equal(undefined);
    }
    expect(list.find(tokenOf({ uid: 'alice' }), now + 9999)).to.equal(undefined);
  });

  it('takes constant time whatever its length', () => {
    // Linear work would take 100,000 times as long: a bound of 100 is far from both.
    const nanosecondsPerLookup = (length: number): number => {
      const list = listOf(...Array.from({ length }, (_, i) => ({ jti: `id-${i}` })));
      const token = tokenOf({ jti: 'other' });
      const rounds = 20_000;
      for (let i = 0; i < rounds; i += 1) list.find(token, now);
      const start = process.hrtime.bigint();
      for (let i = 0; i < rounds; i += 1) list.find(token, now);
      return Number(process.hrtime.bigint() - start) / rounds;
    };
    expect(nanosecondsPerLookup(100_000)).to.be.below(100 * nanosecondsPerLookup(1));
  });
});
