// Changes to a request, invalid or unusual but valid, one at a time, independent of its token.

import { accounts } from './identities.ts';
import { type RequestContext, type RequestDraft, withHttp } from './request-draft.ts';

type Change = (draft: RequestDraft, context: RequestContext) => void;
type Row = readonly [weight: number, name: string, change: Change];

/** Makes one change and returns its name. */
export function changeRequest(draft: RequestDraft, context: RequestContext): string {
  const [, name, change] = context.random.weighted(rows.map(row => [row[0], row] as const));
  change(draft, context);
  return name;
}

const authorization: readonly Row[] = [
  [5, 'no Authorization', draft => drop(draft, 'authorization')],
  [
    3,
    'an empty Authorization',
    (draft, { random }) => replace(draft, random.pick(['', ' ', '\t', 'Bearer', 'Bearer ', 'bearer \t '])),
  ],
  [
    4,
    'another scheme',
    (draft, { random, token }) =>
      replace(
        draft,
        random.pick([
          `Basic ${token.text}`,
          `DPoP ${token.text}`,
          token.text,
          `Bearerx ${token.text}`,
          `Bearer-${token.text}`,
          `Token Bearer ${token.text}`,
          `xBearer ${token.text}`,
          `BE\u0430RER ${token.text}`,
        ]),
      ),
  ],
  [
    4,
    'the scheme in another case',
    (draft, { random, token }) => replace(draft, `${random.pick(['bearer', 'BEARER', 'bEaReR'])} ${token.text}`),
  ],
  [
    3,
    'white space around the value',
    (draft, { random, token }) =>
      replace(draft, random.pick([` Bearer ${token.text}`, `Bearer ${token.text} `, `\t Bearer ${token.text}\t\t`])),
  ],
  [
    4,
    'another separator than one space',
    (draft, { random, token }) =>
      replace(
        draft,
        `Bearer${random.pick(['  ', '\t', ' \t', '\u00a0', '\u2003', '\v', '\f', '=', ':', ' \u00a0', '\n'])}${token.text}`,
      ),
  ],
  [
    4,
    'something after the token',
    (draft, { random, token }) =>
      replace(
        draft,
        `Bearer ${token.text}${random.pick([' b', ';x=1', '"', '\0', '\u00e9', ' Bearer x', '\r\nx: y', '='])}`,
      ),
  ],
  [2, 'the token in quotes', (draft, { token }) => replace(draft, `Bearer "${token.text}"`)],
  [
    3,
    'a comma',
    (draft, { random, token }) =>
      replace(
        draft,
        random.pick([
          `Bearer ${token.text},`,
          `,Bearer ${token.text}`,
          `Bearer ${token.text}, Bearer ${token.text}`,
          `Basic a,b`,
          ',',
        ]),
      ),
  ],
  [
    3,
    'two lines',
    (draft, { random, token }) =>
      draft.lines.push([
        random.pick(['authorization', 'Authorization']),
        random.pick([`Bearer ${token.text}`, 'Basic eDp5', 'x']),
      ]),
  ],
  [
    2,
    'a second, empty line',
    (draft, { random }) =>
      draft.lines.splice(random.below(2), 0, [random.pick(['authorization', 'AUTHORIZATION']), random.pick(['', ' '])]),
  ],
  [2, 'the name in another case', draft => rename(draft, 'authorization', 'Authorization')],
  [
    3,
    'the token elsewhere',
    (draft, { random, token }) => {
      drop(draft, 'authorization');
      if (random.chance(0.3)) draft.query = `access_token=${token.text}`;
      else
        draft.lines.push([
          random.pick([
            'proxy-authorization',
            'x-access-token',
            'cookie',
            'x-forwarded-authorization',
            'authorization_',
            ' authorization',
          ]),
          `Bearer ${token.text}`,
        ]);
    },
  ],
];

const odd = [
  ...[
    '%2e',
    '%2F',
    '%252e',
    '%00',
    '%',
    '%zz',
    ';',
    ';x=1',
    '\\',
    '#',
    '#x',
    '*',
    '{account}',
    '+',
    ' ',
    '\t',
    '\0',
    '\n',
    '\r\n',
    '!',
    '$',
    "'",
    '(',
    ')',
    '&',
    '=',
    ',',
  ],
  ...['\u0430', '\uff0f', '\u2024', '\u00e9', '\u212a', '\ufeff', '"', '<', '|', '^', '`', '[', '\u007f'],
] as const;

