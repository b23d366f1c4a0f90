// Generated targets for routes with `characters: rfc3986`: paths of files with any name, and paths that a server may read as another route,
// or as that of another account.
import { type Random, words } from '../generator/random.ts';
import type { Target } from './targets.ts';

const accounts = ['acct1', 'acct2'] as const;
const literals = ['admin', 'stats', 'kind', 'private', 'shared', 'files'] as const;
const fileNames = [
  ...words('report.pdf %C3%9Cbersicht%20(1).pdf a,b.csv C++ Products(1) 1%2B1 a=b&c user@example.com'),
  ...words('%E6%97%A5%E6%9C%AC 50%20* ... ~ a.b %7Ebob ! %20 acct2 %23 %3F'),
  "O'Brien",
  '$metadata',
] as const;
/** What one server may drop, decode or resolve. */
const oddities = [
  ...words('%20 %09 %00 %0a . .. %2e %2E%2e .%20 %20. %C2%A0 %E3%80%80 %E2%80%8B %EF%BB%BF %2f %2F %5c'),
  ...words('%25 %2561 %3b %3Ba=b ; ;a=b %c0%ae %c0%af %EF%BC%8F %EF%BC%8E %FF %C3 %ED%A0%80 %C2%85 %7F'),
  ...words('%zz % %u0061 * + , : ( %3A %2A %40 // /./ /../ /. /.. /%2e%2e/ / ? %3f # %23 & = @ | ^ {x}'),
  ...['\\', '$', '\u00e9', ' '],
] as const;

export function generateWideTarget(random: Random): Target {
  const account = random.pick(accounts);
  const other = random.pick(accounts);
  const tricks: string[] = [];
  const literal = random.pick(literals);
  const segments = random.weighted<string[]>([
    [5, ['files', account, random.pick(fileNames)]],
    [4, ['files', account, literal, random.pick(fileNames)]],
    [2, ['files', account, random.pick(fileNames), random.pick(fileNames)]],
    [2, ['files', account, 'kind', random.pick(fileNames)]],
    [2, ['files', account, random.pick(fileNames), '..', literal]],
    [2, ['files', account, '..', other, random.pick(fileNames)]],
    [2, ['shared', random.pick([...fileNames, literal])]],
    [1, ['files', account]],
    [1, ['files', other, literal]],
  ]);
  const count = random.weighted([
    [3, 0],
    [5, 1],
    [3, 2],
    [1, 3],
  ]);
  for (let i = 0; i < count; i += 1) {
    const at = random.below(segments.length);
    const [name, change] = random.pick(changes);
    segments[at] = change(random, segments[at] ?? '');
    tricks.push(name);
  }
  const end = random.chance(0.15) ? '/' : '';
  const query = random.chance(0.1) ? `?account_id=${random.pick([account, other])}` : '';
  return { text: `/${segments.join('/')}${end}${query}`, account, tricks };
}

const changes: readonly (readonly [name: string, change: (random: Random, segment: string) => string])[] = [
  ['a letter encoded', withEncoding],
  ['a letter encoded twice', (random, segment) => withEncoding(random, segment).replace('%', '%25')],
  [
    'every letter encoded',
    (_, segment) => Array.from(Buffer.from(segment), byte => `%${byte.toString(16).padStart(2, '0')}`).join(''),
  ],
  ['upper case', (_, segment) => segment.toUpperCase()],
  ['a letter in upper case', (random, segment) => replaceAt(random, segment, letter => letter.toUpperCase())],
  ['a letter that folds to ASCII', (_, segment) => segment.replace('i', '%C4%B1').replace('s', '%C5%BF')],
  ['a letter that some fold to ASCII', (_, segment) => segment.replace('i', '%C4%B0').replace('k', '%E2%84%AA')],
  ['an oddity before', (random, segment) => random.pick(oddities) + segment],
  ['an oddity behind', (random, segment) => segment + random.pick(oddities)],
  ['an oddity inside', (random, segment) => replaceAt(random, segment, letter => letter + random.pick(oddities))],
  ['an oddity alone', random => random.pick(oddities)],
  ['a literal in its place', random => random.pick(literals)],
];

function withEncoding(random: Random, segment: string): string {
  return replaceAt(random, segment, letter => {
    const code = letter.charCodeAt(0);
    return code > 127 ? letter : `%${code.toString(16).padStart(2, '0')}`;
  });
}

function replaceAt(random: Random, text: string, change: (letter: string) => string): string {
  const at = random.below(Math.max(text.length, 1));
  return text.slice(0, at) + change(text.charAt(at)) + text.slice(at + 1);
}
