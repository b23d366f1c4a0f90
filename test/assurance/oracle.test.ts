// The product answers generated requests as the oracle does, and the oracle shares no code with it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Comparison, compare } from './oracle-comparison.ts';

// A fixed seed, so that failures are reproducible; `npm run oracle` uses others, and more requests. ORACLE_CONFIGURATION repeats one difference.
const { ORACLE_SEED: seedText = '1', ORACLE_CONFIGURATION: only } = process.env;
const seed = Number(seedText);
const requests = Number(process.env.ORACLE_REQUESTS ?? (process.env.CI === undefined ? 30_000 : 60_000));

/** The minimum share of each answer in percent: each must occur often enough to prove something. */
const leastShares: Readonly<Record<string, number>> = {
  allowed: 13,
  request_invalid: 8,
  token_missing: 2,
  token_invalid: 15,
  token_expired: 1,
  token_revoked: 1,
  account_required: 0.5,
  role_forbidden: 2,
  scope_forbidden: 0.7,
  app_forbidden: 0.2,
  origin_forbidden: 0.2,
  account_mismatch: 1.5,
  route_unknown: 1,
  keys_unavailable: 1,
  revocation_unavailable: 0.3,
};

describe(`the oracle, ${requests} requests of seed ${seed}`, function () {
  this.timeout(Math.max(900_000, 10 * requests));
  let comparison: Comparison;

  before(async () => {
    comparison = await compare({ requests, seed, ...(only === undefined ? {} : { configuration: Number(only) }) });
  });

  it('gives the same answer as the product, to the last header', () => {
    expect(comparison.differences).to.deep.equal([]);
    expect(comparison.requests).to.equal(requests);
  });

  for (const [reason, least] of Object.entries(leastShares)) {
    it(`expects ${reason} for at least ${least} % of them`, () => {
      expect(((comparison.counts.get(reason) ?? 0) / requests) * 100).to.be.at.least(least);
    });
  }

  it('expects no other answers', () => {
    expect([...comparison.counts.keys()]).to.have.members(Object.keys(leastShares));
  });

  it('mostly compares requests with at most one change', () => {
    expect(comparison.nearlyGood / requests).to.be.above(0.7);
  });

  it('allows many with an unusual but valid part', () => {
    expect(comparison.allowedThoughChanged / requests).to.be.above(0.05);
  });

  it('covers each kind of change often', () => {
    const rare = [...comparison.changes].filter(([, count]) => count < requests / 2000).map(([name]) => name);
    expect(rare).to.deep.equal([]);
  });

  it('rarely permits more than one answer', () => {
    expect(comparison.open / requests).to.be.below(0.03);
  });
});

describe('the oracle itself', () => {
  it('shares no code with the product and uses no library', () => {
    const foreign = reachedFrom('decision.ts', 'answer.ts', 'request-bytes.ts').filter(
      specifier => !/^(?:node:|\.\/[a-z-]+\.ts$)/.test(specifier),
    );
    expect(foreign).to.deep.equal([]);
  });
});

const directory = fileURLToPath(new URL('./oracle/', import.meta.url));

/** Every import specifier of the oracle's files, transitively. */
function reachedFrom(...entries: readonly string[]): string[] {
  const files = [...entries];
  const specifiers: string[] = [];
  for (const file of files) {
    const text = readFileSync(join(directory, file), 'utf8');
    const found = Array.from(text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g), match => match[1] ?? '');
    specifiers.push(...found);
    const own = found.filter(specifier => specifier.startsWith('./')).map(specifier => specifier.slice(2));
    files.push(...own.filter(name => !files.includes(name)));
  }
  return specifiers;
}