const paths: readonly Row[] = [
  [
    34,
    'another account in the path',
    (draft, { random, token }) => {
      const near = [
        ...accounts,
        `${token.acc}0`,
        token.acc.slice(1),
        token.acc.toUpperCase(),
        `${token.acc}.`,
        `${token.acc}~`,
        `:${token.acc}`,
        `@${token.acc}`,
      ];
      const other = random.pick(near);
      const places = indexesOf(draft.path, token.acc);
      if (places.length === 0) draft.path = `${draft.path.replace(/\/$/, '')}/${other}`;
      else {
        const at = random.pick(places);
        draft.path = draft.path.slice(0, at) + other + draft.path.slice(at + token.acc.length);
      }
    },
  ],
  [
    6,
    'letters of another case',
    (draft, { random }) => {
      const segments = draft.path.split('/');
      const at = random.below(segments.length);
      const segment = segments[at] ?? '';
      segments[at] = random.pick([
        segment.toUpperCase(),
        segment.toLowerCase(),
        segment.charAt(0).toUpperCase() + segment.slice(1),
      ]);
      draft.path = segments.join('/');
    },
  ],
  [5, 'a slash at the end', draft => (draft.path += '/')],
  [
    5,
    'a character of the grammar put in',
    (draft, { random }) =>
      (draft.path = putIn(
        draft.path,
        random.pick(['.', '_', '~', ':', '@', '-', 'a', '0', 'Z']),
        random.below(draft.path.length + 1),
      )),
  ],
  [
    8,
    'a character outside the grammar put in',
    (draft, { random }) => (draft.path = putIn(draft.path, random.pick(odd), random.below(draft.path.length + 1))),
  ],
  [
    5,
    'a character percent-encoded',
    (draft, { random }) => {
      const at = random.below(draft.path.length);
      const hex = draft.path.charCodeAt(at).toString(16);
      draft.path =
        draft.path.slice(0, at) +
        random.pick([`%${hex}`, `%${hex.toUpperCase()}`, `%25${hex}`]) +
        draft.path.slice(at + 1);
    },
  ],
  [
    6,
    'a segment put in',
    (draft, { random }) => {
      const segments = draft.path.split('/');
      segments.splice(
        1 + random.below(segments.length),
        0,
        random.pick(['', '.', '..', '...', '..;', '.;x', ';', 'x', 'accounts', 'api', '%2e%2e', ':account_id', '@']),
      );
      draft.path = segments.join('/');
    },
  ],
  [
    4,
    'a segment left out',
    (draft, { random }) => {
      const segments = draft.path.split('/');
      segments.splice(1 + random.below(segments.length - 1), 1);
      draft.path = segments.join('/');
    },
  ],
  [
    3,
    'the way round by dot segments',
    (draft, { random }) =>
      (draft.path = random.pick([
        `${draft.path}/../acct2`,
        draft.path.replace('/', '/x/../'),
        `${draft.path}/.`,
        `${draft.path}/..`,
      ])),
  ],
  [
    5,
    'another path',
    (draft, { random, token }) =>
      (draft.path = random.pick([
        '/',
        '',
        '*',
        '?',
        '/..',
        '//',
        '//evil.test/api/subscriptions',
        `http://evil.test${draft.path}`,
        draft.path.slice(1),
        `/x${draft.path}`,
        `${draft.path}X`,
        '/api',
        '/api/subscriptions',
        '/api/subscriptionsX',
        `/${token.acc}`,
        '/envoy.service.auth.v3.Authorization/Check',
        '/healthz',
        '/public/x',
        '/.well-known/oauth-protected-resource/subscriptions',
      ])),
  ],
  [
    3,
    'a path as long as the bound, or one more',
    (draft, { random }) => {
      const length = 2048 + random.pick([-1, 0, 1]);
      draft.path = `${draft.path.replace(/\/$/, '')}/`.padEnd(length, 'a');
    },
  ],
  [
    3,
    'a target as long as the bound, or one more',
    (draft, { random }) => {
      const own = draft.query === undefined ? '' : `${draft.query}&`;
      const room = 8192 + random.pick([-1, 0, 1]) - Buffer.byteLength(`${draft.path}?${own}`);
      draft.query =
        own +
        (random.chance(0.5)
          ? 'a'.repeat(Math.max(room, 1))
          : 'a'.repeat(Math.max(room, 1) % 2) + '\u00e9'.repeat(Math.floor(Math.max(room, 1) / 2)));
    },
  ],
];

