// Generated queries that name an account, plainly or by a name that only some parsers take for the configured one.
import type { Random } from '../generator/random.ts';

export const parameter = 'account_id';

const names = [
  ...[
    'accountId',
    'AccountId',
    'account-id',
    'ACCOUNT_ID',
    'account.id',
    'account',
    'id',
    '_id',
    'accountid',
    'a',
    'filter',
  ],
  ...['utf8', '_', 'account id', '_method', 'x'],
] as const;
const accounts = ['acct1', 'acct2', 'acct2', '', 'acct2,acct1', 'acct%32', 'acct+2', 'acct2;x'] as const;
/** What some parser treats in its own way. */
const marks = [
  ...['=', '==', '&', ';', '.', '[', ']', '?', '!', '+', '_', '-', '[]', '[0]', '[a]', '[[', ']]', '][', '.x', 'x.'],
  ...['%3D', '%26', '%3B', '%2E', '%5B', '%5D', '%3F', '%21', '%2B', '%20', '%09', '%0a', '%0D', '%00', '%5B%5D'],
  ...[' ', '*', '**', '@', '$', ':', ',', '/', '|', '~', '^', '{', '}', '(', ')', '"', "'", '\\', '`', '<', '%', '%%'],
  ...['%2525', '%253D', '%252e', '%255B', '%C2%A0', '%E3%80%80', '%E2%80%8B', '%EF%BB%BF', '%EF%BC%8E', '%C2%85'],
  ...['%c0%ae', '%FF', '%u002e', '%u0061', '&#61;', '&amp;', '+AGE-', '\u00e9', '\uff0e', '\u3000', '%7F', '%08'],
] as const;
const others = [
  'a=1',
  'q=x%20y',
  'utf8=%E2%9C%93',
  'utf8=%26%2310003%3B',
  'filter[a]=1',
  '=',
  '',
  'x',
  'x;y=1',
] as const;

/** The text after the `?`. */
export function generateQuery(random: Random): string {
  const count = 1 + random.below(3);
  const parameters = Array.from({ length: count }, () =>
    random.chance(0.3) ? random.pick(others) : generateParameter(random),
  );
  const query = parameters.reduce(
    (all, each) =>
      all +
      random.weighted([
        [9, '&'],
        [1, ';'],
        [1, '&&'],
      ]) +
      each,
  );
  return random.chance(0.04) ? withInsertion(random, query) : query;
}

function generateParameter(random: Random): string {
  let name: string = random.chance(0.6) ? parameter : random.pick(names);
  const changes = random.weighted([
    [3, 0],
    [6, 1],
    [3, 2],
    [1, 3],
  ]);
  for (let i = 0; i < changes; i += 1) name = random.pick(tricks)(random, name);
  const written = random.chance(0.95) ? `${name}=${random.pick(accounts)}` : name;
  return random.chance(0.06) ? `x=1${random.pick([';', '%3B', '%26', '&', '?'])}${written}` : written;
}

const tricks: readonly ((random: Random, name: string) => string)[] = [
  (random, name) => random.pick(marks) + name,
  (random, name) => name + random.pick(marks),
  (random, name) => `${random.pick(marks)}${name}${random.pick(marks)}`,
  withInsertion,
  (random, name) => `${random.pick(['filter', 'a', '', '_'])}${random.pick(['.', '[', '%5B', '%2e'])}${name}`,
  withEncoding,
  withEncoding,
  (random, name) => withEncoding(random, name).replace('%', '%25'),
  (random, name) => {
    const at = random.below(name.length + 1);
    return name.slice(0, at) + name.slice(at, at + 1).toUpperCase() + name.slice(at + 1);
  },
];

function withInsertion(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  return text.slice(0, at) + random.pick(marks) + text.slice(at);
}

function withEncoding(random: Random, text: string): string {
  const at = random.below(Math.max(text.length, 1));
  const code = text.charCodeAt(at);
  if (Number.isNaN(code) || code > 127) return text;
  const hex = code.toString(16).padStart(2, '0');
  return `${text.slice(0, at)}%${random.chance(0.5) ? hex : hex.toUpperCase()}${text.slice(at + 1)}`;
}
