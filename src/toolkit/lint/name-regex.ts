// Tells which of some names a regular expression of RE2 matches: of all at once and without compiling it, since a file may have 300,000.

/** A bit for each place between characters of the names, one after the other. */
type Places = bigint;

/** From places to those behind what it matches there. */
export type Matcher = (names: NameSet, at: Places) => Places;

export interface NameSet {
  readonly names: readonly string[];
  /** A line for each. */
  readonly lines: string;
  readonly starts: Places;
  readonly ends: Places;
  /** The places before a letter that this expression of one letter matches. */
  before(letter: string): Places;
}

type Letters = (letter: string) => boolean;

const ignoringCase = '(?i)';

export function createNameSet(names: readonly string[]): NameSet {
  // A line feed ends a name, and is no letter.
  const text = names.map(name => `${name}\n`).join('');
  const bytes = new Map<string, Buffer>();
  for (const [i, letter] of text.split('').entries()) {
    const places = bytes.get(letter) ?? Buffer.alloc((text.length >> 3) + 1);
    bytes.set(letter, places);
    const at = places.length - 1 - (i >> 3);
    places[at] = (places[at] ?? 0) | (1 << (i & 7));
  }
  const byLetter = new Map([...bytes].map(([letter, places]) => [letter, BigInt(`0x${places.toString('hex')}`)]));
  const ends = byLetter.get('\n') ?? 0n;
  const known = new Map<string, Places>();
  return {
    names,
    lines: `\n${text}`,
    starts: (ends << 1n) | 1n,
    ends,
    before(letter) {
      const found = known.get(letter);
      if (found !== undefined) return found;
      const has = lettersOf(letter);
      let places = 0n;
      for (const [each, found] of byLetter) if (each !== '\n' && has(each)) places |= found;
      known.set(letter, places);
      return places;
    },
  };
}

let steps = 0;

/** How often the repetitions of all expressions have been tried so far, which takes most of the time. */
export function stepsSoFar(): number {
  return steps;
}

/** Those that it matches as a whole. */
export function matchedBy(matcher: Matcher, names: NameSet): readonly string[] {
  const found = matcher(names, names.starts) & names.ends;
  if (found === 0n) return [];
  const bits = found.toString(2);
  let end = 0;
  return names.names.filter(name => {
    end -= name.length + 1;
    return bits.at(end) === '1';
  });
}

