// Issuers with `{acc}`: where it may stand, which texts fit, and which issuers share one.
import { expect } from 'chai';
import fc from 'fast-check';
import { accountInIssuer, overlap, parseIssuerTemplate, someIssuer } from '../../src/authz/issuer-template.ts';
import { runs } from '../support/foreign-bytes.ts';

const exact = { dots: false, lower: false };
const realms = 'https://kc.test/realms/{acc}';
const tenants = 'https://id.test/{acc}/v2.0';
const hosts = 'https://{acc}.login.test/';

function accountIn(issuer: string, iss: string, grammar = exact): string | undefined {
  const template = parseIssuerTemplate(issuer);
  if (template === undefined || template === 'misplaced') throw new Error('no template');
  return accountInIssuer(template, iss, grammar);
}

describe('{acc} in an issuer', () => {
  const misplaced =
    '{acc} urn:{acc} https://{acc} https://{acc}/x https://x{acc}.test https://a.{acc}.test https://{acc}. https://{acc}:1 https://a.test/x{acc} https://a.test/{acc}x/y https://a.test?{acc} https://a.test/?x=/{acc} https://a.test/#/{acc} https://{acc}.test/{acc} https://a.test/{acc}/{acc} https:///{acc}'.split(
      ' ',
    );
  for (const text of misplaced) {
    it(`is misplaced in ${text}`, () => expect(parseIssuerTemplate(text)).to.equal('misplaced'));
  }

  it('is a whole segment of the path, or the whole first label of the host', () => {
    for (const text of [realms, tenants, hosts, 'https://a.test/{acc}?appid=x', 'http://{acc}.a.test:8080/x'])
      expect(parseIssuerTemplate(text), text).to.include.keys('before', 'after');
    for (const text of ['https://a.test', 'https://a.test/{tenantid}/v2.0'])
      expect(parseIssuerTemplate(text)).to.equal(undefined);
  });

  const rows: readonly (readonly [issuer: string, iss: string, account: string | undefined])[] = [
    [realms, 'https://kc.test/realms/acme', 'acme'],
    [realms, 'https://kc.test/realms/A_c~m-e', 'A_c~m-e'],
    [realms, 'https://kc.test/realms/', undefined],
    [realms, 'https://kc.test/realms', undefined],
    [realms, 'https://kc.test/realms/acme/', undefined],
    [realms, 'https://kc.test/realms/acme/x', undefined],
    [realms, 'https://kc.test/realms/a.b', undefined],
    [realms, 'https://kc.test/realms/..', undefined],
    [realms, 'https://KC.test/realms/acme', undefined],
    [realms, ' https://kc.test/realms/acme', undefined],
    [realms, realms, undefined],
    [tenants, 'https://id.test/acme/v2.0', 'acme'],
    [tenants, 'https://id.test//v2.0', undefined],
    [tenants, 'https://id.test/v2.0', undefined],
    [hosts, 'https://acme.login.test/', 'acme'],
    [hosts, 'https://Acme.login.test/', undefined],
    [hosts, 'https://a_b.login.test/', undefined],
    [hosts, 'https://a.b.login.test/', undefined],
    [hosts, 'https://evil.test/.login.test/', undefined],
    [hosts, 'https://-a.login.test/', undefined],
  ];
  for (const [issuer, iss, account] of rows) {
    it(`${account === undefined ? 'is no account' : `is ${account}`} in ${iss}, of ${issuer}`, () => {
      expect(accountIn(issuer, iss)).to.equal(account);
    });
  }

  it('follows account.dots and account.case', () => {
    expect(accountIn(realms, 'https://kc.test/realms/a.b', { dots: true, lower: false })).to.equal('a.b');
    expect(accountIn(realms, 'https://kc.test/realms/Acme', { dots: false, lower: true })).to.equal(undefined);
  });

  it('is an account that, put in, gives the text', () => {
    const part = fc.constantFrom(...'https://kc.test/realms/ acme /v2.0 https:// .login.test/ / a.b {acc}'.split(' '));
    const text = fc.oneof(
      fc.array(part, { maxLength: 5 }).map(parts => parts.join('')),
      fc.string({ unit: 'grapheme' }),
    );
    fc.assert(
      fc.property(fc.constantFrom(realms, tenants, hosts), text, (issuer, iss) => {
        const account = accountIn(issuer, iss);
        if (account !== undefined) expect(issuer.replace('{acc}', account)).to.equal(iss);
      }),
      runs(200),
    );
  });

  it('names a configured account for an example, or any', () => {
    expect(someIssuer(realms, ['*', '!x', 'acme'])).to.equal('https://kc.test/realms/acme');
    expect(someIssuer(realms, ['*'])).to.equal('https://kc.test/realms/account');
  });
});

describe('two issuers', () => {
  const rows: readonly (readonly [one: string, other: string, shared: boolean])[] = [
    [realms, 'https://kc.test/realms/acme', true],
    [realms, 'https://kc.test/realms/a.b', false],
    [realms, 'https://kc.test/realms', false],
    [realms, 'https://kc.test/realms/acme/x', false],
    [realms, 'https://kc.test/{acc}/acme', true],
    [realms, 'https://kc.test/{acc}/acme/x', false],
    [realms, 'https://{acc}.test/realms/x', true],
    [realms, 'https://{acc}.other.test/realms/x', false],
    [hosts, 'https://acme.login.test/', true],
    [hosts, 'https://login.test/', false],
    [hosts, 'https://a.b.login.test/', false],
    [hosts, 'https://{acc}.test/', false],
    [realms, realms, true],
    [realms, 'https://kc.test/realms/{acc}/x', false],
    ['https://a.test/{acc}?p=1', 'https://a.test/acme?p=1', true],
    ['https://a.test/{acc}?p=1', 'https://a.test/acme?p=2', false],
    ['https://a.test/{acc}?p=1', 'https://a.test/{acc}?p=1&q', false],
    ['https://a.test/{acc}/x?p=/y', 'https://a.test/v1/{acc}?p=/y', true],
    ['https://a.test/{acc}?p=/v1/b', 'https://a.test/v1/{acc}', false],
    ['https://{acc}.a.test/?p=/1', 'https://b.a.test/?p=/1', true],
    ['https://{acc}.a.test#/1', 'https://b.a.test/{acc}#/1', false],
    ['https://a.test', 'https://a.test', true],
    ['https://a.test', 'https://b.test', false],
  ];
  for (const [one, other, shared] of rows) {
    it(`${shared ? 'share' : 'do not share'} an iss: ${one} and ${other}`, () => {
      expect([overlap(one, other, exact), overlap(other, one, exact)]).to.deep.equal([shared, shared]);
    });
  }
});
