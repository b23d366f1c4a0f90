// The grammar of route templates, and the problem reported for each invalid one.
import { expect } from 'chai';
import {
  literalStart,
  parseRouteTemplate,
  type TemplateSegment,
  toRouteTemplate,
} from '../../src/authz/route-template.ts';

const literal = (value: string): TemplateSegment => ({ kind: 'literal', value });
const account: TemplateSegment = { kind: 'account' };
const any = (name: string): TemplateSegment => ({ kind: 'any', name });

describe('parseRouteTemplate', () => {
  const good: readonly (readonly [text: string, segments: readonly TemplateSegment[], subtree: boolean])[] = [
    ['/a', [literal('a')], false],
    ['/a/*', [literal('a')], true],
    ['/api/subscriptions/*', [literal('api'), literal('subscriptions')], true],
    ['/accounts/:account_id/*', [literal('accounts'), account], true],
    ['/:account_id', [account], false],
    ['/:account_id/*', [account], true],
    ['/:account_id/:account_id', [account, account], false],
    ['/:other', [any('other')], false],
    ['/a/:_x9/:Z', [literal('a'), any('_x9'), any('Z')], false],
    ['/a:b/c:account_id', [literal('a:b'), literal('c:account_id')], false],
    ['/A-Z.a_z~0@9/...', [literal('A-Z.a_z~0@9'), literal('...')], false],
    [`/${'a'.repeat(2047)}`, [literal('a'.repeat(2047))], false],
  ];
  for (const [text, segments, subtree] of good) {
    it(`parses ${text.slice(0, 60)}`, () => {
      expect(parseRouteTemplate(text)).to.deep.equal({ kind: 'template', text, segments, subtree });
    });
  }

  const bad: Readonly<Record<string, readonly string[]>> = {
    'must start with "/"': ['', 'api', '*', ':account_id', 'https://a.test/b'],
    'must have at least one segment: "/" and "/*" alone would match every path': ['/', '/*', '//*'],
    'must not have an empty segment: remove "//", or "/" at the end': ['//', '//a', '/a//b', '/a/', '/a//*'],
    'must not have a "." or ".." segment: write the path without it': ['/.', '/a/..', '/a/./b', '/../*'],
    'must have "*" only as its whole last segment ("/*")': ['/a*', '/a/*/b', '/a/**', '/*/a', '/a/*x'],
    'must have only A-Z a-z 0-9 . _ ~ : @ - in a segment: paths are never decoded': [
      ...'/a%20b /a;b /a?b /a#b /a\\b /é /(a|b) /a+ /[a] /a$ /a{b} /{a'.split(' '),
      '/a b',
      '/a\n',
    ],
    'must write a parameter as :name, and that of the account as :account_id': ['/{a}', '/a/{account_id}/*'],
    'must have a parameter name of letters, digits and _ that starts with a letter or _':
      '/: /:9 /:a-b /:a.b /:a:b /:é /:account_id? /:*'.split(' '),
    'must write the account parameter as :account_id':
      '/:accountId /:account_Id /:ACCOUNT_ID /:accountid /:_account_id'.split(' '),
    'must not be longer than 2048 bytes: longer request paths are refused': [`/${'a'.repeat(2048)}`],
  };
  for (const text of ['/(a+)+$', '/(a|a)*', '/[a-z]+', '/a.*', '/:account_id(.*)', '/**/x']) {
    it(`P-054 refuses the pattern ${text}`, () => {
      expect(parseRouteTemplate(text).kind).to.equal('problem');
    });
  }

  for (const [problem, texts] of Object.entries(bad)) {
    for (const text of texts) {
      it(`reports that ${JSON.stringify(text.slice(0, 60))} ${problem}`, () => {
        const parsed = parseRouteTemplate(text);
        expect(parsed).to.deep.equal({ kind: 'problem', problem });
      });
    }
  }
});

describe('an account parameter of another name', () => {
  for (const name of ['Tenant', 'ten_ant', 'TENANT', '_tenant', 'accountId', 'ACCOUNT_ID']) {
    it(`refuses :${name}`, () => {
      const problem = 'must write the account parameter as :tenant';
      expect(parseRouteTemplate(`/a/:${name}`, 'tenant')).to.deep.equal({ kind: 'problem', problem });
    });
  }

  it('leaves :account_id to be any segment', () => {
    expect(parseRouteTemplate('/:tenant/:account_id', 'tenant')).to.deep.include({
      segments: [account, any('account_id')],
    });
  });
});

describe('literalStart', () => {
  const rows: readonly (readonly [text: string, start: string])[] = [
    ['/a/b', '/a/b'],
    ['/a/b/*', '/a/b'],
    ['/a/:account_id/b', '/a'],
    ['/a/b/:other/:account_id/*', '/a/b'],
    ['/:account_id/a', '/'],
  ];
  for (const [text, start] of rows) {
    it(`is ${start} for ${text}`, () => {
      expect(literalStart(toRouteTemplate(text))).to.equal(start);
    });
  }

  it('throws on an invalid template', () => {
    expect(() => toRouteTemplate('a')).to.throw('the configuration has an invalid route: it must start with "/"');
  });
});
