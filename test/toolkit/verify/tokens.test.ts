// The accounts that `verify` reads from the token on standard input.
import { expect } from 'chai';
import { changed, configOf } from '../../../lab/config-file.ts';
import { token } from '../../../lab/token.ts';
import { readGivenToken } from '../../../src/toolkit/verify/tokens.ts';

const iss = 'https://auth.example.com';

const rows: readonly (readonly [string, Record<string, unknown>, Record<string, unknown>, readonly string[]])[] = [
  ['a string is one account', { acc: 'acme' }, {}, ['acme']],
  ['a list is several', { acc: ['acme', 'globex'] }, {}, ['acme', 'globex']],
  ['a number is its digits', { acc: 42 }, { 'issuers.0.allowIntegerClaims': true }, ['42']],
  ['a claim in another place', { org: 'acme' }, { 'issuers.0.claims': { acc: 'org' } }, ['acme']],
  ['the issuer may speak for some', { acc: ['acme', 'globex'] }, { 'issuers.0.accounts': ['acme'] }, ['acme']],
  ['one is outside the grammar', { acc: ['acme', 'a/b', 'a.b'] }, {}, ['acme']],
  ['accounts may have dots', { acc: 'acme.com' }, { 'account.dots': true }, ['acme.com']],
  ['the claim is missing', {}, {}, []],
  ['the claim has another type', { acc: { acme: true } }, {}, []],
  ['the issuer is unknown', { iss: 'https://other.test', acc: 'acme' }, {}, []],
];

describe('the token of verify', () => {
  for (const [what, claims, changes, accounts] of rows) {
    it(`has the accounts [${accounts.join(', ')}] where ${what}`, async () => {
      const config = await configOf(changed({ account: {}, ...changes }));
      const authorization = `Bearer ${await token({ claims: { acc: undefined, iss, ...claims } })}`;
      expect(readGivenToken(authorization, config)).to.deep.equal({ authorization, accounts });
    });
  }

  it('has no account where it is no token', async () => {
    expect(readGivenToken('Bearer x', await configOf(changed({})))).to.deep.equal({
      authorization: 'Bearer x',
      accounts: [],
    });
  });
});