const queries: readonly Row[] = [
  [
    5,
    'a query that does not matter',
    (draft, { random }) =>
      addQuery(
        draft,
        random.pick([
          '',
          '&',
          'a',
          'a=1',
          'a=1&a=2',
          'q=%zz',
          '%',
          '=x',
          'accounts=acct2',
          'aid=acct2',
          'x=account_id',
          'a=b?c',
          'xaccount_id=1',
          'account_id2=acct2',
          '?',
          '/../..',
          '\u00e9=\u00e9',
          '\u0000',
          'access_token=x',
          'ACCOUNT=1',
        ]),
      ),
  ],
  [
    10,
    'an account parameter of another value',
    (draft, context) => {
      const { random, token } = context;
      const values = [
        'acct2',
        token.acc,
        `${token.acc}0`,
        '',
        `${token.acc}%20`,
        '%61cct1',
        `${token.acc}+`,
        `${token.acc};x`,
        ` ${token.acc}`,
        `${token.acc}=`,
        `${token.acc}?`,
        token.acc.toUpperCase(),
        '\u00e9',
        `${token.acc}\0`,
      ];
      addQuery(draft, `${accountParameter(context)}=${random.pick(values)}`);
    },
  ],
  [2, 'an account parameter without a value', (draft, context) => addQuery(draft, accountParameter(context))],
  [
    3,
    'a parameter that overrides the method, or nearly',
    (draft, { random }) =>
      addQuery(
        draft,
        random.pick([
          '_method=DELETE',
          '%5fMethod=DELETE',
          'a=1;[_method]=DELETE',
          'X-HTTP_Method-Override=DELETE',
          '=x.http.method.override',
          'method=DELETE',
          'a=_method',
          'my_method=1',
          'a=1%26_method=DELETE',
        ]),
      ),
  ],
  [
    9,
    'a look-alike of an account parameter',
    (draft, context) => {
      const { random, token } = context;
      const name = accountParameter(context);
      const encoded = (text: string, at: number): string =>
        `${text.slice(0, at)}%${text.charCodeAt(at).toString(16)}${text.slice(at + 1)}`;
      const at = random.below(name.length);
      const alike = random.pick([
        name.toUpperCase(),
        name.toLowerCase(),
        name.charAt(0).toUpperCase() + name.slice(1),
        encoded(name, at),
        encoded(name, at).replace('%', '%25'),
        `+${name}`,
        `${name}+`,
        ` ${name}`,
        `%20${name}`,
        `${name}%20`,
        `${name}[]`,
        `${name}[0]`,
        `${name}[a][b]`,
        `${name}%5B%5D`,
        `${name}%5b0%5d`,
        name.replaceAll('_', '.'),
        name.replaceAll('_', '%2e'),
        name.replaceAll('_', '%5F'),
        `a;${name}`,
        `a=1;${name}`,
        `${name};a`,
        `${name}%00`,
        `%00${name}`,
        `?${name}`,
        `!${name}`,
        `%21${name}`,
        `%2521${name.toUpperCase()}`,
        `+!${name}[]`,
        `a;!${name}`,
        `a!${name}`,
        `a=1%26${name}`,
        `a=1%2526${name}`,
        `a=1%3B!${name}`,
        `a=1%26b${name}`,
        `[${name}]`,
        `=${name}`,
        `==${name}`,
        `%3D${name}`,
        `%2e${name}`,
        `filter.${name}`,
        `filter[${name}]`,
        `a=1;=${name}`,
        `${name}?`,
        `${name}%26a`,
        `a%26${name}`,
        `a%3b${name}`,
        `%u0061${name.slice(1)}`,
        name.replace('a', '\uff41'),
        `\u200b${name}`,
        `${name}%`,
        `${name}%2`,
        `%${name}`,
        name.replaceAll('_', ' '),
        name.replaceAll('_', '+'),
        name.replaceAll('_', '-'),
        name.replaceAll('_', ''),
        `${name}s`,
        `x${name}`,
        `${name}.`,
        `.${name}`,
        `${name}_`,
        `%5B${name}`,
        `user[${name}]`,
      ]);
      addQuery(draft, `${alike}=${random.pick([token.acc, token.acc, 'acct2', ''])}`);
    },
  ],
  [
    2,
    'an account parameter twice',
    (draft, context) => {
      const name = accountParameter(context);
      addQuery(draft, `${name}=${context.token.acc}&${name}=${context.random.pick([context.token.acc, 'acct2'])}`);
    },
  ],
  [2, 'a fragment', draft => addQuery(draft, 'a#b')],
];

