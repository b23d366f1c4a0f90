// Generated revocation lists: entries that select some of the generated tokens, and times around those of the tokens.
import type { RevocationEntry } from '../oracle/revocation.ts';
import { accounts, baseTime, tokenIds, uids } from './identities.ts';
import type { Random } from './random.ts';

export function createRevocations(random: Random, issuers: readonly string[]): readonly RevocationEntry[] {
  const entries = Array.from({ length: random.pick([0, 1, 3, 8, 20]) }, () => createEntry(random, issuers));
  // The same selectors with other times, so that several entries together decide.
  const again = entries
    .filter(() => random.chance(0.4))
    .map(({ issuedBefore: _before, expires: _expires, ...selectors }) => ({ ...selectors, ...createTimes(random) }));
  return [...entries, ...again];
}

function createEntry(random: Random, issuers: readonly string[]): RevocationEntry {
  // An entry with only a user, an account or an issuer matches many tokens, so there are fewer of these.
  const kind = random.weighted([
    [6, ['jti']],
    [2, ['uid']],
    [3, ['acc']],
    [3, ['uid', 'acc']],
    [2, ['acc', 'app']],
    [3, ['sid']],
    [2, ['iss', 'jti']],
    [1, ['sid', 'jti']],
    [2, ['iss', 'uid', 'acc', 'app']],
    [1, ['iss', 'uid', 'acc', 'app', 'sid', 'jti']],
    [1, ['iss', 'app']],
  ]);
  const values = {
    jti: random.pick(tokenIds),
    sid: random.pick(tokenIds),
    uid: random.pick(uids),
    acc: random.pick(accounts),
    app: random.pick(['web', 'mobile/2', 'Web', '*']),
    iss: random.pick([...issuers, 'https://gone.test']),
  };
  const selected = Object.fromEntries(Object.entries(values).filter(([name]) => kind.includes(name)));
  const isWide = kind.join() === 'iss,app' || kind.join() === 'uid';
  return { ...selected, ...(isWide || random.chance(0.5) ? createTimes(random) : {}) };
}

/** The times at which the tokens are issued: half of their lifetime before the base time. */
const issued = [45, 300, 1800, 43_200].map(seconds => baseTime - seconds);

function createTimes(random: Random): Pick<RevocationEntry, 'issuedBefore' | 'expires'> {
  const issuedBefore = random.pick([...issued, baseTime]) + random.pick([-1, 0, 0.5, 1, 60]);
  const expires = baseTime + random.pick([-3600, -1, 0, 0.25, 1, 600, 86_400]);
  return random.weighted([
    [4, { issuedBefore: spelling(random, issuedBefore) }],
    [3, { expires: spelling(random, expires) }],
    [4, { issuedBefore: spelling(random, issuedBefore), expires: spelling(random, expires) }],
  ]);
}

/** The instant in one of the forms of RFC 3339. */
function spelling(random: Random, seconds: number): string {
  const utc = new Date(seconds * 1000).toISOString();
  const east = `${new Date((seconds + 5400) * 1000).toISOString().slice(0, -1)}+01:30`;
  return random.pick([utc, utc, utc.toLowerCase(), east]);
}
