// Changes to the target of a request: its path and its query.
import { accounts } from './identities.ts';
import { words } from './random.ts';
import { type RequestContext, type RequestDraft, type RequestRow, row } from './request-draft.ts';

const odd = [
  ...words('%2e %2F %3f %3F %252e %00 % %zz ; ;x=1 # #x * {account} + ! ( ) & = , " < | ^ ` [ $ \' \\'),
  ...words(' |\t|\0|\n|\r\n|\u0430|\uff0f|\u2024|\u00e9|\u212a|\ufeff|\u007f', '|'),
] as const;

export const paths: readonly RequestRow[] = [
  row(34, 'another account in the path', (draft, { random, token }) => {
    const near = [
      ...accounts,
      ...words(`${token.acc}0 ${token.acc}. ${token.acc}~ :${token.acc} @${token.acc} ${token.acc.slice(1)}`),
      token.acc.toUpperCase(),
    ];
    const other = random.pick(near);
    const places = indexesOf(draft.path, token.acc);
    if (places.length === 0) draft.path = `${draft.path.replace(/\/$/, '')}/${other}`;
    else {
      const at = random.pick(places);
      draft.path = draft.path.slice(0, at) + other + draft.path.slice(at + token.acc.length);
    }
  }),
  row(6, 'letters of another case', (draft, { random }) => {
    const segments = draft.path.split('/');
    const at = random.below(segments.length);
    const segment = segments[at] ?? '';
    segments[at] = random.pick([
      segment.toUpperCase(),
      segment.toLowerCase(),
      segment.charAt(0).toUpperCase() + segment.slice(1),
    ]);
    draft.path = segments.join('/');
  }),
  row(8, 'a segment that a server may cut or trim', (draft, { random }) => {
    const segments = draft.path.split('/');
    const at = 1 + random.below(Math.min(segments.length, 5));
    const more = words('.json .JSON :reset @2 %20 ,x .a.b %C2%A0 %20.x :a%20 .%41 %C5%BF ~x -x');
    const segment = segments[at] ?? 'settings';
    segments[at] = random.chance(0.9) ? segment + random.pick(more) : `%20${segment}`;
    draft.path = segments.join('/');
  }),
  row(5, 'a slash at the end', draft => (draft.path += '/')),
  row(5, 'a character of the grammar put in', (draft, { random }) => {
    draft.path = putIn(
      draft.path,
      random.pick(['.', '_', '~', ':', '@', '-', 'a', '0', 'Z']),
      random.below(draft.path.length + 1),
    );
  }),
  row(8, 'a character outside the grammar put in', (draft, { random }) => {
    draft.path = putIn(draft.path, random.pick(odd), random.below(draft.path.length + 1));
  }),
  row(5, 'a character percent-encoded', (draft, { random }) => {
    const at = random.below(draft.path.length);
    const hex = draft.path.charCodeAt(at).toString(16);
    draft.path =
      draft.path.slice(0, at) +
      random.pick([`%${hex}`, `%${hex.toUpperCase()}`, `%25${hex}`]) +
      draft.path.slice(at + 1);
  }),
  row(6, 'a segment put in', (draft, { random }) => {
    const segments = draft.path.split('/');
    segments.splice(
      1 + random.below(segments.length),
      0,
      random.pick(['', '.', '..', '...', '..;', '.;x', ';', 'x', 'accounts', 'api', '%2e%2e', ':account_id', '@']),
    );
    draft.path = segments.join('/');
  }),
  row(4, 'a segment left out', (draft, { random }) => {
    const segments = draft.path.split('/');
    segments.splice(1 + random.below(segments.length - 1), 1);
    draft.path = segments.join('/');
  }),
  row(3, 'the way round by dot segments', (draft, { random }) => {
    draft.path = random.pick([
      `${draft.path}/../acct2`,
      draft.path.replace('/', '/x/../'),
      `${draft.path}/.`,
      `${draft.path}/..`,
    ]);
  }),
  row(5, 'another path', (draft, { random, token }) => {
    draft.path = random.pick([
      ...words(`/ * ? /.. // //evil.test/api/subscriptions http://evil.test${draft.path} /x${draft.path}`),
      ...words(`${draft.path}X /api /api/subscriptions /api/subscriptionsX /${token.acc}`),
      ...words('/envoy.service.auth.v3.Authorization/Check /healthz /public/x'),
      ...words('/.well-known/oauth-protected-resource/subscriptions'),
      '',
      draft.path.slice(1),
    ]);
  }),
  row(3, 'a path as long as the bound, or one more', (draft, { random }) => {
    const length = 2048 + random.pick([-1, 0, 1]);
    draft.path = `${draft.path.replace(/\/$/, '')}/`.padEnd(length, 'a');
  }),
  row(3, 'a target as long as the bound, or one more', (draft, { random }) => {
    const own = draft.query === undefined ? '' : `${draft.query}&`;
    const room = 8192 + random.pick([-1, 0, 1]) - Buffer.byteLength(`${draft.path}?${own}`);
    draft.query =
      own +
      (random.chance(0.5)
        ? 'a'.repeat(Math.max(room, 1))
        : 'a'.repeat(Math.max(room, 1) % 2) + '\u00e9'.repeat(Math.floor(Math.max(room, 1) / 2)));
  }),
];

