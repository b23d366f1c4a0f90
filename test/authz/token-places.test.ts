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

const everywhere: readonly TokenPlaceSetting[] = [
  'authorization',
  { header: 'x-token' },
  { cookie: 'token' },
  { subprotocol: 'bearer' },
];
const cookieOf = (reading: ReturnType<typeof read>) =>
  reading.kind === 'token' ? reading.rewrites.find(([name]) => name === 'cookie')?.[1] : reading.detail;
/** A handshake with these lines of subprotocols. */
const socket = (...lines: string[]): Headers => ({
  authorization: [],
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-protocol': lines,
});
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
    ['a subprotocol', socket('bearer, d'), 'd'],
    ['a subprotocol among others, without spaces', socket('graphql-ws,bearer,d,v2'), 'd'],
    ['a subprotocol over several lines, with empty items', socket('a, ,bearer ', ' ,\td', 'v2'), 'd'],
    [
      'a subprotocol of an upgrade in any case',
      { ...socket('bearer, d'), connection: 'keep-alive, UPGRADE', upgrade: 'h2c, WebSocket' },
      'd',
    ],
    ['a subprotocol beside another scheme', { ...socket('bearer, d'), authorization: 'Basic x', cookie: 'a=1' }, 'd'],
    ['a cookie where the handshake has other subprotocols', { ...socket('a, Bearer, d'), cookie: 'token=c' }, 'c'],
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
    ['no token in its subprotocol', socket('Bearer, d')],
    ['no Authorization', socket('Bearer, d'), ['authorization']],
    ...[
      { connection: 'keep-alive' },
      { connection: [] },
      { upgrade: 'h2c' },
      { upgrade: [] },
      { upgrade: 'websocket2' },
    ].map((changes): (typeof missing)[number] => [
      'no token in its subprotocol',
      { ...socket('bearer, d'), ...changes },
      [{ subprotocol: 'bearer' }],
    ]),
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
    ['a token subprotocol twice', { ...socket('bearer, d, bearer, d') }],
    ['a token subprotocol twice', { ...socket('bearer, bearer') }],
    ['a token subprotocol without its token', socket('a, bearer')],
    ['a token subprotocol without its token', socket('bearer, ', ' ')],
    ['a token beside that of a subprotocol', { ...socket('bearer, d'), authorization: 'Bearer a' }],
    ['a token beside that of a subprotocol', { ...socket('bearer, d'), cookie: 'token=c' }],
    ['a token beside that of a subprotocol', { ...socket('bearer, d'), 'x-token': 'b' }],
    ['more than 256 subprotocols', socket(`bearer, d${', a'.repeat(255)}`)],
    ['more than 256 subprotocols', socket(`${','.repeat(256)}bearer, d`)],
    ['a subprotocol that is not UTF-8 beside that of the token', socket('bearer, d, \u00e9')],
  ];
  for (const [detail, headers] of invalid) {
    it(`refuses ${detail} in ${JSON.stringify(headers).slice(0, 80)}, whichever place has the token`, () => {
      expect(read({ authorization: 'Bearer a', ...headers })).to.include({ reason: 'request_invalid', detail });
    });
  }

  it('does not look at a place that is not configured', () => {
    const headers = { authorization: 'Bearer a', 'x-token': ['b', 'c'], cookie: 'token=' };
    expect(read({ ...socket('bearer'), ...headers }, ['authorization'])).to.deep.include({ token: 'a', rewrites: [] });
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
      for (const authorization of [[], 'Bearer a']) expect(cookieOf(read({ authorization, cookie }))).to.equal(others);
      expect(cookieOf(read({ cookie }, everywhere, true))).to.equal(undefined);
    });
  }

  const subprotocols: readonly (readonly [lines: string[], others: string])[] = [
    [['bearer, d'], 'bearer'],
    [['a,bearer,d,b'], 'a, bearer, b'],
    [['a', 'bearer', 'd', 'b'], 'a, bearer, b'],
    [['d, bearer, d, a, d'], 'bearer, a'],
    [['bearer, d, \u00c3\u00a9'], 'bearer, \u00e9'],
  ];
  for (const [lines, others] of subprotocols) {
    it(`leaves the subprotocols ${others} of ${JSON.stringify(lines)}`, () => {
      const rewrites = [['sec-websocket-protocol', others]];
      expect(read(socket(...lines))).to.deep.include({ token: 'd', isOfPage: true, rewrites });
      expect(read(socket(...lines), everywhere, true)).to.deep.include({ token: 'd', rewrites: [] });
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
        expect(reading).to.include({ token: 'c' });
        expect(cookieOf(reading)).to.equal([...before, ...after].join('; '));
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

describe('a token in a cookie or a subprotocol', () => {
  const settings: Partial<TokenSettings> = {
    from: ['authorization', { cookie: 'token' }, { subprotocol: 'bearer' }],
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
    ['GET', { ...socket('bearer, d'), cookie: [], origin: own }],
    ['GET', { authorization: 'Bearer a', connection: 'upgrade' }],
  ];
  for (const [method, headers] of admitted) {
    it(`admits ${method} with ${JSON.stringify(headers)}`, () => {
      expect(reasonOf(method, headers)).to.equal('admitted');
    });
  }

  const refused: readonly (readonly [detail: string, method: string, headers: Headers])[] = [
    ...['POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT', 'QUERY'].map(
      method => ['no origin beside a token in a cookie or a subprotocol', method, {}] as const,
    ),
    ['no origin beside a token in a cookie or a subprotocol', 'GET', { connection: 'keep-alive, UPGRADE' }],
    ['no origin beside a token in a cookie or a subprotocol', 'GET', { ...socket('bearer, d'), cookie: [] }],
    ['the origin is not one of token.origins', 'GET', { ...socket('bearer, d'), cookie: [], origin: 'null' }],
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
