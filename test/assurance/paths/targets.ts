// Generated request targets: the path of one account, manipulated so that two parsers may see two accounts.
import { pickRow, type Row } from '../generator/changes.ts';
import { type Random, words } from '../generator/random.ts';

export interface Target {
  /** As in the request line. */
  readonly text: string;
  /** The account of the token. */
  readonly account: string;
  readonly tricks: readonly string[];
}

export const accounts = words('acct1 acct2 ACCT1 acct10 a.b ... ~ - _1 accounts subscriptions constructor __proto__');

/** Route templates with `:account_id` and a trailing `/*`. */
export function generateTarget(random: Random, templates: readonly string[]): Target {
  const account = random.pick(accounts);
  const state: Draft = {
    random,
    account,
    other: random.pick(accounts),
    path: pathOf(random, templates, account),
    query: '',
  };
  const count = random.weighted([
    [12, 0],
    [45, 1],
    [28, 2],
    [15, 3],
  ]);
  const tricks = Array.from({ length: count }, () => {
    const [, name, trick] = pickRow(random, rows);
    trick(state);
    return name;
  });
  return { text: state.path + state.query, account, tricks };
}

interface Draft {
  readonly random: Random;
  readonly account: string;
  /** The attacker's target account. */
  readonly other: string;
  path: string;
  query: string;
}

function pathOf(random: Random, templates: readonly string[], account: string): string {
  const template = random.pick(templates);
  const path = template
    .replace(/\/\*$/, '')
    .replaceAll(':account_id', account)
    .replaceAll(/:[a-z]+/g, 'eu');
  return template.endsWith('/*')
    ? path + random.pick(['', '/', '/items', '/items/7', '/accounts', `/accounts/${account}`])
    : path;
}

const separators = [
  ...words('/ // /./ /../ %2f %2F %5c %252f %c0%af %e0%80%af %ef%bc%8f /;/ /%00/ /.;/ /%2e/ : ? %3f'),
  ...['\\', '/\\', '\uff0f', '\u2215', '/ /'],
];
const climbs = [
  ...words('.. . %2e%2e .%2e %2e. %2E%2E %252e%252e ..; ..;a=b .; ..%00 ..%5c ..%2f ... .... %c0%ae%c0%ae'),
  ...words('%e0%80%ae. ..%09 %u002e%u002e .%00.'),
  ...['..\\', '. .', '\u2024\u2024', '\uff0e\uff0e', '..\t', ''],
];
const endings = [
  ...words('/ // . .. %20 %00 %09 %0a %0d%0a ; ;a=b ;account_id=acct2 # #/../acct2 %23 ~ @ : ! * + % %zz'),
  ...words('%1 , = %c3%a9 %ff | ^ " < { .json .acct2 @acct2 :acct2 ~acct2 ,acct2 %2facct2 %5cacct2'),
  ...[' ', '\0', '\t', '$', "'", '\u00e9', '\u200b', '\ufeff', '`'],
];

const noise = [
  ...words('[ ] [] %5b %5D . %2e + %20 ; & = %3d %26 % %25 %00 ? # " _ %5f %255f - A %C2%AD %0a ( ) { } |'),
  ...words('/ : @ * ! ~ ,'),
  ...[' ', '\0', "'", '\u00ad', '\u200b', '\uff3f', '\ufeff', '\t', '\\'],
];

type Trick = (draft: Draft) => void;

function row(weight: number, name: string, trick: Trick): Row<Trick> {
  return [weight, name, trick];
}

