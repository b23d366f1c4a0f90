// The strict reading of a compact JWS, before its signature is verified.
import { expect } from 'chai';
import { base64url } from '../../lab/token.ts';
import { parseCompactJws } from '../../src/token/compact.ts';

const header = '{"alg":"ES256","kid":"k1"}';

function detailOf(headerText: string, payloadText = '{}'): string | undefined {
  const parsed = parseCompactJws(`${base64url(headerText)}.${base64url(payloadText)}.AA`);
  return parsed.kind === 'refusal' ? parsed.detail : undefined;
}

describe('parseCompactJws', () => {
  const rows: readonly (readonly [name: string, header: string, payload: string, detail: string | undefined])[] = [
    ['a valid header and payload', header, '{}', undefined],
    ['a header that is not JSON', '{', '{}', 'header: not JSON'],
    ['a header that is null', 'null', '{}', 'header: not an object'],
    ['a header without alg', '{"kid":"k1"}', '{}', 'header: alg is not a string'],
    ['an alg that is a number', '{"alg":1,"kid":"k1"}', '{}', 'header: alg is not a string'],
    ['a header without kid', '{"alg":"ES256"}', '{}', undefined],
    ['an empty kid', '{"alg":"ES256","kid":""}', '{}', 'header: kid is not a non-empty string'],
    ['a kid that is a number', '{"alg":"ES256","kid":1}', '{}', 'header: kid is not a non-empty string'],
    ['a kid that is null', '{"alg":"ES256","kid":null}', '{}', 'header: kid is not a non-empty string'],
    ['a typ that is null', '{"alg":"ES256","kid":"k1","typ":null}', '{}', 'header: typ is not a string'],
    ['a payload that is not JSON', header, 'x', 'payload: not JSON'],
    ['a payload that is an array', header, '[]', 'payload: not an object'],
  ];
  for (const [name, headerText, payloadText, detail] of rows) {
    it(`${detail === undefined ? 'accepts' : `reports "${detail}" for`} ${name}`, () => {
      expect(detailOf(headerText, payloadText)).to.equal(detail);
    });
  }

  it('returns alg, kid, thumbprints, typ and the payload', () => {
    const header = base64url('{"alg":"ES256","kid":"k1","typ":"JWT","x5t":"a","x5t#S256":1}');
    expect(parseCompactJws(`${header}.${base64url('{"a":1}')}.AQID`)).to.deep.equal({
      kind: 'compact',
      alg: 'ES256',
      kid: 'k1',
      x5t: 'a',
      x5tS256: undefined,
      typ: 'JWT',
      payload: { a: 1 },
    });
  });

  const misuses: readonly (readonly [text: string, detail: string])[] = [
    ['"a.b.c"', 'the token is in quotes'],
    ["'", 'the token is in quotes'],
    ['null', 'a word in the place of the token'],
    ['undefined', 'a word in the place of the token'],
    ['[object Object]', 'a word in the place of the token'],
    ...['NULL', '(null)', '$TOKEN', `$\{TOKEN}`, '<token>', 'YOUR_TOKEN', 'access_token', '[object Promise]'].map(
      word => [word, 'a word in the place of the token'] as const,
    ),
    ['Bearer a.b.c', 'Bearer twice'],
    ['JWT a.b.c', 'another word before the token'],
    ['Bearer: a.b.c', 'another word before the token'],
    ['ZXlKaGJH', 'a token in base64 once more'],
    ['v4.public.AAAA', 'a PASETO, no JWT'],
    ['v2.local.AAAA.AAAA', 'a PASETO, no JWT'],
    ['bEARER ', 'Bearer twice'],
    ['nullx', 'an opaque token, no JWT'],
    ['ory_at_hT7.u2Q', 'an opaque token, no JWT'],
    ['gho_16C7e42F292c6912E7710c838347Ae178B4a', 'an opaque token, no JWT'],
    ['12|a:b', 'an opaque token, no JWT'],
    ['ya29.a0AfH6', 'an opaque token, no JWT'],
    ['a.b.c.d.e', 'an encrypted token'],
    [`${base64url('{"alg":"dir"}')}..a.b.c`, 'an encrypted token'],
    [`${base64url('{"alg":"none"}')}.e30.`, 'an unsigned token'],
    [`${base64url('{"alg":{"toString":0,"valueOf":0}}')}.e30.`, 'a token without its last segment'],
    [`${base64url('{"alg":"None"}')}.e30`, 'an unsigned token'],
    [base64url(header), 'a token without its last segment'],
    [`${base64url(header)}.e30`, 'a token without its last segment'],
    [`${base64url(header)}.e30.`, 'a token without its last segment'],
    [`${base64url(header)}.e30=.AA==`, 'segments in base64, not base64url'],
    ['a.b+/.c', 'segments in base64, not base64url'],
    [base64url(header).slice(0, 9), 'a token without its last segment'],
    [`${base64url(header)}.e3...`, 'a token without its last segment'],
    ['a.b.c.d', '4 segments, not the three of a signed JWT'],
    [`${base64url(header)}.e30.A${base64url(header)}.e30.AA`, '5 segments, not the three of a signed JWT'],
    ['a.b.c.d.e.f', '6 segments, not the three of a signed JWT'],
    ['a..c', 'not three base64url segments'],
    ['a.b.c d', 'not three base64url segments'],
  ];
  for (const [text, detail] of misuses) {
    it(`says of ${JSON.stringify(text.replaceAll(/eyJ[\w-]+/g, 'HEADER'))}: ${detail}`, () => {
      expect(parseCompactJws(text)).to.include({ reason: 'token_invalid', detail });
    });
  }

  // One character holds six bits, less than a byte: Node's decoder drops it silently.
  it('J-062 refuses a segment with a surplus character', () => {
    for (const text of [
      `${base64url(header)}.e30.AAAAA`,
      `${base64url(header)}.e30gA.AA`,
      `${base64url(header)}.e30.A`,
    ]) {
      expect(parseCompactJws(text)).to.include({ detail: 'a segment is not canonical base64url' });
    }
  });

  for (const [part, text] of [
    ['header', `${base64url(header).slice(0, -1)}1.e30.AA`],
    ['payload', `${base64url(header)}.e31.AA`],
    ['signature', `${base64url(header)}.e30.AB`],
  ] as const) {
    it(`J-062 J-063 refuses a ${part} whose unused bits are set`, () => {
      expect(parseCompactJws(text)).to.include({ detail: 'a segment is not canonical base64url' });
    });
  }
});
