// The grammar of request targets: a path in the strict grammar means the same to every server, and what any other means is decoded.
import { expect } from 'chai';
import fc from 'fast-check';
import { parseRequestTarget } from '../../src/authz/path.ts';
import { anyCharacter } from '../support/any-character.ts';
import { runs } from '../support/foreign-bytes.ts';

describe('parseRequestTarget', () => {
  const accepted: readonly (readonly [target: string, segments: string[], query: string])[] = [
    ['/api/subscriptions/acct1', ['api', 'subscriptions', 'acct1'], ''],
    ['/api/subscriptions/acct1/', ['api', 'subscriptions', 'acct1'], ''],
    ['/api/subscriptions/acct1?a=1', ['api', 'subscriptions', 'acct1'], 'a=1'],
    ['/a?x?y', ['a'], 'x?y'],
    ['/a?%zz&é;../%2e', ['a'], '%zz&é;../%2e'],
    ['/', [], ''],
    ['/?', [], ''],
    ['/.../a~b@c:d-e_f', ['...', 'a~b@c:d-e_f'], ''],
    [`/${'a'.repeat(2047)}`, ['a'.repeat(2047)], ''],
    [`/a?${'q'.repeat(8189)}`, ['a'], 'q'.repeat(8189)],
    [`/a?${'&'.repeat(255)}`, ['a'], '&'.repeat(255)],
    [`/a?b=${';'.repeat(256)}`, ['a'], `b=${';'.repeat(256)}`],
  ];
  for (const [target, segments, query] of accepted) {
    it(`accepts ${shortened(target)}`, () => {
      expect(parseRequestTarget(target)).to.deep.equal({ kind: 'target', segments, decoded: undefined, query });
    });
  }

  const decoded: readonly (readonly [path: string, decoded: string[]])[] = [
    ['/a%20b', ['a b']],
    ['/a/%C3%9Cbersicht%20(1).pdf', ['a', '\u00dcbersicht (1).pdf']],
    ['/a/%c3%9c/', ['a', '\u00dc']],
    ["/!$&'()*+,=", ["!$&'()*+,="]],
    ['/Products(1)/$metadata', ['Products(1)', '$metadata']],
    ['/%61%2B%40%23', ['a+@#']],
    ['/%F0%9F%98%80', ['\u{1f600}']],
    ['/%E2%80%A6', ['\u2026']],
    ['/.../a%20b', ['...', 'a b']],
    ['/a%20.', ['a .']],
    ['/%20.a', [' .a']],
    ['/%7E%7e', ['~~']],
    [`/x${'%20'.repeat(682)}`, [`x${' '.repeat(682)}`]],
  ];
  for (const [path, texts] of decoded) {
    it(`decodes ${shortened(path)}, for the routes to judge`, () => {
      const segments = path.replace(/\/$/, '').split('/').slice(1);
      expect(parseRequestTarget(`${path}?a`)).to.deep.equal({ kind: 'target', segments, decoded: texts, query: 'a' });
    });
  }

  const refused: readonly string[] = [
    ...'/%2F /%5C /a%5cb /%25 /a%2561 /%2e /%3B /a%3bb /%3F /a%3fb /%00 /%0a /%1F /%7F /%7f'.split(' '),
    ...'/%C2%80 /%C2%85 /%c2%9f /%80 /%FF /%C3 /%C3a /%c0%ae /%C0%AF /%E0%80%AF /%ED%A0%80 /%F4%90%80%80 /%F8%88%80%80%80 /%2'.split(
      ' ',
    ),
    ...'/%20 /a/%20/b /%C2%A0/ /%E2%80%83%20 /%EF%BB%BF /%20/% /a%20//b //%20 /.%20 /a%20/.%20/b /%20. /..%20 /%20..%20 /.%C2%A0 /%E3%80%80.. /a%20b/..'.split(
      ' ',
    ),
    ...'/./a%20b /[a] /a^b /a`b /"a" /a%20<b> ? * api // //a /a//b /a// /. /.. /a/. /a/../b /a/./b'.split(' '),
    ...'/a/..;/b /a;x /a/;/b /a%2fb /a%2Eb /a% /a%zz /a%u0061 /a#b /a?b#c # /{a} /a|b /é /аcct1'.split(' '),
    'http://evil.test/a',
    '/%20\u00e9',
    '',
    '/a\\b',
    '/a b',
    '/a\tb',
    '/a\nb',
    '/a\r\nb',
    '/a\n',
    '/a\0',
    '/a\x7f',
    '/\ud800',
    `/${'a'.repeat(2048)}`,
    `/a?${'q'.repeat(8190)}`,
    `/a?${'é'.repeat(4095)}`,
    `/a?${'&'.repeat(256)}`,
    `/a?${'a=1&'.repeat(2000)}`,
  ];
  for (const target of refused) {
    it(`refuses ${shortened(target)}`, () => {
      expect(parseRequestTarget(target)).to.include({ kind: 'refusal', reason: 'request_invalid' });
    });
  }

  const details: readonly (readonly [target: string, detail: string])[] = [
    [`/a?${'q'.repeat(8190)}`, 'target longer than 8192 bytes'],
    [`/${'a'.repeat(2048)}`, 'path longer than 2048 bytes'],
    ['/a#b', 'a fragment in the target'],
    ['/a%2fb', 'path outside the grammar'],
    ['/a/../b', 'a dot segment in the path'],
    [`/a?${'&'.repeat(256)}`, 'more than 256 query parameters'],
  ];
  for (const [target, detail] of details) {
    it(`refuses ${shortened(target)} with the detail "${detail}"`, () => {
      expect(parseRequestTarget(target)).to.include({ detail });
    });
  }

  it('splits a target into segments and query without decoding or losing anything', () => {
    const segment = fc.stringMatching(/^[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]{0,12}$/);
    fc.assert(
      fc.property(
        fc.array(segment, { minLength: 1 }),
        fc.boolean(),
        fc.stringMatching(/^[^#]{0,20}$/),
        (segments, slash, query) => {
          const target = parseRequestTarget(`/${segments.join('/')}${slash ? '/' : ''}?${query}`);
          expect(target).to.deep.equal({ kind: 'target', segments, decoded: undefined, query });
        },
      ),
    );
  });

  it('P-067 splits every accepted path into the segments that URL gives', () => {
    const piece = fc.constantFrom(...'/ acct1 acct2 . .. %2e %2F ; : @ ? # // api'.split(' '), '\\', '\t');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const target = `/api/${pieces.join('')}`;
        const parsed = parseRequestTarget(target);
        fc.pre(parsed.kind === 'target');
        const served = new URL(target, 'http://lab.test').pathname.replace(/\/$/, '').split('/').slice(1);
        expect(parsed).to.have.property('segments').that.deep.equals(served);
      }),
      runs(500),
    );
  });

  it('accepts or refuses any text without throwing', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), text => {
        expect(parseRequestTarget(text).kind).to.be.oneOf(['target', 'refusal']);
      }),
    );
  });
});

function shortened(target: string): string {
  return JSON.stringify(target.length > 40 ? `${target.slice(0, 40)}… (${target.length})` : target);
}