const rows: readonly Row<Trick>[] = [
  row(8, 'a character encoded', draft => {
    const at = draft.random.below(draft.path.length);
    const encoded = draft.random.pick([encode, upper, twice, thrice, overlong, asU])(draft.path.charCodeAt(at));
    draft.path = draft.path.slice(0, at) + encoded + draft.path.slice(at + 1);
  }),
  row(3, 'every character encoded', draft => {
    const encoded = draft.random.pick([encode, twice]);
    draft.path = `/${Array.from(draft.path.slice(1), char => (char === '/' ? char : encoded(char.charCodeAt(0)))).join('')}`;
  }),
  row(6, 'another separator', draft => {
    draft.path = replacedOne(draft, '/', draft.random.pick(separators));
  }),
  row(7, 'a climb put in', draft => {
    const segments = draft.path.split('/');
    const at = 1 + draft.random.below(segments.length);
    segments.splice(
      at,
      0,
      ...draft.random.pick([
        [draft.random.pick(climbs)],
        [draft.other, draft.random.pick(climbs)],
        [draft.random.pick(climbs), draft.other],
      ]),
    );
    draft.path = segments.join('/');
  }),
  row(4, 'a climb to the other account', draft => {
    draft.path += `/${draft.random.pick(climbs)}/${draft.other}`;
  }),
  row(5, 'the account of another', draft => {
    draft.path = replacedOne(draft, draft.account, draft.other);
  }),
  row(4, 'the account of another after it', draft => {
    draft.path += draft.random.pick([`/${draft.other}`, `/accounts/${draft.other}`, `/../accounts/${draft.other}`]);
  }),
  row(8, 'an ending', draft => {
    const segments = draft.path.split('/');
    const at = draft.random.below(segments.length);
    segments[at] = (segments[at] ?? '') + draft.random.pick(endings);
    draft.path = segments.join('/');
  }),
  row(5, 'a beginning', draft => {
    const segments = draft.path.split('/');
    const at = 1 + draft.random.below(segments.length);
    segments[at] =
      draft.random.pick([
        ...words(`@ ~ : . ; % %20 %00 ! * - _ ( ${draft.other}@ ${draft.other}: ${draft.other};`),
        ...words(`${draft.other}%2f`),
        ...[' ', '\t', '$'],
      ]) + (segments[at] ?? '');
    draft.path = segments.join('/');
  }),
  row(6, 'another case', draft => {
    const segments = draft.path.split('/');
    const at = draft.random.below(segments.length);
    const segment = segments[at] ?? '';
    segments[at] = draft.random.pick([
      segment.toUpperCase(),
      segment.toLowerCase(),
      segment.charAt(0).toUpperCase() + segment.slice(1),
      segment.replace('s', '\u017f'),
      segment.replace('i', '\u0131'),
    ]);
    draft.path = segments.join('/');
  }),
  row(4, 'everything in another case', draft => {
    draft.path = draft.random.chance(0.5) ? draft.path.toUpperCase() : draft.path.replace('/api', '/Api');
  }),
  row(4, 'a segment of a template or of a pattern', draft => {
    const segments = draft.path.split('/');
    segments[1 + draft.random.below(segments.length)] = draft.random.pick(
      words(':account_id :other * ** {account_id} *rest .* (.*) __proto__ me -'),
    );
    draft.path = segments.join('/');
  }),
  row(4, 'a segment more or less', draft => {
    const segments = draft.path.split('/');
    const at = 1 + draft.random.below(segments.length);
    if (draft.random.chance(0.5)) segments.splice(at, 1);
    else
      segments.splice(
        at,
        0,
        draft.random.pick(['accounts', 'api', 'subscriptions', 'x', draft.other, ':', '@', '~~', '-.-']),
      );
    draft.path = segments.join('/');
  }),
  row(
    4,
    'absolute form',
    draft =>
      (draft.path =
        draft.random.pick([
          ...words('http://api.test http://evil.test https://api.test HTTP://api.test http://acct2@api.test'),
          ...words('http://api.test:80 ftp://api.test http: http:/ //api.test /// /http://api.test //'),
          '\\\\api.test',
          '/\\api.test',
        ]) + draft.path),
  ),
  row(2, 'no slash first', draft => {
    draft.path = draft.path.slice(1);
  }),
  row(3, 'long', draft => {
    const { random } = draft;
    draft.path += random.pick([
      ...[`/${'a'.repeat(1990)}`, '/a'.repeat(900), `/${'a'.repeat(2040)}`, '/..'.repeat(300)],
      ...['/a/..'.repeat(300), '%2e'.repeat(200)],
    ]);
  }),
  row(7, 'a query that looks like a path', draft =>
    add(
      draft,
      draft.random.pick([
        ...words(`/../../acct2 ? # %2e%2e%2f ;/x :account_id /accounts/${draft.other}`),
        ...words(`x=/../${draft.other} / #/${draft.other}`),
        '\\..\\',
      ]),
    ),
  ),
  row(9, 'an account in the query', draft => {
    const name = draft.random.pick([
      ...words('account_id account_id account_id Account_id ACCOUNT_ID account_id[] account_id[0]'),
      ...words('account_id%5B%5D account%5fid account%255fid account.id +account_id account_id+'),
      ...words('%20account_id account_id%00 a;account_id a=1;account_id account_id; [account_id]'),
      ...words('[account_id account_id] []account_id [[account_id]] [account_id][0] %5Baccount_id%5D'),
      ...words('?account_id account%5Fid %61ccount_id account_id%3D account-id x[account_id]'),
      ...words('account_id[a] %EF%BB%BFaccount_id'),
    ]);
    const { account, other } = draft;
    const value = draft.random.pick([
      ...words(`${account}&account_id=${other} ${other}&account_id=${account} ${account}%00 ${account}+`),
      ...words(`${account}%20 ${account};account_id=${other} ${account}%26account_id=${other}`),
      ...[account, account, other, '', encode(account.charCodeAt(0)) + account.slice(1)],
    ]);
    add(draft, `${name}=${value}`);
  }),
  row(8, 'noise in the name of an account parameter', draft => {
    const { random, account, other } = draft;
    let name = 'account_id';
    for (let i = 1 + random.below(3); i > 0; i -= 1) {
      const at = random.below(name.length + 1);
      name = name.slice(0, at) + random.pick(noise) + name.slice(at + (random.chance(0.2) ? 1 : 0));
    }
    add(draft, `${name}=${random.pick([account, other])}`);
  }),
  row(3, 'another query', draft =>
    add(
      draft,
      draft.random.pick([
        ...words('a=b account=acct2 q=account_id a&b =&= %zz account_ids=1 __proto__[account_id]=acct2'),
        ...words(`__proto__=x a[account_id]=acct2 account_id_=x a=b&amp;account_id=${draft.other}`),
        '',
      ]),
    ),
  ),
];

function add(draft: Draft, query: string): void {
  draft.query += (draft.query === '' ? '?' : '&') + query;
}

function replacedOne({ path, random }: Draft, part: string, by: string): string {
  const places: number[] = [];
  for (let at = path.indexOf(part); at !== -1; at = path.indexOf(part, at + 1)) places.push(at);
  if (places.length === 0) return path;
  const at = random.pick(places);
  return path.slice(0, at) + by + path.slice(at + part.length);
}

function encode(code: number): string {
  return `%${code.toString(16).padStart(2, '0')}`;
}

function upper(code: number): string {
  return encode(code).toUpperCase();
}

function twice(code: number): string {
  return `%25${encode(code).slice(1)}`;
}

function thrice(code: number): string {
  return `%2525${encode(code).slice(1)}`;
}

// An overlong UTF-8 encoding, which a lax decoder accepts (CVE-2000-0884).
function overlong(code: number): string {
  return encode(0xc0 | ((code >> 6) & 0x1f)) + encode(0x80 | (code & 0x3f));
}

function asU(code: number): string {
  return `%u${code.toString(16).padStart(4, '0')}`;
}
