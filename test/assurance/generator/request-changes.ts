// Changes to a request, invalid or unusual but valid, one at a time, independent of its token.
import { pickRow } from './changes.ts';
import { headers, hosts } from './header-changes.ts';
import { words } from './random.ts';
import { drop, type RequestContext, type RequestDraft, type RequestRow, row, withHttp } from './request-draft.ts';
import { paths, queries } from './target-changes.ts';

/** Makes one change and returns its name. */
export function changeRequest(draft: RequestDraft, context: RequestContext): string {
  const [, name, change] = pickRow(context.random, rows);
  change(draft, context);
  return name;
}

const authorization: readonly RequestRow[] = [
  row(5, 'no Authorization', draft => drop(draft, 'authorization')),
  row(3, 'an empty Authorization', (draft, { random }) =>
    replace(draft, random.pick(['', ' ', '\t', 'Bearer', 'Bearer ', 'bearer \t '])),
  ),
  row(4, 'another scheme', (draft, { random, token }) =>
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
  ),
  row(4, 'the scheme in another case', (draft, { random, token }) =>
    replace(draft, `${random.pick(['bearer', 'BEARER', 'bEaReR'])} ${token.text}`),
  ),
  row(3, 'white space around the value', (draft, { random, token }) =>
    replace(draft, random.pick([` Bearer ${token.text}`, `Bearer ${token.text} `, `\t Bearer ${token.text}\t\t`])),
  ),
  row(4, 'another separator than one space', (draft, { random, token }) =>
    replace(
      draft,
      `Bearer${random.pick(['  ', '     ', ' \t ', '\t', ' \t', '\u00a0', '\u2003', '\v', '\f', '=', ':', ' \u00a0', '\n'])}${token.text}`,
    ),
  ),
  row(4, 'something after the token', (draft, { random, token }) =>
    replace(
      draft,
      `Bearer ${token.text}${random.pick([' b', ';x=1', '"', '\0', '\u00e9', ' Bearer x', '\r\nx: y', '='])}`,
    ),
  ),
  row(2, 'the token in quotes', (draft, { token }) => replace(draft, `Bearer "${token.text}"`)),
  row(3, 'a comma', (draft, { random, token }) =>
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
  ),
  row(3, 'two lines', (draft, { random, token }) =>
    draft.lines.push([
      random.pick(['authorization', 'Authorization']),
      random.pick([`Bearer ${token.text}`, 'Basic eDp5', 'x']),
    ]),
  ),
  row(2, 'a second, empty line', (draft, { random }) =>
    draft.lines.splice(random.below(2), 0, [random.pick(['authorization', 'AUTHORIZATION']), random.pick(['', ' '])]),
  ),
  row(2, 'the name in another case', draft => rename(draft, 'authorization', 'Authorization')),
  row(3, 'the token elsewhere', (draft, { random, token }) => {
    drop(draft, 'authorization');
    if (random.chance(0.3)) draft.query = `access_token=${token.text}`;
    else
      draft.lines.push([
        random.pick([
          ...words('proxy-authorization x-access-token cookie x-forwarded-authorization authorization_'),
          ' authorization',
        ]),
        `Bearer ${token.text}`,
      ]);
  }),
];

const forms: readonly RequestRow[] = [
  row(9, 'another method', (draft, { random }) => {
    draft.method = random.pick([
      ...words('GET HEAD POST PUT PATCH DELETE OPTIONS PROPFIND TRACE CONNECT FOO G get Get M-SEARCH'),
      ...words('ΓET *'),
      '',
      'GET ',
      'GET\n',
      'G\u0045T',
      'Z'.repeat(32),
      'Z'.repeat(33),
      'Z'.repeat(5000),
    ]);
  }),
  row(4, 'a message without what a check needs', (draft, { random }) => {
    const empty = random.pick([
      { attributes: null },
      { attributes: { request: null, context_extensions: {} } },
      { attributes: { request: { http: null }, context_extensions: {} } },
    ]);
    draft.finish.push(() => empty);
  }),
  row(4, 'another :path or :method beside the attributes', (draft, { random }) => {
    const line = random.pick([
      [':path', '/api/subscriptions/acct2'],
      [':path', draft.path],
      [':method', 'DELETE'],
      [':method', draft.method],
      [':path', ''],
    ] as const);
    draft.lines.push([line[0], line[1]]);
  }),
  row(3, 'a query or a fragment as an attribute', (draft, { random }) => {
    const attributes = random.pick([
      { query: 'account_id=acct2' },
      { query: draft.query ?? '' },
      { fragment: 'x' },
      { query: draft.query ?? 'x', fragment: '' },
    ]);
    draft.finish.push(message => withHttp(message, http => ({ ...http, ...attributes })));
  }),
  row(4, 'headers in both forms', (draft, { random, token }) => {
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
  }),
  row(4, 'entries with value, raw_value or both', (draft, { random }) => {
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
  }),
  row(3, 'bytes in a header that are no UTF-8', (draft, { random }) => {
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
  }),
  row(2, 'context extensions', draft => {
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
  }),
];

const rows: readonly RequestRow[] = [...authorization, ...paths, ...queries, ...headers, ...hosts, ...forms];

function replace(draft: RequestDraft, value: string): void {
  drop(draft, 'authorization');
  draft.lines.unshift(['authorization', value]);
}

function rename(draft: RequestDraft, name: string, other: string): void {
  for (const line of draft.lines) if (line[0] === name) line[0] = other;
}