export const queries: readonly RequestRow[] = [
  row(5, 'a query that does not matter', (draft, { random }) =>
    addQuery(
      draft,
      random.pick([
        ...words('& a a=1 a=1&a=2 q=%zz % =x accounts=acct2 aid=acct2 x=account_id a=b?c xaccount_id=1'),
        ...words('account_id2=acct2 ? /../.. access_token=x ACCOUNT=1'),
        ...words('|\u00e9=\u00e9|\u0000', '|'),
      ]),
    ),
  ),
  row(10, 'an account parameter of another value', (draft, context) => {
    const { random, token } = context;
    const values = [
      ...words(`acct2 ${token.acc}0 ${token.acc}%20 %61cct1 ${token.acc}+ ${token.acc};x ${token.acc}=`),
      ...words(`${token.acc}?|${token.acc}|| ${token.acc}|${token.acc.toUpperCase()}|\u00e9|${token.acc}\0`, '|'),
    ];
    addQuery(draft, `${accountParameter(context)}=${random.pick(values)}`);
  }),
  row(2, 'an account parameter without a value', (draft, context) => addQuery(draft, accountParameter(context))),
  row(3, 'a parameter that overrides the method, or nearly', (draft, { random }) =>
    addQuery(
      draft,
      random.pick([
        ...words('_method=DELETE %5fMethod=DELETE a=1;[_method]=DELETE X-HTTP_Method-Override=DELETE'),
        ...words('=x.http.method.override method=DELETE a=_method my_method=1 a=1%26_method=DELETE'),
      ]),
    ),
  ),
  row(9, 'a look-alike of an account parameter', (draft, context) => {
    const { random, token } = context;
    const name = accountParameter(context);
    const encoded = (text: string, at: number): string =>
      `${text.slice(0, at)}%${text.charCodeAt(at).toString(16)}${text.slice(at + 1)}`;
    const at = random.below(name.length);
    const alike = random.pick([
      ...words(`+${name} ${name}+ %20${name} ${name}%20 ${name}[] ${name}[0] ${name}[a][b] ${name}%5B%5D`),
      ...words(`${name}%5b0%5d a;${name} a=1;${name} ${name};a ${name}%00 %00${name} ?${name} !${name}`),
      ...words(`%21${name} %2521${name.toUpperCase()} +!${name}[] a;!${name} a!${name} a=1%26${name}`),
      ...words(`a=1%2526${name} a=1%3B!${name} a=1%26b${name} [${name}] =${name} ==${name} %3D${name}`),
      ...words(`%2e${name} filter.${name} filter[${name}] a=1;=${name} ${name}? ${name}%26a a%26${name}`),
      ...words(`a%3b${name} %u0061${name.slice(1)} ${name}% ${name}%2 %${name} ${name}s x${name} ${name}.`),
      ...words(`.${name} ${name}_ %5B${name} user[${name}]`),
      name.toUpperCase(),
      name.toLowerCase(),
      name.charAt(0).toUpperCase() + name.slice(1),
      encoded(name, at),
      encoded(name, at).replace('%', '%25'),
      ` ${name}`,
      ...words('.|%2e|%5F| |+|-|', '|').map(sign => name.replaceAll('_', sign)),
      name.replace('a', '\uff41'),
      `\u200b${name}`,
    ]);
    addQuery(draft, `${alike}=${random.pick([token.acc, token.acc, 'acct2', ''])}`);
  }),
  row(2, 'an account parameter twice', (draft, context) => {
    const name = accountParameter(context);
    addQuery(draft, `${name}=${context.token.acc}&${name}=${context.random.pick([context.token.acc, 'acct2'])}`);
  }),
  row(2, 'a fragment', draft => addQuery(draft, 'a#b')),
];

function addQuery(draft: RequestDraft, parameter: string): void {
  draft.query = draft.query === undefined ? parameter : `${draft.query}&${parameter}`;
}

function accountParameter({ random, setup }: RequestContext): string {
  const { accountQuery } = setup.settings;
  return accountQuery.length === 0 ? 'account_id' : random.pick(accountQuery);
}

function putIn(text: string, more: string, at: number): string {
  return text.slice(0, at) + more + text.slice(at);
}

function indexesOf(text: string, part: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) found.push(at);
  return found;
}
