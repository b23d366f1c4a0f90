// The cache of verified tokens: what it returns, what it evicts, and its bound.
import { expect } from 'chai';
import fc from 'fast-check';
import type { Claimed, ClaimedByAccount } from '../../src/authz/principal.ts';
import { type Refusal, refusal } from '../../src/authz/refusal.ts';
import type { Claims } from '../../src/token/claims.ts';
import { createVerifiedTokens, type VerifiedToken, type VerifiedTokens } from '../../src/token/verified-tokens.ts';
import { account, identity } from '../support/facts.ts';
import { runs } from '../support/foreign-bytes.ts';

const claims = (exp: number): Claims => ({
  kind: 'claims',
  identity: identity(),
  certificate: undefined,
  exp,
  nbf: undefined,
  iat: undefined,
});
// The same number as exp and as key, so that a mix-up of two tokens is detected.
const verified = (key: number): VerifiedToken<number> => ({ claims: claims(key), key });
const cached = (tokens: VerifiedTokens<number>, token: string): VerifiedToken<number> | undefined => {
  const entry = tokens.get(token);
  return entry && { claims: entry.claims, key: entry.key };
};

describe('verified token cache', () => {
  it('returns a token until it is removed', () => {
    const tokens = createVerifiedTokens<number>(2);
    tokens.put('a', verified(1));
    expect(cached(tokens, 'a')).to.deep.equal(verified(1));
    expect(tokens.get('A')).to.equal(undefined);
    tokens.remove('a');
    expect(tokens.get('a')).to.equal(undefined);
    expect(tokens.size()).to.equal(0);
  });

  it('replaces the result of a token that is put again', () => {
    const tokens = createVerifiedTokens<number>(2);
    tokens.put('a', verified(1));
    tokens.put('a', verified(2));
    expect(cached(tokens, 'a')).to.deep.equal(verified(2));
    expect(tokens.size()).to.equal(1);
  });

  it('keeps nothing if its size is 0', () => {
    const tokens = createVerifiedTokens<number>(0);
    tokens.put('a', verified(1));
    expect(tokens.get('a')).to.equal(undefined);
  });

  it('keeps the tokens in use during a flood of 4,000 tokens that come once', () => {
    const tokens = createVerifiedTokens<number>(100);
    const hot = Array.from({ length: 20 }, (_, i) => `hot ${i}`);
    for (const token of hot) {
      tokens.put(token, verified(1));
      tokens.get(token);
    }
    let kept = 0;
    for (let i = 0; i < 4000; i += 1) {
      tokens.put(`once ${i}`, verified(2));
      const token = hot[i % hot.length] ?? '';
      if (tokens.get(token) === undefined) tokens.put(token, verified(1));
      else kept += 1;
    }
    expect(kept).to.equal(4000);
  });

  it('keeps at most 4 MiB, or 768 bytes for each of its tokens, as it estimates them', () => {
    const accounts = Array.from({ length: 1000 }, (_, i) => `account-${i}`);
    const large = { ...claims(1), identity: identity({ accounts }) };
    const tokens = createVerifiedTokens<number>(10_000);
    for (let i = 0; i < 2000; i += 1) tokens.put(`${i}`, { claims: large, key: i });
    expect(tokens.bytes()).to.be.within(7_600_000, 10_000 * 768);
    expect(tokens.size()).to.be.within(200, 1999);
    expect(tokens.get('1999')).to.not.equal(undefined);
    const few = createVerifiedTokens<number>(10);
    for (let i = 0; i < 10; i += 1) few.put(`${i}`, { claims: large, key: i });
    expect(few.size()).to.equal(10);
    for (let i = 0; i < 10; i += 1) few.remove(`${i}`);
    expect(few.bytes()).to.equal(0);
  });

  const bytesOf = (changes: Parameters<typeof identity>[0]): number => {
    const tokens = createVerifiedTokens<number>(1);
    tokens.put('a', { claims: { ...claims(1), identity: identity(changes) }, key: 1 });
    return tokens.bytes();
  };
  const byAccount = (...each: readonly (Claimed | Refusal)[]): ClaimedByAccount => ({
    kind: 'byAccount',
    claimed: new Map(each.map((claimed, i) => [account(`a${i}`), claimed])),
  });
  const shared = ['owner', 'member'];
  // A list takes 40 bytes, a place in it 8, an account its letters and a space.
  const estimates: readonly (readonly [name: string, changes: Parameters<typeof identity>[0], bytes: number])[] = [
    ['its uid', { uid: 'u-1234' }, 3],
    ['its jti', { jti: 'j-1' }, 3],
    ['what it forwards', { forwarded: ['a@b.test', undefined, '7'] }, 9],
    ['several accounts', { accounts: ['a1', 'acct2'] }, 40 + ' a1 acct2 '.length - 'acct1'.length],
    ['a list of roles', { role: ['owner', 'member'] }, 8],
    ['roles of each account', { scope: byAccount(['a'], ['b', 'c']) }, 2 * (40 + 4) + (40 + 8) + (40 + 2 * 8)],
    [
      'a wrong role of one account',
      { scope: byAccount(refusal('token_invalid', 'role has more than 250 members')) },
      40 + 4 + 40,
    ],
    ['a list that accounts share, once', { scope: byAccount(shared, shared) }, 40 + ' a0 a1 '.length + 40 + 2 * 8],
  ];
  for (const [name, changes, bytes] of estimates) {
    it(`estimates the bytes of ${name}`, () => {
      expect(bytesOf(changes) - bytesOf({})).to.equal(bytes);
    });
  }

  it('answers as the set and the map of a token do, about each account and about none of them', () => {
    const name = fc.stringMatching(/^[a-c-]{1,4}$/);
    const roles = fc.constantFrom(
      ['owner'],
      ['member', 'owner'],
      refusal('token_invalid', 'role has more than 250 members'),
    );
    fc.assert(
      fc.property(fc.dictionary(name, roles, { minKeys: 2 }), fc.array(name), (rolesOf, others) => {
        const names = Object.keys(rolesOf);
        const claimed = new Map(Object.entries(rolesOf).map(([each, of]) => [account(each), of]));
        const given = identity({ accounts: names, role: { kind: 'byAccount', claimed } });
        const tokens = createVerifiedTokens<number>(1);
        tokens.put('a', { claims: { ...claims(1), identity: given }, key: 1 });
        const { accounts, role } = tokens.get('a')?.claims.identity ?? {};
        if (typeof accounts !== 'object' || 'kind' in accounts || !role || !('kind' in role)) throw new Error('no set');
        expect([accounts.size, [...accounts]]).to.deep.equal([names.length, names]);
        expect(new Map(role.claimed)).to.deep.equal(claimed);
        for (const each of [...names, ...others].map(account)) {
          expect(accounts.has(each)).to.equal(claimed.has(each));
          expect(role.claimed.get(each)).to.equal(claimed.get(each));
        }
      }),
    );
  });

  it('keeps as many tokens as fit exactly', () => {
    const tokens = createVerifiedTokens<number>(4000);
    const uid = 'u'.repeat(4096 - bytesOf({ uid: '' }));
    const verified = { claims: { ...claims(1), identity: identity({ uid }) }, key: 1 };
    for (let i = 0; i < 4000; i += 1) tokens.put(`${i}`, verified);
    expect([tokens.size(), tokens.bytes()]).to.deep.equal([1024, 4 * 1024 * 1024]);
  });

  it('keeps as many ordinary tokens as its size', () => {
    const tokens = createVerifiedTokens<number>(10_000);
    const ordinary = {
      ...claims(1),
      identity: identity({ uid: 'u'.repeat(36), app: 'a'.repeat(20), acc: 'b'.repeat(36), jti: 'j'.repeat(36) }),
    };
    for (let i = 0; i < 10_000; i += 1) tokens.put(`${i}`, { claims: ordinary, key: i });
    expect(tokens.size()).to.equal(10_000);
  });

  it('evicts exactly what a plain model of SIEVE evicts', () => {
    const step = fc.record({ act: fc.constantFrom('get', 'put', 'put', 'remove'), token: fc.nat(8), key: fc.nat() });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(step, { maxLength: 120, size: 'max' }),
        (maxTokens, steps) => {
          const tokens = createVerifiedTokens<number>(maxTokens);
          const model = createModel(maxTokens);
          for (const { act, token, key } of steps) {
            if (act === 'put') for (const each of [tokens, model]) each.put(`${token}`, verified(key));
            else if (act === 'remove') for (const each of [tokens, model]) each.remove(`${token}`);
            else expect(tokens.get(`${token}`)?.key).to.equal(model.get(`${token}`)?.key);
            expect(tokens.size()).to.equal(model.size());
          }
          for (let token = 0; token <= 8; token += 1) {
            expect(tokens.get(`${token}`)?.key).to.equal(model.get(`${token}`)?.key);
          }
        },
      ),
      runs(80),
    );
  });
});

