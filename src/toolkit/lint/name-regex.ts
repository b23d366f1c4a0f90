// Tells which of some names a regular expression of RE2 matches: of all at once and without compiling it, since a file may have 300,000.

/** A bit for each place between characters of the names, one after the other. */
type Places = Int32Array;

/** Moves the places over what it matches; false if none is left. */
export type Matcher = (names: NameSet, at: Places) => boolean;

/** What one character may be. */
interface Letters {
  readonly key: string;
  readonly has: (letter: string) => boolean;
}

export interface NameSet {
  readonly names: readonly string[];
  /** A line for each. */
  readonly lines: string;
  readonly starts: Places;
  readonly ends: Places;
  /** The places before one of these letters. */
  before(letters: Letters): Places;
}

export function createNameSet(names: readonly string[]): NameSet {
  // An empty text ends a name, and is no letter.
  const text = names.flatMap(name => [...name, '']);
  const none = (): Places => new Int32Array((text.length >> 5) + 1);
  const [starts, byLetter, known] = [none(), new Map<string, Places>(), new Map<string, Places>()];
  for (const [i, letter] of text.entries()) {
    const places = byLetter.get(letter) ?? none();
    byLetter.set(letter, add(places, i));
    if (i === 0 || text[i - 1] === '') add(starts, i);
  }
  const ends = byLetter.get('') ?? none();
  byLetter.delete('');
  return {
    names,
    lines: `\n${names.join('\n')}`,
    starts,
    ends,
    before({ key, has }) {
      const found = known.get(key);
      if (found !== undefined) return found;
      const places = none();
      for (const [letter, each] of byLetter) if (has(letter)) unite(places, each);
      if (known.size < 1000) known.set(key, places);
      return places;
    },
  };
}

/** Those that it matches as a whole. */
export function matchedBy(matcher: Matcher, names: NameSet): readonly string[] {
  const at = names.starts.slice();
  if (!matcher(names, at) || !keep(at, names.ends)) return [];
  let end = -1;
  return names.names.filter(name => {
    end += [...name].length + 1;
    return ((at[end >> 5] ?? 0) & (1 << (end & 31))) !== 0;
  });
}

