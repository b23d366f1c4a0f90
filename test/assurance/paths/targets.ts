// Generated request targets: the path of one account, changed so that two readers may see two accounts.
import { pickRow, type Row } from '../generator/changes.ts';
import { type Random, words } from '../generator/random.ts';

export interface Layout {
  readonly name: string;
  readonly templates: readonly string[];
  /** Those of them that no token of the comparison may use. */
  readonly narrowed?: readonly string[];
  /** Those of them with `characters: rfc3986`. */
  readonly wide?: readonly string[];
}

const ofOthers = ['/files/:account_id/admin/*', '/files/:account_id/stats/*', '/shared/admin/*'];
const ofFiles = [...ofOthers, '/files/:account_id/*', '/files/:account_id/kind/:item', '/shared/:name'];

export const layouts: readonly Layout[] = [
  { name: 'accounts and the rest', templates: ['/api/subscriptions/*', '/api/subscriptions/accounts/:account_id/*'] },
  { name: 'an account first', templates: ['/api/subscriptions/:account_id/*'] },
  {
    name: 'an account in the middle',
    templates: ['/api/:place/accounts/:account_id', '/api/:place/accounts/:account_id/items/:id', '/api/subscriptions'],
  },
  {
    name: 'files with any name',
    templates: [...ofFiles, '/files/:account_id/private/*'],
    narrowed: [...ofOthers, '/files/:account_id/private/*'],
    wide: ofFiles,
  },
];

export interface Target {
  /** As in the request line. */
  readonly text: string;
  /** The account of the token. */
  readonly account: string;
  readonly isChanged: boolean;
}

export const accounts = words('acct1 acct2 ACCT1 acct10 a.b ... ~ - _1 accounts subscriptions constructor __proto__');
const fileNames = words(
  'report.pdf %C3%9Cbersicht%20(1).pdf a,b.csv C++ 1%2B1 a=b&c user@example.com $metadata ... %23',
);
const literals = words('admin stats kind private shared files accounts api subscriptions :account_id * __proto__ me');
/** What some reader drops, decodes, resolves or splits at. */
const oddities = [
  ...words('/ // /./ /../ %2f %2F %5c %252f %c0%af %ef%bc%8f /;/ /%00/ /.;/ /%2e/ : ? %3f .. . %2e%2e .%2e %252e%252e'),
  ...words('..; ..;a=b .; ..%00 ..%5c ..%2f .... %c0%ae%c0%ae ..%09 %u002e%u002e %20 %00 %09 %0a ; ;a=b # %23 ~ @ ! *'),
  ...words('+ % %zz %1 , = %c3%a9 %ff | ^ " < { .json .acct2 @acct2 :acct2 %2facct2 %C2%A0 %EF%BB%BF %ED%A0%80 ( &'),
  ...words("\\|/\\|..\\|\uff0f|\u2024\u2024|\uff0e\uff0e|..\t| |\0|$|'|\u200b|\ufeff|", '|'),
];
const noise = [
  ...words('[ ] [] %5b %5D . %2e + %20 ; & = %3d %26 % %25 %00 ? # " _ %5f %255f - A %C2%AD %0a ( ) { } | [0] [a]'),
  ...words(" #\0#'#\u00ad#\u200b#\uff3f#\ufeff#\t#\\", '#'),
];
const encodings: readonly ((code: number) => string)[] = [
  code => `%${hex(code)}`,
  code => `%${hex(code).toUpperCase()}`,
  code => `%25${hex(code)}`,
  code => `%2525${hex(code)}`,
  code => `%u00${hex(code)}`,
  // Overlong UTF-8, which a lax decoder accepts (CVE-2000-0884).
  code => `%${hex(0xc0 | ((code >> 6) & 0x1f))}%${hex(0x80 | (code & 0x3f))}`,
];
const hex = (code: number): string => (code & 0xff).toString(16).padStart(2, '0');

interface Draft {
  readonly random: Random;
  readonly account: string;
  /** The account that an attacker wants. */
  readonly other: string;
  segments: string[];
  /** In front of the path. */
  origin: string;
  query: string;
}

export function generateTarget(random: Random, layout: Layout): Target {
  const account = random.pick(accounts);
  const segments = pathOf(random, layout, account).split('/').slice(1);
  const draft: Draft = { random, account, other: random.pick(accounts), segments, origin: '', query: '' };
  const count = random.weighted([
    [12, 0],
    [45, 1],
    [28, 2],
    [15, 3],
  ]);
  for (let i = 0; i < count; i += 1) pickRow(random, changes)[2](draft);
  return { text: `${draft.origin}/${draft.segments.join('/')}${draft.query}`, account, isChanged: count > 0 };
}

