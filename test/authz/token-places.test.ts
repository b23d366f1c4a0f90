// Where a request carries its token: which place counts, what is ambiguous, what is left of the cookies, and which pages may send one.
import { expect } from 'chai';
import fc from 'fast-check';
import { admit } from '../../src/authz/authorize.ts';
import {
  compileTokenPlaces,
  readToken,
  type TokenPlaceSetting,
  type TokenSettings,
} from '../../src/authz/token-places.ts';
import { facts, policy } from '../support/facts.ts';
import { runs } from '../support/foreign-bytes.ts';

type Headers = Record<string, string | string[]>;

const everywhere: readonly TokenPlaceSetting[] = ['authorization', { header: 'x-token' }, { cookie: 'token' }];
const read = (headers: Headers, from = everywhere, forward = false) =>
  readToken(compileTokenPlaces({ from, forward, origins: [] }), facts({ headers }).headers);

describe('readToken', () => {
  const found: readonly (readonly [name: string, headers: Headers, token: string])[] = [
    ['the first place', { authorization: 'Bearer a', 'x-token': 'b', cookie: 'token=c' }, 'a'],
    ['the scheme in any case, and spaces after it', { authorization: ' bEARER   a ' }, 'a'],
    ['the second place beside another scheme', { authorization: 'Basic x', 'x-token': 'b', cookie: 'token=c' }, 'b'],
    ['the second place beside an empty Authorization', { authorization: '  ', 'x-token': ' b\t' }, 'b'],
    ['a cookie', { authorization: [], cookie: 'token=c' }, 'c'],
    ['a cookie in a second line', { authorization: [], cookie: ['a=1', 'b=2; token=c'] }, 'c'],
    ['a cookie with spaces around its parts', { authorization: [], cookie: 'a=1;\ttoken = c ;b' }, 'c'],
    ['the last of 256 cookies', { authorization: [], cookie: ['a;'.repeat(255), 'token=c'].join('') }, 'c'],
    ['a cookie with an equals sign in its value', { authorization: [], cookie: 'token=c=' }, 'c='],
  ];
  for (const [name, headers, token] of found) {
    it(`takes ${name}`, () => {
      expect(read(headers)).to.include({ kind: 'token', token });
    });
  }

  const missing: readonly (readonly [detail: string, headers: Headers, from?: readonly TokenPlaceSetting[]])[] = [
    ['no Authorization', {}],
    ['no Authorization', { cookie: 'Token=c; tokens=c; a=token=c' }],
    ['Authorization has another scheme', { authorization: 'Basic x' }],
    ['no token after the scheme', { authorization: 'Bearer', cookie: 'token=c' }],
    ['no token in its header', { authorization: 'Bearer a' }, [{ header: 'x-token' }]],
    ['no token in its cookie', { authorization: 'Bearer a' }, [{ cookie: 'token' }]],
  ];
  for (const [detail, headers, from] of missing) {
    it(`finds none in ${JSON.stringify(headers)}: ${detail}`, () => {
      const reading = read({ authorization: [], ...headers }, from);
      expect(reading).to.have.nested.property('token.reason', 'token_missing');
      expect(reading).to.have.nested.property('token.detail', detail);
    });
  }

  const invalid: readonly (readonly [detail: string, headers: Headers])[] = [
    ['a token header twice', { 'x-token': ['a', 'a'] }],
    ['an empty token header', { 'x-token': ' ' }],
    ['a list in a token header', { 'x-token': 'a, b' }],
    ['a look-alike of a token header', { x_token: 'a' }],
    ['more than 256 cookies', { cookie: ['token=a', ';'.repeat(255)] }],
    ['a token cookie twice', { cookie: 'token=a; b=1; token=a' }],
    ['a token cookie twice', { cookie: ['token=a', 'token=b'] }],
    ['an empty token cookie', { cookie: 'token=' }],
    ['an empty token cookie', { cookie: 'token' }],
    ['a token cookie in quotes', { cookie: 'token="a"' }],
    ['a cookie that is not UTF-8 beside that of the token', { cookie: 'token=a; b=\u00e9' }],
  ];
  for (const [detail, headers] of invalid) {
    it(`refuses ${detail} in ${JSON.stringify(headers).slice(0, 80)}, whichever place has the token`, () => {
      expect(read({ authorization: 'Bearer a', ...headers })).to.include({ reason: 'request_invalid', detail });
    });
  }

  it('does not look at a place that is not configured', () => {
    const headers = { authorization: 'Bearer a', 'x-token': ['b', 'c'], cookie: 'token=' };
    expect(read(headers, ['authorization'])).to.include({ token: 'a', otherCookies: undefined });
  });

  const left: readonly (readonly [cookie: string | string[], others: string | undefined])[] = [
    ['a=1; token=c; b=2', 'a=1; b=2'],
    ['token=c; a=1;b=2', 'a=1;b=2'],
    ['a=1;token=c', 'a=1'],
    ['a=1;  token=c; b="x; y', 'a=1; b="x; y'],
    [['a=1', 'token=c', 'b=2'], 'a=1; b=2'],
    ['token=c', ''],
    ['token=c; ', ''],
    ['a=1; b=2', undefined],
    ['token=c; a=\u00c3\u00a9', 'a=\u00e9'],
  ];
  for (const [cookie, others] of left) {
    it(`leaves ${JSON.stringify(others)} of ${JSON.stringify(cookie)}`, () => {
      for (const authorization of [[], 'Bearer a'])
        expect(read({ authorization, cookie })).to.include({ otherCookies: others });
      expect(read({ cookie }, everywhere, true)).to.include({ otherCookies: undefined });
    });
  }

  it('leaves each other cookie as it was sent, in its order', () => {
    const name = fc.stringMatching(/^[a-z]{1,3}$/);
    const cookie = fc
      .tuple(name, fc.stringMatching(/^[!#-+--:<-[\]-~]{0,8}$/))
      .map(([key, value]) => `${key}=${value}`);
    fc.assert(
      fc.property(fc.array(cookie), fc.array(cookie), (before, after) => {
        const reading = read({ authorization: [], cookie: [...before, 'token=c', ...after].join('; ') });
        expect(reading).to.include({ token: 'c', otherCookies: [...before, ...after].join('; ') });
      }),
      runs(100),
    );
  });

  it('never throws, and finds a token, none or an invalid request in any bytes', () => {
    const line = fc.string({ unit: 'binary-ascii' });
    fc.assert(
      fc.property(line, line, line, (authorization, token, cookie) => {
        const reading = read({ authorization, 'x-token': token, cookie: `${cookie};token=x` });
        expect(reading.kind === 'token' || reading.reason === 'request_invalid').to.equal(true);
      }),
      runs(200),
    );
  });
});

describe('a token in a cookie', () => {
  const settings: Partial<TokenSettings> = {
    from: ['authorization', { cookie: 'token' }],
    origins: ['https://app.example.com', 'http://localhost:3000'],
  };
  const own = 'https://app.example.com';
  const reasonOf = (method: string, headers: Headers): string => {
    const target = '/api/subscriptions/acct1';
    const request = facts({ method, target, headers: { authorization: [], cookie: 'token=c', ...headers } });
    const { outcome } = admit(policy({ token: settings }), request);
    return outcome.kind === 'refusal' ? `${outcome.reason}: ${outcome.detail}` : outcome.kind;
  };

  const admitted: readonly (readonly [method: string, headers: Headers])[] = [
    ...['GET', 'HEAD', 'OPTIONS'].map(method => [method, {}] as const),
    ['GET', { origin: 'https://evil.example' }],
    ['GET', { connection: 'keep-alive' }],
    ['POST', { origin: own }],
    ['DELETE', { origin: 'http://localhost:3000' }],
    ['GET', { connection: 'Upgrade', origin: own }],
    ['POST', { authorization: 'Bearer a', origin: 'https://evil.example' }],
    ['GET', { authorization: 'Bearer a', connection: 'upgrade' }],
  ];
  for (const [method, headers] of admitted) {
    it(`admits ${method} with ${JSON.stringify(headers)}`, () => {
      expect(reasonOf(method, headers)).to.equal('admitted');
    });
  }

  const refused: readonly (readonly [detail: string, method: string, headers: Headers])[] = [
    ...['POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'QUERY'].map(
      method => ['no origin beside a token in a cookie', method, {}] as const,
    ),
    ['no origin beside a token in a cookie', 'GET', { connection: 'keep-alive, UPGRADE' }],
    ['more than one origin', 'POST', { origin: [own, own] }],
    ...[
      'https://evil.example',
      'null',
      '',
      `${own}/`,
      `${own}:443`,
      `https://app.example.com.evil.example`,
      'HTTPS://APP.EXAMPLE.COM',
    ].map(origin => ['the origin is not one of token.origins', 'POST', { origin }] as const),
  ];
  for (const [detail, method, headers] of refused) {
    it(`is refused in ${method} with ${JSON.stringify(headers)}`, () => {
      expect(reasonOf(method, headers)).to.equal(`origin_forbidden: ${detail}`);
    });
  }

  it('is refused after an unknown route and an invalid request, and its absence before', () => {
    const { outcome } = admit(
      policy({ token: settings }),
      facts({ method: 'POST', target: '/x', headers: { cookie: 'token=c', authorization: [] } }),
    );
    expect(outcome).to.include({ reason: 'route_unknown' });
    expect(reasonOf('POST', { cookie: [] })).to.match(/^token_missing/);
    expect(reasonOf('POST', { cookie: 'token=' })).to.match(/^request_invalid/);
  });
});