const headers: readonly Row[] = [
  [
    10,
    'an account header of another value',
    (draft, context) => {
      const { random, token } = context;
      const name = accountHeader(context);
      drop(draft, name);
      const values = [
        'acct2',
        token.acc,
        `${token.acc}0`,
        '',
        ' ',
        '\t ',
        ` ${token.acc}`,
        `${token.acc} `,
        `${token.acc},`,
        `${token.acc},acct2`,
        `${token.acc};x`,
        token.acc.toUpperCase(),
        '\u00e9',
        `"${token.acc}"`,
      ];
      draft.lines.push([random.pick([name, name, name.toUpperCase()]), random.pick(values)]);
    },
  ],
  [
    3,
    'an account header twice',
    (draft, context) => {
      const name = accountHeader(context);
      const { acc } = context.token;
      draft.lines.push(
        [name, acc],
        [context.random.pick([name, name.toUpperCase()]), context.random.pick([acc, 'acct2', ''])],
      );
    },
  ],
  [
    4,
    'a look-alike of an account header',
    (draft, context) => {
      const name = accountHeader(context);
      const { random, token } = context;
      draft.lines.push([
        random.pick([
          name.replace('-', '_'),
          name.replaceAll('-', '_'),
          name.replaceAll('-', '_').toUpperCase(),
          `${name}_`,
          `_${name}`,
          name.replaceAll('-', '.'),
          name.replace('-', random.pick([..."!#$%&'*+.^`|~"])),
          name.replaceAll('-', () => random.pick([...'-_.~+!'])),
          name.replaceAll('-', '__'),
        ]),
        random.pick([token.acc, 'acct2', '']),
      ]);
    },
  ],
  [
    8,
    'headers under our prefix',
    (draft, { random, setup }) => {
      const { identityPrefix: prefix } = setup.settings;
      const names = [
        'uid',
        'app',
        'acc',
        'role',
        'iss',
        'email',
        '',
        'ACC',
        'acc_',
        'a-b',
        'acc\u0000',
        'acc ',
        'é',
        'a:b',
        'x'.repeat(300),
      ];
      for (let i = 1 + random.below(4); i > 0; i -= 1) {
        const name = prefix + random.pick(names);
        const spelt = random.pick([
          name,
          name,
          name.toUpperCase(),
          name.replaceAll('-', '_'),
          name.replace('-', '_'),
          name.slice(0, -1),
          `x${name}`,
          prefix.slice(0, -1),
        ]);
        draft.lines.push([spelt, random.pick(['acct2', '', 'a,b'])]);
      }
    },
  ],
  [
    4,
    'another request id',
    (draft, { random }) => {
      drop(draft, 'x-request-id');
      const [name, value] = random.pick([
        ['x-request-id', ''],
        ['x-request-id', 'a b'],
        ['x-request-id', 'a'.repeat(129)],
        ['X-Request-Id', 'r-2'],
        ['x-request-id', '"quoted"'],
        ['x-request-id', '\u00e9'],
        ['x_request_id', 'r-3'],
        ['x-request-id', 'r-4\n'],
      ] as const);
      draft.lines.push([name, value]);
      if (random.chance(0.2)) draft.lines.push(['x-request-id', 'r-5']);
    },
  ],
  [
    3,
    'connection or content-type, ambiguous or not',
    (draft, context) => {
      const { random, setup } = context;
      const line = (name: string, ...values: readonly string[]): [string, string] => [name, random.pick(values)];
      draft.lines.push(
        random.pick([
          line('connection', 'upgrade', 'keep-alive, te', '', accountHeader(context)),
          line('Connection', `${setup.settings.identityPrefix}acc`, `Upgrade, ${accountHeader(context).toUpperCase()}`),
          line('content-type', 'text/plain', 'text/plain; charset=utf-8', 'a/b;Charset=US-ASCII', ''),
          line('content-type', 'text/plain; charset=utf-7', 'a/b; charset="utf-8"', "a/b; charset*=x''utf-8"),
          line('content-type', 'a/b; charset=utf-8; charset=utf-8', 'a/b; charset=latin1'),
        ]),
      );
    },
  ],
  [
    4,
    'headers that must not matter',
    (draft, { random }) =>
      draft.lines.push(
        random.pick([
          ['x-forwarded-uri', '/api/subscriptions/accounts/acct2'],
          ['x-original-url', '/'],
          ['x-http-method-override', 'DELETE'],
          ['forwarded', 'host=evil'],
          ['cookie', 'a=b'],
          ['__proto__', 'x'],
          ['constructor', 'y'],
          ['', ''],
          ['traceparent', '00-1'],
          ['x-envoy-original-path', '/acct2'],
        ]),
      ),
  ],
];