function pathOf(random: Random, { templates, wide }: Layout, account: string): string {
  const template = random.pick(templates);
  const rests = ['', '/', '/items', '/items/7', '/accounts', `/accounts/${account}`];
  const rest = (): string =>
    wide === undefined ? random.pick(rests) : `/${random.pick([...fileNames, ...fileNames, ...literals])}`;
  return template
    .replaceAll(':account_id', account)
    .replaceAll(/:[a-z]+/g, wide === undefined ? 'eu' : random.pick(fileNames))
    .replace(/\/\*$/, rest);
}

function change(draft: Draft, ...makes: readonly ((segment: string) => string)[]): void {
  const at = draft.random.below(draft.segments.length);
  draft.segments[at] = draft.random.pick(makes)(draft.segments[at] ?? '');
}

function inside(random: Random, text: string, make: (character: string) => string): string {
  const at = random.below(Math.max(text.length, 1));
  return text.slice(0, at) + make(text.charAt(at)) + text.slice(at + 1);
}

const changes: readonly Row<(draft: Draft) => void>[] = [
  [12, 'a character encoded', draft => change(draft, text => inside(draft.random, text, each => encoded(draft, each)))],
  [3, 'a segment encoded', draft => change(draft, text => [...text].map(c => `%${hex(c.charCodeAt(0))}`).join(''))],
  [
    20,
    'an oddity',
    draft => {
      const odd = draft.random.pick(oddities);
      change(
        draft,
        text => odd + text,
        text => text + odd,
        text => inside(draft.random, text, each => each + odd),
        () => odd,
      );
    },
  ],
  [
    12,
    'a way to the other account',
    ({ random, segments, other }) => {
      const odd = random.pick(oddities);
      const below = ['accounts', other];
      const put = random.pick([[odd], [other], [odd, other], [other, odd], below, ['..', ...below]]);
      segments.splice(1 + random.below(segments.length), 0, ...put);
    },
  ],
  [
    5,
    'the other account in the place of its own',
    draft => {
      draft.segments = draft.segments.map(each => each.replace(draft.account, draft.other));
    },
  ],
  [
    8,
    'another case',
    draft =>
      change(
        draft,
        text => text.toUpperCase(),
        text => inside(draft.random, text, each => each.toUpperCase()),
        text => text.replace('s', '\u017f'),
        text => text.replace('i', '\u0131'),
        text => text.replace('i', '%C4%B1').replace('k', '%E2%84%AA'),
      ),
  ],
  [6, 'a literal in the place of a segment', draft => change(draft, () => draft.random.pick(literals))],
  [3, 'a segment less', ({ random, segments }) => void segments.splice(random.below(segments.length), 1)],
  [
    4,
    'an absolute form',
    draft => {
      const forms = words(
        'http://api.test https://evil.test HTTP://api.test http://acct2@api.test http: //api.test /// \\\\api.test',
      );
      draft.origin = draft.random.pick(forms);
    },
  ],
  [
    2,
    'a long path',
    ({ random, segments }) => {
      segments.push(...random.pick([['a'.repeat(2040)], 'a/'.repeat(900).split('/'), 'a/../'.repeat(300).split('/')]));
    },
  ],
  [
    7,
    'a query that looks like a path',
    draft =>
      add(draft, draft.random.pick(['/../../acct2', '?', '#', '%2e%2e%2f', ';/x', `/accounts/${draft.other}`, '..\\'])),
  ],
  [
    16,
    'an account in the query',
    draft => {
      const { random, account, other } = draft;
      let name = random.pick(words('account_id account_id account_id[] account_id[0] account_id%5B%5D account%5fid'));
      for (let i = random.below(3); i > 0; i -= 1) {
        name = random.chance(0.5)
          ? inside(random, name, each => random.pick(noise) + each)
          : random.pick([name + random.pick(noise), `x[${name}]`, `a;${name}`]);
      }
      add(
        draft,
        `${name}=${random.pick([account, account, other, '', `${account}&account_id=${other}`, `${account}%26account_id=${other}`])}`,
      );
    },
  ],
];

function encoded({ random }: Draft, character: string): string {
  return character === '' ? '' : random.pick(encodings)(character.charCodeAt(0));
}

function add(draft: Draft, query: string): void {
  draft.query += (draft.query === '' ? '?' : '&') + query;
}
