// Which accounts an issuer may speak for.
import { expect } from 'chai';
import { compileIssuerAccounts, mayClaim } from '../../src/authz/issuer-accounts.ts';

describe('accounts of an issuer', () => {
  const rows: readonly (readonly [entries: readonly string[], covered: readonly string[], others: string[]])[] = [
    [['*'], ['a', '*', 'partner-1'], []],
    [['acme'], ['acme'], ['acme1', 'acm', 'ACME', 'acme*', '']],
    [['partner-*'], ['partner-', 'partner-1', 'partner-*'], ['partner', 'Partner-1', 'a-partner-1', '*']],
    [
      ['a-*', 'long-prefix-*', 'acme'],
      ['a-1', 'long-prefix-1', 'acme'],
      ['a', 'long-', 'b-1', 'acme-1'],
    ],
    [
      ['!partner-*', '*', '!acme'],
      ['a', 'acme1', 'partner'],
      ['partner-', 'partner-1', 'acme'],
    ],
    [['acme', '!*'], [], ['acme', '']],
  ];
  for (const [entries, covered, others] of rows) {
    it(`${JSON.stringify(entries)} cover ${covered.join(', ')} and not ${others.join(', ')}`, () => {
      const accounts = compileIssuerAccounts(entries);
      for (const account of covered) expect(mayClaim(accounts, account), account).to.equal(true);
      for (const account of others) expect(mayClaim(accounts, account), account).to.equal(false);
    });
  }

  it('cost a look-up for each length of a prefix', () => {
    expect(compileIssuerAccounts(['ab*', 'cd*', 'e*']).prefixLengths).to.deep.equal([2, 1]);
  });
});
