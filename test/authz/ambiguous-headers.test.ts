// The headers that change how an upstream reads what account-authz has checked.
import { expect } from 'chai';
import { refuseAmbiguousHeaders } from '../../src/authz/ambiguous-headers.ts';
import { headerPlace } from '../../src/authz/places/header-place.ts';
import { queryPlace } from '../../src/authz/places/query-place.ts';
import { compileTokenPlaces } from '../../src/authz/token-places.ts';
import { facts } from '../support/facts.ts';

const grammar = { dots: false, lower: false };
const judge = (headers: Record<string, string | string[]>, query: readonly string[] = ['account_id']) =>
  refuseAmbiguousHeaders(
    {
      identityPrefix: 'x-auth-',
      places: [headerPlace(['x-account-id'], grammar), queryPlace(query, grammar)],
      tokenPlaces: compileTokenPlaces({ from: ['authorization', { header: 'x-token' }], forward: false }),
    },
    facts({ headers }).headers,
  );

describe('refuseAmbiguousHeaders', () => {
  const nominating: readonly (string | string[])[] = [
    'x-auth-acc',
    'Upgrade, X-Auth-Acc',
    'upgrade,x-account-id',
    'X-ACCOUNT-ID\t, keep-alive',
    'x-auth-',
    'x-auth-anything',
    ['upgrade', 'x-auth-uid'],
    'X-Token',
  ];
  for (const connection of nominating) {
    it(`refuses connection: ${JSON.stringify(connection)}`, () => {
      expect(judge({ connection })).to.deep.equal({
        kind: 'refusal',
        reason: 'request_invalid',
        detail: 'connection nominates a header that the upstream needs',
      });
    });
  }

  it('refuses a connection of more than 256 names', () => {
    const names = 'a, '.repeat(255);
    expect(judge({ connection: [names, 'upgrade'] })).to.equal(undefined);
    expect(judge({ connection: [`${names}b`, 'upgrade'] })).to.include({
      detail: 'connection with more than 256 names',
    });
  });

  for (const connection of ['', 'upgrade', 'keep-alive, te', 'x-authority', 'x-account-id-2', 'a-x-auth-acc']) {
    it(`accepts connection: ${connection}`, () => {
      expect(judge({ connection })).to.equal(undefined);
    });
  }

  const ambiguous: readonly (string | string[])[] = [
    'text/plain; charset=utf-7',
    'text/plain;charset=UTF-7',
    'text/plain; charset=iso-8859-1',
    'text/plain; charset=utf8',
    'text/plain; charset=',
    'text/plain; charset=utf-8; charset=utf-8',
    'text/plain; charset=utf-8; charset=utf-7',
    'text/plain; charset="utf-8"',
    "text/plain; charset*=utf-8''utf-7",
    'text/plain; charset*0=utf-7',
    'text/plain; charset =utf-7',
    'text/plain; charset= utf-7',
    'text/plain; charset\u00a0=utf-7',
    'text/plain; "charset"=utf-7',
    'text/plain; x="; charset=utf-7"',
    'text/plain charset=utf-7',
    'text/plain, text/html; charset=utf-7',
    'text/plain; charset=utf-8, text/html',
    'charset=utf-8',
    ['text/plain', 'text/html'],
    ['text/plain; charset=utf-7', 'text/plain; charset=utf-7'],
    'text/plain; charset=utf-7,text/plain; charset=utf-7',
    'text/plain; charset=utf-8,text/plain; charset=utf-7',
  ];
  for (const value of ambiguous) {
    it(`refuses content-type: ${JSON.stringify(value)}`, () => {
      expect(judge({ 'content-type': value })).to.include({
        reason: 'request_invalid',
        detail: 'content-type with an ambiguous charset',
      });
    });
  }

  const plain: readonly (string | string[])[] = [
    '',
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'text/plain; Charset=US-ASCII ; format=flowed',
    'multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW',
    'multipart/form-data; boundary="a, b"; charset=utf-8',
    'text/plain; charsets',
    ['text/plain; charset=utf-8', 'text/plain; charset=utf-8'],
    'text/plain; charset=utf-8,text/plain; charset=utf-8',
  ];
  for (const value of plain) {
    it(`accepts content-type: ${JSON.stringify(value)}`, () => {
      expect(judge({ 'content-type': value })).to.equal(undefined);
    });
  }

  it('accepts any charset where no query parameter names an account', () => {
    expect(judge({ 'content-type': 'text/plain; charset=utf-7' }, [])).to.equal(undefined);
  });
});