const run = /[\w/:@~%&=,;!#'"<>-]+(?![*+?{])/y;
const one =
  /[\w/:@~%&=,;!#'"<>-]|\.|\\[dwsDWS!-/:-@[-`{-~]|\[\^?-?(?:\w-\w|[\w/:@~%&=,;!#'"<>.+*?()|$ {}]|\\[dwsDWS!-/:-@[-`{-~])+-?\]/y;
const parts = /(\w)-(\w)|\\?./g;
const times = /([*+?]|\{(\d{1,3})(?:(,)(\d{0,3}))?\})\??/y;
const maxDepth = 50;

/** Undefined for what it does not know, which may be no expression at all. */
export function parseNameRegex(text: string): Matcher | undefined {
  const ignoresCase = text.startsWith('(?i)');
  let i = ignoresCase ? 4 : 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = i;
    const found = pattern.exec(text);
    i += found?.[0].length ?? 0;
    return found;
  };
  const toLetters = (key: string): Letters => {
    const has = lettersOf(key);
    if (!ignoresCase) return { key, has };
    const isNegated = key.startsWith('[^') || /^\\[DWS]$/.test(key);
    const either = [(letter: string) => letter.toLowerCase(), (letter: string) => letter.toUpperCase()];
    return {
      key: `(?i)${key}`,
      has: letter => (isNegated ? either.every(to => has(to(letter))) : either.some(to => has(to(letter)))),
    };
  };

  function alternatives(depth: number): Matcher | undefined {
    const all: Matcher[][] = [[]];
    for (let letter = text[i]; letter !== undefined && letter !== ')'; letter = text[i]) {
      if (letter === '|') all.push([]);
      const matcher = letter === '|' ? undefined : item(letter, depth);
      if (letter === '|') i += 1;
      else if (matcher === undefined) return undefined;
      else all.at(-1)?.push(matcher);
    }
    const [first, ...others] = all.map(inOrder);
    return first === undefined || others.length === 0 ? first : anyOf([first, ...others]);
  }

  function item(letter: string, depth: number): Matcher | undefined {
    const literal = take(run)?.[0];
    if (literal !== undefined) {
      const letters = [...literal].map(toLetters);
      return (names, at) => letters.every(each => move(at, names.before(each)));
    }
    if (letter === '^' || letter === '$') {
      i += 1;
      if (take(times) !== null) return undefined;
      return (names, at) => keep(at, letter === '^' ? names.starts : names.ends);
    }
    const single = take(one)?.[0];
    let inner: Matcher | undefined;
    if (single !== undefined) {
      const letters = toLetters(single);
      if (!isInOrder(single)) return undefined;
      inner = (names, at) => move(at, names.before(letters));
    } else if (letter === '(' && depth < maxDepth) {
      i += text.startsWith('(?:', i) ? 3 : 1;
      inner = alternatives(depth + 1);
      if (text[i] !== ')') return undefined;
      i += 1;
    }
    const [all, sign = '', least = '', comma, most = ''] = take(times) ?? [];
    if (inner === undefined || all === undefined) return inner;
    // RE2 bounds the product of nested numbers, and knows no repetition of a repetition.
    if (take(times) !== null || (sign.startsWith('{') && single === undefined)) return undefined;
    if (!sign.startsWith('{')) return repeat(inner, sign === '+' ? 1 : 0, sign === '?' ? 1 : Infinity);
    const end = comma === undefined ? Number(least) : most === '' ? Infinity : Number(most);
    return end < Number(least) ? undefined : repeat(inner, Number(least), end);
  }

  const matcher = alternatives(0);
  return i === text.length ? matcher : undefined;
}

/** Whether no range is upside down. */
function isInOrder(single: string): boolean {
  return !single.startsWith('[') || [...single.matchAll(parts)].every(([, from = '', to = '']) => from <= to);
}

function lettersOf(key: string): (letter: string) => boolean {
  const isWord = (letter: string): boolean => /^\w$/.test(letter);
  if (key === '.') return letter => letter !== '\n';
  if (/^\\[dD]$/.test(key)) return letter => /^\d$/.test(letter) === (key === '\\d');
  if (/^\\[wW]$/.test(key)) return letter => isWord(letter) === (key === '\\w');
  if (/^\\[sS]$/.test(key)) return letter => /^[\t\n\f\r ]$/.test(letter) === (key === '\\s');
  if (key.startsWith('\\')) return letter => letter === key.slice(1);
  if (!key.startsWith('[') || key.length === 1) return letter => letter === key;
  const isNegated = key.startsWith('[^');
  const inside = [...key.slice(isNegated ? 2 : 1, -1).matchAll(parts)].map(([part, from, to = '']) =>
    from === undefined ? lettersOf(part === '.' ? '\\.' : part) : (letter: string) => letter >= from && letter <= to,
  );
  return letter => inside.some(has => has(letter)) !== isNegated;
}

function inOrder(matchers: readonly Matcher[]): Matcher {
  return (names, at) => matchers.every(each => each(names, at));
}

function anyOf(matchers: readonly Matcher[]): Matcher {
  return (names, at) => {
    const [from, to] = [at.slice(), new Int32Array(at.length)];
    let isAny = false;
    for (const each of matchers) {
      at.set(from);
      if (!each(names, at)) continue;
      unite(to, at);
      isAny = true;
    }
    at.set(to);
    return isAny;
  };
}

function repeat(matcher: Matcher, least: number, most: number): Matcher {
  return (names, at) => {
    for (let count = 0; count < least; count += 1) if (!matcher(names, at)) return false;
    const all = at.slice();
    for (let count = least; count < most && matcher(names, at); count += 1) {
      // Only from places where it has not been.
      let left = 0;
      for (let k = 0; k < at.length; k += 1) {
        at[k] = (at[k] ?? 0) & ~(all[k] ?? 0);
        left |= at[k] ?? 0;
      }
      if (left === 0) break;
      unite(all, at);
    }
    at.set(all);
    return true;
  };
}

function add(places: Places, i: number): Places {
  places[i >> 5] = (places[i >> 5] ?? 0) | (1 << (i & 31));
  return places;
}

function unite(places: Places, others: Places): void {
  for (let k = 0; k < places.length; k += 1) places[k] = (places[k] ?? 0) | (others[k] ?? 0);
}

function keep(places: Places, others: Places): boolean {
  let left = 0;
  for (let k = 0; k < places.length; k += 1) left |= places[k] = (places[k] ?? 0) & (others[k] ?? 0);
  return left !== 0;
}

/** To the next place, from those alone that are among the others. */
function move(places: Places, others: Places): boolean {
  let [carried, left] = [0, 0];
  for (let k = 0; k < places.length; k += 1) {
    const kept = (places[k] ?? 0) & (others[k] ?? 0);
    places[k] = (kept << 1) | carried;
    carried = kept >>> 31;
    left |= kept;
  }
  return left !== 0;
}
