// The accounts that a query names, and the parameters that some server would take for one of them.
import { expect } from 'chai';
import fc from 'fast-check';
import { accountsInQuery, compileAccountParameters, isMethodOverride } from '../../../src/authz/places/query-place.ts';
import { runs } from '../../support/foreign-bytes.ts';

const parameters = compileAccountParameters(['account_id']);

describe('accountsInQuery', () => {
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
    ['account[idx]=acct2', []],
    ['account_id\u00e9=acct2', []],
    ['\u00e9account_id=acct2', []],
    ['a=account_id', []],
    ['a=.account_id', []],
    ['%zz=%&%&&==', []],
    ['a=!account_id', []],
    ['a=1%3Faccount_id=acct2', []],
    ['a=1%26account_id=acct2', []],
    ['a=1%3Baccount_id=acct2', []],
    ['a=b=account_id', []],
    ['a=1;b=account_id', []],
    ['a=1;b=account_id;c', []],
    ['a=1;account;id=acct2', []],
    ['%253Faccount%2525_id=acct2', []],
    ['account%252525_id=acct2', []],
    ['method=DELETE&_methods=1&my_method=1', []],
    ['a=_method&b=x-http-method-override', []],
    ['a.method=1&a%20method=2&+method=3', []],
    ['x-http-method=1&x-method-override=1', []],
  ];
  for (const [query, accounts] of found) {
    it(`finds ${JSON.stringify(accounts)} in ${JSON.stringify(query)}`, () => {
      expect(accountsInQuery(parameters, query)).to.deep.equal(accounts);
    });
  }

  // docs/explain.md names the parsers that read them as account_id.
  const refused: Readonly<Record<string, string>> = {
    'a value': 'account_id= account_id account_id=acct%31 account_id=acct+1 account_id=acct1;b=2',
    'another case': 'Account_ID=acct2 accountId=acct2 account_id=acct1&ACCOUNT_ID=acct2',
    'an encoded letter': '%61ccount_id=acct2 %2561ccount_id=acct2 %u0061ccount_id=acct2 account%5fid=acct2',
    'a plus or a space':
      '+account_id=acct2 ++account_id=acct2 account_id+=acct2 account_id++=acct2 %20account_id=acct2',
    'a control character': 'account_id%09=acct2 account_id%00=acct2 account_id%00x=acct2',
    'a sign for the underscore': 'account.id=acct2 account%20id=acct2 account[id=acct2 account-id=acct2',
    'an array or an object': 'account_id[]=acct2 account_id%5B%5D=acct2 account_id[a]=acct2 account_id.x=acct2',
    'brackets around':
      '[account_id]=acct2 %5Baccount_id%5D=acct2 [account_id][a]=acct2 []account_id=acct2 account_id]=acct2',
    'a semicolon': 'a=1;account_id=acct2 account_id;a=acct2 account;_id=acct2 a=1;b=2;account_id=acct2 a=1;account_id',
    'a question mark': '?account_id=acct2 account?id=acct2',
    'an exclamation mark':
      '!account_id=acct2 %21account_id=acct2 %2521account_id=acct2 \uff01account_id=acct2 !!account_id=a',
    'an exclamation mark and more':
      '!Account.ID=a !account_id[]=a a=1;!account_id=a +!account_id=a !account_id a!account_id=a',
    'an equals sign before': '=account_id=acct2 ==account_id=acct2 %3Daccount_id=acct2 =account_id account_id%3Dacct2',
    'an equals sign and a semicolon': 'a=1;=account_id=acct2 a;=account_id=acct2 ==;account_id=acct2',
    'a dot or an underscore beside': '.account_id=acct2 %2eaccount_id=acct2 account_id.=acct2 _account_id=acct2',
    'a member': 'filter.AccountId=acct2 filter[account_id]=acct2 a%5Baccount-id%5D=acct2',
    'an ampersand': 'account%26_id=acct2 a%26account_id=acct2',
    'several of them': 'ac%2Ecou%255bnt%00i+d=acct2',
    'letters outside ASCII': 'account_\u0131d=a \uff41ccount_id=a %EF%BD%81ccount_id=a account_%C4%B0d=a',
    'a name outside ASCII': '\uff41\uff43\uff43\uff4f\uff55\uff4e\uff54\uff3f\uff49\uff44=acct2',
    'white space outside ASCII': '%EF%BB%BFaccount_id=acct2 a%C2%A0account_id=acct2',
  };
  for (const [name, queries] of Object.entries(refused)) {
    for (const query of queries.split(' ')) {
      it(`refuses ${name}: ${query}`, () => {
        expect(accountsInQuery(parameters, query)).to.include({ kind: 'refusal', reason: 'request_invalid' });
      });
    }
  }
  for (const query of ['account\t_id=acct2', 'acc\r\nount_id=acct2', 'account\u3000id=acct2']) {
    it(`refuses white space in the name: ${JSON.stringify(query)}`, () => {
      expect(accountsInQuery(parameters, query)).to.include({ kind: 'refusal', reason: 'request_invalid' });
    });
  }

  it('reads a parameter whose name is one letter', () => {
    expect(accountsInQuery(compileAccountParameters(['a']), 'a=acct1')).to.deep.equal(['acct1']);
  });

  for (const query of ['ORG=acct2', 'Account_Id=acct2', 'tenant%2Eid=acct2']) {
    it(`refuses ${query} when it resembles one of several parameters`, () => {
      const several = compileAccountParameters(['tenant_id', 'org', 'account_id']);
      expect(accountsInQuery(several, query)).to.include({ detail: 'a look-alike of an account parameter' });
    });
  }

  it('refuses a capital sharp s, which case folding turns into ss', () => {
    expect(accountsInQuery(compileAccountParameters(['class']), 'cla\u1e9e=acct2')).to.include({ kind: 'refusal' });
  });

  const details: readonly (readonly [query: string, detail: string])[] = [
    ['account_id', 'an account parameter with an ambiguous value'],
    ['account_id=', 'an account parameter with an ambiguous value'],
    ['ACCOUNT_ID=acct1', 'a look-alike of an account parameter'],
  ];
  for (const [query, detail] of details) {
    it(`refuses ${query} with the detail "${detail}"`, () => {
      expect(accountsInQuery(parameters, query)).to.include({ detail });
    });
  }

  it('refuses a look-alike of a configured name with a dot', () => {
    const dotted = compileAccountParameters(['filter.account']);
    expect(accountsInQuery(dotted, 'filter.account=acct1')).to.deep.equal(['acct1']);
    expect(accountsInQuery(dotted, 'filterAccount=acct1')).to.include({ kind: 'refusal' });
  });

  const overrides = [
    '_method=DELETE a=1&_METHOD=DELETE %5Fmethod=DELETE %255fmethod=DELETE [_method]=DELETE a[_method]=DELETE ?_method',
    '=_method=DELETE a=1;_method=DELETE +_method=DELETE _m.ethod=DELETE _met-hod=DELETE .method=DELETE %2Emethod=DELETE',
    '_met\uff48od=DELETE x-http-method-override=DELETE X_HTTP_Method_Override=DELETE xHttpMethodOverride=DELETE',
    'a=1;x-http-method%2doverride=DELETE x.http.method.override=DELETE',
  ].flatMap(line => line.split(' '));
  for (const query of overrides) {
    it(`O-015 refuses ${query}, whatever is configured`, () => {
      for (const names of [[], ['account_id']]) {
        expect(accountsInQuery(compileAccountParameters(names), query)).to.include({
          reason: 'request_invalid',
          detail: 'a parameter that overrides the method',
        });
      }
    });
  }

  it('finds no account when no parameter is configured', () => {
    expect(accountsInQuery(compileAccountParameters([]), 'account_id=acct2&ACCOUNT_ID=')).to.deep.equal([]);
  });

  it('finds every account that URLSearchParams would, or refuses the query', () => {
    const piece = fc.constantFrom(...'account_id %61ccount_id a = & ; + %20 acct2 % [ ] . ? # %26'.split(' '));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
        const query = pieces.join('');
        const found = accountsInQuery(parameters, query);
        const taken = new URLSearchParams(query).getAll('account_id');
        expect('kind' in found ? taken : found).to.deep.equal(taken);
      }),
      runs(500),
    );
  });
});

describe('isMethodOverride', () => {
  const rows: Readonly<Record<string, boolean>> = {
    _method: true,
    _METHOD: true,
    'X-HTTP-Method-Override': true,
    method: false,
    account_id: false,
  };
  for (const [name, expected] of Object.entries(rows)) {
    it(`is ${expected} for ${name}`, () => {
      expect(isMethodOverride(name)).to.equal(expected);
    });
  }
});
