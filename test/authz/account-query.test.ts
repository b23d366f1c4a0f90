import { expect } from 'chai';
import fc from 'fast-check';
import { accountsInQuery, compileAccountParameters } from '../../src/authz/account-query.ts';

const parameters = compileAccountParameters(['account_id']);

describe('account in the query', () => {
  const found: readonly (readonly [query: string, accounts: string[]])[] = [
    ['', []],
    ['a=1', []],
    ['account_id=acct1', ['acct1']],
    ['a=1&account_id=acct1&b', ['acct1']],
    ['account_id=acct1&account_id=acct2', ['acct1', 'acct2']],
    ['account_id=a=b', ['a=b']],
    ['account=acct2', []],
    ['xaccount_id=acct2', []],
    ['account_idx=acct2', []],
    ['account_idx', []],
    ['account-id=acct2', []],
    ['a=account_id', []],
    ['%zz=%&%&&==', []],
    ['a[account_id]=acct2', []],
    ['a=!account_id', []],
    ['a!account_id=acct2', []],
    ['a=1%3Faccount_id=acct2', []],
    ['a=%26xaccount_id=acct2', []],
  ];
  for (const [query, accounts] of found) {
    it(`finds ${JSON.stringify(accounts)} in ${JSON.stringify(query)}`, () => {
      expect(accountsInQuery(parameters, query)).to.deep.equal(accounts);
    });
  }

  const refused: readonly (readonly [name: string, query: string])[] = [
    ['an empty value', 'account_id='],
    ['no value', 'account_id'],
    ['a percent sign in the value', 'account_id=acct%31'],
    ['a plus in the value', 'account_id=acct+1'],
    ['a semicolon in the value', 'account_id=acct1;b=2'],
    ['another case', 'Account_ID=acct2'],
    ['one letter encoded', '%61ccount_id=acct2'],
    ['one letter encoded twice', '%2561ccount_id=acct2'],
    ['one letter encoded in the way of IIS', '%u0061ccount_id=acct2'],
    ['the underscore encoded', 'account%5fid=acct2'],
    ['a plus in front', '+account_id=acct2'],
    ['two pluses in front', '++account_id=acct2'],
    ['a plus behind', 'account_id+=acct2'],
    ['two pluses behind', 'account_id++=acct2'],
    ['an encoded space in front', '%20account_id=acct2'],
    ['an encoded tab behind', 'account_id%09=acct2'],
    ['an encoded NUL behind', 'account_id%00=acct2'],
    ['an encoded NUL and more behind', 'account_id%00x=acct2'],
    ['a dot for the underscore', 'account.id=acct2'],
    ['a space for the underscore', 'account%20id=acct2'],
    ['an array', 'account_id[]=acct2'],
    ['an encoded array', 'account_id%5B%5D=acct2'],
    ['a member', 'account_id[a]=acct2'],
    ['brackets around it, which qs takes off', '[account_id]=acct2'],
    ['encoded brackets around it', '%5Baccount_id%5D=acct2'],
    ['brackets around it and a member', '[account_id][a]=acct2'],
    ['brackets in front of it, which Rack 2 takes off', '[]account_id=acct2'],
    ['a bracket behind it, which Rack 2 takes off', 'account_id]=acct2'],
    ['a tab in it, which URL takes out', 'account\t_id=acct2'],
    ['line ends in it, which URL takes out', 'acc\r\nount_id=acct2'],
    ['an open bracket for the underscore', 'account[id=acct2'],
    ['a semicolon in front', 'a=1;account_id=acct2'],
    ['a name before a semicolon', 'account_id;a=acct2'],
    ['a second question mark', '?account_id=acct2'],
    ['an exclamation mark in front, which marks a default in Spring', '!account_id=acct2'],
    ['an encoded exclamation mark in front', '%21account_id=acct2'],
    ['a twice encoded exclamation mark in front', '%2521account_id=acct2'],
    ['a full-width exclamation mark in front', '\uff01account_id=acct2'],
    ['an exclamation mark before another case', '!Account.ID=acct2'],
    ['an exclamation mark before an array', '!account_id[]=acct2'],
    ['an exclamation mark after a semicolon', 'a=1;!account_id=acct2'],
    ['an exclamation mark after a space', '+!account_id=acct2'],
    ['two exclamation marks', '!!account_id=acct2'],
    ['an exclamation mark before a name without a value', '!account_id'],
    ['an encoded ampersand in a value', 'x=1%26account_id=acct2'],
    ['an encoded ampersand and equals sign in a value', 'x=1%26account_id%3Dacct2'],
    ['a twice encoded ampersand in a value', 'x=1%2526account_id=acct2'],
    ['an encoded semicolon in a value', 'x=1%3Baccount_id=acct2'],
    ['an encoded ampersand in the way of IIS', 'x=1%u0026account_id=acct2'],
    ['an encoded ampersand before a look-alike', 'x=1%26!ACCOUNT%2eid[]=acct2'],
    ['a dotless i, which is I in capitals', 'account_\u0131d=acct2'],
    ['full-width letters', '\uff41ccount_id=acct2'],
    ['encoded full-width letters', '%EF%BD%81ccount_id=acct2'],
    ['an encoded byte order mark in front', '%EF%BB%BFaccount_id=acct2'],
    ['an encoded equals sign', 'account_id%3Dacct2'],
    ['a good one beside it', 'account_id=acct1&ACCOUNT_ID=acct2'],
  ];
  for (const [name, query] of refused) {
    it(`refuses ${name}`, () => {
      expect(accountsInQuery(parameters, query)).to.include({ kind: 'refusal', reason: 'request_invalid' });
    });
  }

  it('reads a parameter whose name is one letter', () => {
    expect(accountsInQuery(compileAccountParameters(['a']), 'a=acct1')).to.deep.equal(['acct1']);
  });

  it('refuses a capital sharp s, which is ss in small letters and capitals', () => {
    expect(accountsInQuery(compileAccountParameters(['class']), 'cla\u1e9e=acct2')).to.include({ kind: 'refusal' });
  });

  const details: readonly (readonly [query: string, detail: string])[] = [
    ['account_id', 'an account parameter with an ambiguous value'],
    ['account_id=', 'an account parameter with an ambiguous value'],
    ['ACCOUNT_ID=acct1', 'a look-alike of an account parameter'],
  ];
  for (const [query, detail] of details) {
    it(`tells the log of ${query} that there is ${detail}`, () => {
      expect(accountsInQuery(parameters, query)).to.include({ detail });
    });
  }

  it('takes nothing for an account where none is configured', () => {
    expect(accountsInQuery(compileAccountParameters([]), 'account_id=acct2&ACCOUNT_ID=')).to.deep.equal([]);
  });

  it('reads a query in time that is linear in its length', () => {
    const patterns = [
      '+',
      '!',
      '[',
      ']',
      ' ',
      '.',
      ';',
      '+;',
      '%00;',
      '%61',
      '%2561',
      '%u0061',
      '\u0301\u0316',
      '\ufdfa',
    ];
    for (const pattern of patterns) {
      for (const [before, after] of [
        ['%41', 'a['],
        ['account_id', 'x'],
      ]) {
        const query = (length: number): string => `${before}${pattern.repeat(length / pattern.length)}${after}=1`;
        const quickest = (length: number): number =>
          Math.min(...Array.from({ length: 9 }, () => elapsedMs(() => accountsInQuery(parameters, query(length)))));
        // Sixteen times the length; a quadratic step would make it 256 times as long.
        expect(quickest(16 * 8192), JSON.stringify(pattern)).to.be.below(150 * Math.max(quickest(8192), 1));
      }
    }
  });

  it('leaves no parameter that URLSearchParams would take for the account', () => {
    const piece = fc.constantFrom(
      'account_id',
      '%61ccount_id',
      'a',
      '=',
      '&',
      ';',
      '+',
      '%20',
      'acct2',
      '%',
      '[',
      ']',
      '.',
      '?',
      '#',
      '%26',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
        const query = pieces.join('');
        const found = accountsInQuery(parameters, query);
        const taken = new URLSearchParams(query).getAll('account_id');
        expect('kind' in found ? taken : found).to.deep.equal(taken);
      }),
      { numRuns: 2000 },
    );
  });
});

/** Of the processor, not of the clock: other processes may hold the machine. */
function elapsedMs(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  return process.cpuUsage(before).user / 1000;
}