const run = /[\w/:@~%&=,;!#'"<>-]+(?![*+?{])/y;
const one =
  /[\w/:@~%&=,;!#'"<>-]|\.|\\[dwsDWS!-/:-@[-`{-~]|\[\^?-?(?:\w-\w|[\w/:@~%&=,;!#'"<>.+*?()|$ {}]|\\[dwsDWS!-/:-@[-`{-~])+-?\]/y;
const parts = /(\w)-(\w)|\\?./g;
const times = /([*+?]|\{(\d{1,3})(?:(,)(\d{0,3}))?\})\??/y;
const maxDepth = 10;
const maxLetters = 5000;

/** Undefined for what it does not know, which may be no expression at all. */
export function parseNameRegex(text: string): Matcher | undefined {
  const flags = text.startsWith(ignoringCase) ? ignoringCase : '';
  let i = flags.length;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = i;
    const found = pattern.exec(text);
    i += found?.[0].length ?? 0;
    return found;
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
    const [first = inOrder([]), ...others] = all.map(inOrder);
    if (others.length === 0) return first;
    return (names, at) => others.reduce((to, each) => to | each(names, at), first(names, at));
  }

  function item(letter: string, depth: number): Matcher | undefined {
    const literal = take(run)?.[0];
    if (literal !== undefined) return moveAlong(literal, flags);
    if (letter === '^' || letter === '$') {
      i += 1;
      if (take(times) !== null) return undefined;
      return (names, at) => at & (letter === '^' ? names.starts : names.ends);
    }
    const single = take(one)?.[0];
    let inner: Matcher | undefined;
    if (single !== undefined) {
      if (!isInOrder(single) || readKeys.size > maxLetters) return undefined;
      lettersOf(flags + single);
      inner = ofLetter(flags + single, '');
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
    if (single !== undefined && !sign.startsWith('{')) return ofLetter(flags + single, sign);
    if (!sign.startsWith('{')) return repeat(inner, sign === '+' ? 1 : 0, sign === '?' ? 1 : Infinity);
    const end = comma === undefined ? Number(least) : most === '' ? Infinity : Number(most);
    return end < Number(least) ? undefined : repeat(inner, Number(least), end);
  }

  const matcher = alternatives(0);
  return i === text.length ? matcher : undefined;
}

const readKeys = new Map<string, Letters>();

function lettersOf(key: string): Letters {
  const found = readKeys.get(key) ?? readLetters(key);
  readKeys.set(key, found);
  return found;
}

function readLetters(key: string): Letters {
  if (key.startsWith(ignoringCase)) {
    const has = readLetters(key.slice(ignoringCase.length));
    const either = (letter: string): readonly string[] => [letter.toLowerCase(), letter.toUpperCase()];
    const isNegated = /^\(\?i\)(?:\[\^|\\[DWS]$)/.test(key);
    return isNegated ? letter => either(letter).every(has) : letter => either(letter).some(has);
  }
  if (key === '.') return () => true;
  if (/^\\[dD]$/.test(key)) return letter => /^\d$/.test(letter) === (key === '\\d');
  if (/^\\[wW]$/.test(key)) return letter => /^\w$/.test(letter) === (key === '\\w');
  if (/^\\[sS]$/.test(key)) return letter => /^[\t\f\r ]$/.test(letter) === (key === '\\s');
  if (key.startsWith('\\')) return letter => letter === key.slice(1);
  if (!key.startsWith('[') || key.length === 1) return letter => letter === key;
  const isNegated = key.startsWith('[^');
  const inside = [...key.slice(isNegated ? 2 : 1, -1).matchAll(parts)].map(([part, from, to = '']) =>
    from === undefined ? readLetters(part === '.' ? '\\.' : part) : (letter: string) => letter >= from && letter <= to,
  );
  return letter => inside.some(has => has(letter)) !== isNegated;
}

/** Whether no range is upside down. */
function isInOrder(single: string): boolean {
  return [...single.matchAll(parts)].every(([, from = '', to = '']) => from <= to);
}

function inOrder(matchers: readonly Matcher[]): Matcher {
  const [only, ...others] = matchers;
  if (only !== undefined && others.length === 0) return only;
  return (names, at) => {
    let to = at;
    for (const each of matchers) if (to !== 0n) to = each(names, to);
    return to;
  };
}

const knownOfLetter = new Map<string, Matcher>();

/** One letter with `*`, `+`, `?` or nothing behind it: the same function each time, as a pattern may have 16,000 of them. */
function ofLetter(letter: string, sign: string): Matcher {
  const found = knownOfLetter.get(sign + letter) ?? makeOfLetter(letter, sign);
  knownOfLetter.set(sign + letter, found);
  return found;
}

function makeOfLetter(letter: string, sign: string): Matcher {
  const once: Matcher = (names, at) => (at & names.before(letter)) << 1n;
  if (sign === '') return once;
  if (sign === '?') return (names, at) => at | once(names, at);
  const any = fill(letter);
  return sign === '*' ? any : (names, at) => any(names, once(names, at));
}

function moveAlong(literal: string, flags: string): Matcher {
  return (names, at) => {
    let to = at;
    for (const letter of literal) {
      if (to === 0n) break;
      to = (to & names.before(flags + letter)) << 1n;
    }
    return to;
  };
}

/** Any number of one letter, in steps of 1, 2, 4, … It remembers its last answer: thousands of alternatives may begin with `.*`. */
function fill(letter: string): Matcher {
  let last: { readonly names: NameSet; readonly at: Places; readonly to: Places } | undefined;
  return (names, at) => {
    if (last?.names === names && last.at === at) return last.to;
    let to = at;
    let through = names.before(letter) << 1n;
    for (let step = 1n; ; step *= 2n) {
      steps += 1;
      const next = to | (through & (to << step));
      if (next === to) break;
      to = next;
      through &= through << step;
    }
    last = { names, at, to };
    return to;
  };
}

function repeat(matcher: Matcher, least: number, most: number): Matcher {
  return (names, at) => {
    let to = at;
    for (let count = 0; count < least && to !== 0n; count += 1, steps += 1) to = matcher(names, to);
    let all = to;
    for (let count = least; count < most && to !== 0n; count += 1) {
      steps += 1;
      const next = matcher(names, to);
      // Only from places where it has not been.
      to = next ^ (next & all);
      all |= to;
    }
    return all;
  };
}
