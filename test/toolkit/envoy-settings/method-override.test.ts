// The pattern by which Envoy refuses a query that overrides the method covers each reading that the check refuses, and not much more.
import { expect } from 'chai';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { accountsInQuery, compileAccountParameters } from '../../../src/authz/places/query-place.ts';
import { methodOverridePattern } from '../../../src/toolkit/envoy-settings/method-override.ts';
import { runs } from '../../support/foreign-bytes.ts';

const pattern = RE2JS.compile(methodOverridePattern);
const noParameters = compileAccountParameters([]);
const isRefusedByCheck = (query: string): boolean => 'kind' in accountsInQuery(noParameters, query);
const isRefusedByEnvoy = (query: string): boolean => pattern.testExact(`/hooks/7?${query}`);

const twice = (text: string): string => text.replaceAll('%', '%25');
const encode = (character: string): string =>
  Array.from(Buffer.from(character), byte => `%${byte.toString(16).padStart(2, '0')}`).join('');
const fullWidth = (character: string): string =>
  /[a-zA-Z_]/.test(character) ? encode(String.fromCharCode(character.charCodeAt(0) + 0xfee0)) : character;
const unicode = (character: string): string => `%u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
const forms: readonly ((character: string) => string)[] = [
  character => character,
  character => character.toUpperCase(),
  encode,
  fullWidth,
  unicode,
  character => twice(encode(character)),
  character => encode(character).replace(/[0-9a-f]$/, last => encode(last)),
  character => twice(fullWidth(character)),
  character => encode(character).toUpperCase(),
];

const joint = fc.constantFrom(...'- _ . [ ] %5b %2E %252d %00 + %C2%A0 !'.split(' '), '', '', '', '', '');
const word = fc
  .constantFrom('_method', '.method', 'method', 'xhttpmethodoverride', 'x-http-method-override', 'x_http_method')
  .chain(name =>
    fc.tuple(...Array.from(name, character => fc.tuple(fc.constantFrom(...forms), joint, fc.constant(character)))),
  )
  .map(parts => parts.map(([form, between, character]) => form(character) + between).join(''));
const piece = fc.oneof(
  word,
  joint,
  fc.constantFrom('a', '=', '=1', '&', ';', '?', '%26', '%3D', '%3b', 'ж', '%D0%B6', 'payment'),
);
const query = fc.array(piece, { minLength: 1, maxLength: 5 }).map(parts => parts.join(''));

describe('the pattern of a query that overrides the method', () => {
  it('matches each query that the check would refuse', () => {
    fc.assert(
      fc.property(query, text => !isRefusedByCheck(text) || isRefusedByEnvoy(text)),
      runs(300),
    );
  });

  for (const text of '_method=DELETE %5Fmethod=DELETE %255Fmethod a=1;_method=DELETE a=1&_METHOD=x a[_method]=1 .method=1 =_method=1 a%26_method=1 X-HTTP-Method-Override=PUT x.http.method.override %u005fmethod=x %EF%BC%BFmethod=x _m%65thod %25%35fmethod _method%00x=1 _met-hod=1'.split(
    ' ',
  )) {
    it(`matches ${text}`, () => {
      expect(isRefusedByCheck(text)).to.equal(true);
      expect(isRefusedByEnvoy(text)).to.equal(true);
    });
  }

  for (const text of [
    '',
    ...'a=b&c=d method=x payment_method=card payment.method=card paymentMethod=1 a=_method next=/x?_method=1 next=%2Fx%3F_method%3D1 x-http-method=1 %D0%BC%D0%B5%D1%82%D0%BE%D0%B4%D1%8B=1 methods=a;b %E6%96%B9%E6%B3%95%E5%90%8D%E7%A7%B0=1 description=_method x_http_methods_overridden=1'.split(
      ' ',
    ),
  ]) {
    it(`does not match ${text || 'an empty query'}`, () => {
      expect(isRefusedByCheck(text)).to.equal(false);
      expect(isRefusedByEnvoy(text)).to.equal(false);
    });
  }

  it('fits into the program size of Envoy’s RE2 that render sets', () => {
    expect(pattern.programSize()).to.be.below(32_768 / 2);
  });
});