/** SIEVE (Zhang et al., NSDI 2024) over an array, the oldest first. */
function createModel(maxTokens: number): VerifiedTokens<number> {
  interface Entry {
    readonly token: string;
    verified: VerifiedToken<number>;
    used: boolean;
  }
  const entries: Entry[] = [];
  let hand: Entry | undefined;
  const find = (token: string) => entries.find(each => each.token === token);
  const drop = (entry: Entry): void => {
    const at = entries.indexOf(entry);
    if (hand === entry) hand = entries[at + 1];
    entries.splice(at, 1);
  };
  const evict = (): void => {
    let at = hand === undefined ? 0 : entries.indexOf(hand);
    for (let entry = entries[at]; entry?.used; entry = entries[at]) {
      entry.used = false;
      at = (at + 1) % entries.length;
    }
    hand = entries[at];
    if (hand !== undefined) drop(hand);
  };
  return {
    get(token) {
      const entry = find(token);
      if (entry !== undefined) entry.used = true;
      return entry?.verified;
    },
    put(token, result) {
      const known = find(token);
      if (known !== undefined) {
        known.verified = result;
        return;
      }
      if (entries.length >= maxTokens) evict();
      entries.push({ token, verified: result, used: false });
    },
    remove(token) {
      const entry = find(token);
      if (entry !== undefined) drop(entry);
    },
    bytes: () => 0,
    size: () => entries.length,
  };
}