const hosts: readonly Row[] = [
  [
    9,
    'another host',
    (draft, { random, token }) => {
      const host = draft.host.replace(/:[0-9]+$/, '');
      draft.host = random.pick([
        ...[
          '',
          '.',
          ':443',
          'evil.test',
          'api.test.evil.test',
          'xapi.test',
          'test',
          'API.TEST',
          'api.other.test',
          'kept.test',
          '\u212aept.test',
        ],
        ...[`${host}.`, `.${host}`, `x.${host}`, host.toUpperCase(), `${host}:99999`, `${host}:`, `${host}:x`],
        ...['acct2.api.test', 'ACCT2.api.test', 'acct3.api.test', '-a.api.test', 'a-.api.test', 'a_b.api.test'],
        ...[`${token.acc}.api.test`, `${token.acc}.eu.API.test`, `${'x'.repeat(64)}.api.test`, '*.api.test'],
        ...[`${token.acc}.x.api.test`, 'acct1%2eapi.test', 'user@api.test', '[::1]', '[::1]:8080', '10.0.0.1'],
        ...[
          'api.test\u0000',
          ' api.test',
          'api.test ',
          '\u212a.api.test',
          '\u0130.api.test',
          'xn--a.api.test',
          'api.test,api.test',
        ],
      ]);
    },
  ],
  [
    4,
    'another host or :authority beside the attribute',
    (draft, { random }) =>
      draft.lines.push([
        random.pick(['host', 'Host', ':authority']),
        random.pick([draft.host, draft.host, draft.host.toUpperCase(), 'acct2.api.test', 'api.test', '', 'evil.test']),
      ]),
  ],
  [
    3,
    'a header that names another host',
    (draft, { random }) =>
      draft.lines.push([
        random.pick([
          'x-forwarded-host',
          'forwarded',
          'X-Original-Host',
          'x_forwarded_host',
          'x-host',
          'x-forwarded_server',
        ]),
        random.pick(['acct2.api.test', '']),
      ]),
  ],
];

const forms: readonly Row[] = [
  [
    9,
    'another method',
    (draft, { random }) =>
      (draft.method = random.pick([
        'GET',
        'HEAD',
        'POST',
        'PUT',
        'PATCH',
        'DELETE',
        'OPTIONS',
        'PROPFIND',
        'TRACE',
        'CONNECT',
        'FOO',
        'G',
        'get',
        'Get',
        '',
        'GET ',
        'GET\n',
        'M-SEARCH',
        'G\u0045T',
        'ΓET',
        '*',
        'Z'.repeat(32),
        'Z'.repeat(33),
        'Z'.repeat(5000),
      ])),
  ],
  [
    4,
    'a message without what a check needs',
    (draft, { random }) => {
      const empty = random.pick([
        { attributes: null },
        { attributes: { request: null, context_extensions: {} } },
        { attributes: { request: { http: null }, context_extensions: {} } },
      ]);
      draft.finish.push(() => empty);
    },
  ],
  [
    4,
    'another :path or :method beside the attributes',
    (draft, { random }) => {
      const line = random.pick([
        [':path', '/api/subscriptions/acct2'],
        [':path', draft.path],
        [':method', 'DELETE'],
        [':method', draft.method],
        [':path', ''],
      ] as const);
      draft.lines.push([line[0], line[1]]);
    },
  ],
  [
    3,
    'a query or a fragment as an attribute',
    (draft, { random }) => {
      const attributes = random.pick([
        { query: 'account_id=acct2' },
        { query: draft.query ?? '' },
        { fragment: 'x' },
        { query: draft.query ?? 'x', fragment: '' },
      ]);
      draft.finish.push(message => withHttp(message, http => ({ ...http, ...attributes })));
    },
  ],
  [
    4,
    'headers in both forms',
    (draft, { random, token }) => {
      const other = random.pick([
        { authorization: `Bearer ${token.text}` },
        { authorization: 'Bearer x' },
        { 'x-account-id': 'acct2' },
        { 'x-account-id': token.acc },
        { 'x-request-id': 'r-9' },
        { 'x-auth-acc': 'acct2' },
        {},
      ]);
      draft.finish.push(message => withHttp(message, http => ({ ...http, headers: { ...http.headers, ...other } })));
    },
  ],
  [
    4,
    'entries with value, raw_value or both',
    (draft, { random }) => {
      draft.finish.push(message =>
        withHttp(message, http => ({
          ...http,
          header_map:
            http.header_map === null
              ? null
              : {
                  headers: http.header_map.headers.map(entry => {
                    const text = entry.raw_value.toString();
                    return random.pick([
                      entry,
                      { ...entry, value: text },
                      { key: entry.key, value: text, raw_value: Buffer.alloc(0) },
                      entry,
                      random.chance(0.2) ? { ...entry, value: `${text}x` } : entry,
                    ]);
                  }),
                },
        })),
      );
    },
  ],
  [
    3,
    'bytes in a header that are no UTF-8',
    (draft, { random }) => {
      const bytes = Buffer.from(random.pick([[0xff], [0xc0, 0xaf], [0x80], [0xed, 0xa0, 0x80], [0x61, 0xff]]));
      draft.finish.push(message =>
        withHttp(message, http => {
          if (http.header_map === null) return http;
          const at = random.below(http.header_map.headers.length);
          const headers = http.header_map.headers.map((entry, i) =>
            i === at ? { ...entry, value: '', raw_value: Buffer.concat([entry.raw_value, bytes]) } : entry,
          );
          return { ...http, header_map: { headers } };
        }),
      );
    },
  ],
  [
    2,
    'context extensions',
    draft => {
      draft.finish.push(message =>
        message.attributes === null
          ? message
          : {
              attributes: {
                ...message.attributes,
                context_extensions: { policy: 'allow', account: 'acct2', __proto__x: 'y' },
              },
            },
      );
    },
  ],
];

const rows: readonly Row[] = [...authorization, ...paths, ...queries, ...headers, ...hosts, ...forms];

function replace(draft: RequestDraft, value: string): void {
  drop(draft, 'authorization');
  draft.lines.unshift(['authorization', value]);
}

function drop(draft: RequestDraft, name: string): void {
  for (let i = draft.lines.length - 1; i >= 0; i -= 1)
    if (draft.lines[i]?.[0].toLowerCase() === name) draft.lines.splice(i, 1);
}

function rename(draft: RequestDraft, name: string, other: string): void {
  for (const line of draft.lines) if (line[0] === name) line[0] = other;
}

function addQuery(draft: RequestDraft, parameter: string): void {
  draft.query = draft.query === undefined ? parameter : `${draft.query}&${parameter}`;
}

function accountParameter({ random, setup }: RequestContext): string {
  const { accountQuery } = setup.settings;
  return accountQuery.length === 0 ? 'account_id' : random.pick(accountQuery);
}

function accountHeader({ random, setup }: RequestContext): string {
  const { accountHeaders } = setup.settings;
  return accountHeaders.length === 0 ? 'x-account-id' : random.pick(accountHeaders);
}

function putIn(text: string, more: string, at: number): string {
  return text.slice(0, at) + more + text.slice(at);
}

function indexesOf(text: string, part: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) found.push(at);
  return found;
}
