// The syntax of RE2, as far as header names and paths need it → an expression. What it leaves out (word boundaries, Unicode
// classes) and what RE2 does not know (look-around, back references) is a problem, never a guess.
import {
  type CharacterRange,
  choice,
  type Expression,
  exactly,
  lastCodePoint,
  sequence,
  withoutCase,
} from './regular-language.ts';

export interface Re2Problem {
  readonly kind: 'problem';
  /** The rest of a sentence about the pattern. */
  readonly problem: string;
}

const maxPatternLength = 4096;
const maxDepth = 50;
// RE2 refuses more.
const maxRepetitions = 1000;

const digits: CharacterRange = [0x30, 0x39];
const classes: Readonly<Record<string, readonly CharacterRange[]>> = {
  d: [digits],
  w: [digits, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]],
  s: [
    [0x09, 0x0a],
    [0x0c, 0x0d],
    [0x20, 0x20],
  ],
};
const posixClasses: Readonly<Record<string, readonly CharacterRange[]>> = {
  alnum: [digits, [0x41, 0x5a], [0x61, 0x7a]],
  alpha: [
    [0x41, 0x5a],
    [0x61, 0x7a],
  ],
  ascii: [[0, 0x7f]],
  digit: [digits],
  graph: [[0x21, 0x7e]],
  lower: [[0x61, 0x7a]],
  print: [[0x20, 0x7e]],
  punct: [
    [0x21, 0x2f],
    [0x3a, 0x40],
    [0x5b, 0x60],
    [0x7b, 0x7e],
  ],
  space: [
    [0x09, 0x0d],
    [0x20, 0x20],
  ],
  upper: [[0x41, 0x5a]],
  word: classes.w ?? [],
  xdigit: [digits, [0x41, 0x46], [0x61, 0x66]],
};
const controls: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };

/** What the whole of a text must match, as Envoy uses every pattern that it is given. */
export function parseRe2(pattern: string): Expression | Re2Problem {
  if (pattern.length > maxPatternLength) return problem('is longer than 4096 characters');
  const parser = createParser(Array.from(withoutQuotes(pattern)));
  const expression = parser.alternatives(0, { ignoreCase: false, dotAll: false });
  if (expression.kind === 'problem') return expression;
  return parser.isAtEnd() ? expression : problem('has a ) too many');
}

// `\Q.*\E` → `\.\*`
function withoutQuotes(pattern: string): string {
  return pattern.replace(/\\Q(.*?)(?:\\E|$)|\\./gsu, (whole, quoted?: string) =>
    quoted === undefined ? whole : quoted.replace(/[^A-Za-z0-9]/gu, character => `\\${character}`),
  );
}

interface Flags {
  readonly ignoreCase: boolean;
  readonly dotAll: boolean;
}

function createParser(characters: readonly string[]) {
  let at = 0;
  const peek = (): string => characters[at] ?? '';
  const isNext = (text: string): boolean => characters.slice(at, at + text.length).join('') === text;
  const skip = (text: string): boolean => {
    const found = isNext(text);
    if (found) at += text.length;
    return found;
  };
  const take = (grammar: RegExp): string => {
    let taken = '';
    while (at < characters.length && grammar.test(peek())) {
      taken += peek();
      at++;
    }
    return taken;
  };

  function alternatives(depth: number, outer: Flags): Expression | Re2Problem {
    if (depth > maxDepth) return problem('is nested too deep');
    const options: Expression[] = [];
    let flags = outer;
    do {
      const parts: Expression[] = [];
      while (at < characters.length && peek() !== '|' && peek() !== ')') {
        const change = flagChange(flags);
        if (change !== undefined) {
          flags = change;
          continue;
        }
        const part = repetition(depth, flags);
        if (part.kind === 'problem') return part;
        parts.push(part);
      }
      options.push(parts.length === 1 && parts[0] !== undefined ? parts[0] : sequence(...parts));
    } while (skip('|'));
    return options.length === 1 && options[0] !== undefined ? options[0] : choice(...options);
  }

  // `(?i)`: for the rest of the group.
  function flagChange(flags: Flags): Flags | undefined {
    const start = at;
    if (!skip('(?')) return undefined;
    const changed = readFlags(flags);
    if (changed !== undefined && skip(')')) return changed;
    at = start;
    return undefined;
  }

  // `m` and `U` change nothing here: a name or a path has one line, and what is matched as a whole has no greed.
  function readFlags(flags: Flags): Flags | undefined {
    const letters = take(/[imsU-]/);
    const [on = '', off = '', ...more] = letters.split('-');
    if (more.length > 0) return undefined;
    return {
      ignoreCase: (flags.ignoreCase || on.includes('i')) && !off.includes('i'),
      dotAll: (flags.dotAll || on.includes('s')) && !off.includes('s'),
    };
  }

  function repetition(depth: number, flags: Flags): Expression | Re2Problem {
    const inner = atom(depth, flags);
    if (inner.kind === 'problem') return inner;
    const count = readCount();
    if (count === undefined) return inner;
    skip('?');
    if (/^[*+?]$/.test(peek()) || readCount() !== undefined) return problem('repeats a repetition');
    if (Math.max(count.min, count.max ?? 0) > maxRepetitions || count.min > (count.max ?? count.min))
      return problem('repeats something too often or backwards');
    return { kind: 'repeat', inner, ...count };
  }

  function readCount(): { readonly min: number; readonly max: number | undefined } | undefined {
    if (skip('*')) return { min: 0, max: undefined };
    if (skip('+')) return { min: 1, max: undefined };
    if (skip('?')) return { min: 0, max: 1 };
    const [whole, min, comma, max] = /^\{(\d{1,5})(,?)(\d{0,5})\}/.exec(characters.slice(at, at + 16).join('')) ?? [];
    if (whole === undefined) return undefined;
    at += whole.length;
    if (comma === '') return { min: Number(min), max: Number(min) };
    return { min: Number(min), max: max === '' ? undefined : Number(max) };
  }

  function atom(depth: number, flags: Flags): Expression | Re2Problem {
    if (peek() === '(') return group(depth, flags);
    if (peek() === '[') return bracket(flags);
    if (peek() === '\\') return escapeSequence(flags);
    if (/^[*+?]$/.test(peek())) return problem('repeats nothing');
    const character = peek();
    at++;
    if (character === '^') return { kind: 'edge', edge: 'start' };
    if (character === '$') return { kind: 'edge', edge: 'end' };
    if (character === '.') return oneOf(flags.dotAll ? [[0, lastCodePoint]] : allBut([[10, 10]]), flags);
    return cased(exactly(character), flags);
  }

  function group(depth: number, outer: Flags): Expression | Re2Problem {
    let flags: Flags | undefined = outer;
    at++;
    if (skip('?')) {
      if (skip('P<') || (isNext('<') && !isNext('<=') && !isNext('<!') && skip('<'))) {
        if (take(/\w/) === '' || !skip('>')) return problem('has a group with a broken name');
      } else {
        flags = readFlags(outer);
        if (flags === undefined || !skip(':')) return problem('has a group that RE2 does not know (look-around?)');
      }
    }
    const inner = alternatives(depth + 1, flags);
    if (inner.kind === 'problem') return inner;
    return skip(')') ? inner : problem('has a ( without its )');
  }

  function bracket(flags: Flags): Expression | Re2Problem {
    at++;
    const isNegated = skip('^');
    const ranges: CharacterRange[] = [];
    for (let isFirst = true; isFirst || peek() !== ']'; isFirst = false) {
      if (at >= characters.length) return problem('has a [ without its ]');
      const item = bracketItem();
      if (item.kind === 'problem') return item;
      ranges.push(...item.ranges);
    }
    at++;
    // In this order: [^a] without case leaves out A too.
    const inner = flags.ignoreCase ? withoutCase({ kind: 'characters', ranges }) : undefined;
    const meant = inner?.kind === 'characters' ? inner.ranges : ranges;
    return { kind: 'characters', ranges: isNegated ? allBut(meant) : meant };
  }

  function bracketItem(): { readonly kind: 'ranges'; readonly ranges: readonly CharacterRange[] } | Re2Problem {
    const [whole, caret, name] = /^\[:(\^?)([a-z]+):\]/.exec(characters.slice(at, at + 16).join('')) ?? [];
    if (whole !== undefined && name !== undefined) {
      at += whole.length;
      const named = Object.hasOwn(posixClasses, name) ? posixClasses[name] : undefined;
      if (named === undefined) return problem('has a character class that RE2 does not know');
      return { kind: 'ranges', ranges: caret === '^' ? allBut(named) : named };
    }
    const first = bracketCharacter();
    if (typeof first !== 'number') return first;
    if (peek() !== '-' || characters[at + 1] === ']') return { kind: 'ranges', ranges: [[first, first]] };
    at++;
    const last = bracketCharacter();
    if (typeof last !== 'number' || last < first) return problem('has a broken range of characters');
    return { kind: 'ranges', ranges: [[first, last]] };
  }

  function bracketCharacter():
    | number
    | { readonly kind: 'ranges'; readonly ranges: readonly CharacterRange[] }
    | Re2Problem {
    if (peek() !== '\\') {
      const code = peek().codePointAt(0) ?? 0;
      at++;
      return code;
    }
    return escaped();
  }

  function escapeSequence(flags: Flags): Expression | Re2Problem {
    if (characters[at + 1] === 'A' || characters[at + 1] === 'z') {
      at += 2;
      return { kind: 'edge', edge: characters[at - 1] === 'A' ? 'start' : 'end' };
    }
    const found = escaped();
    if (typeof found === 'number') return oneOf([[found, found]], flags);
    return found.kind === 'problem' ? found : oneOf(found.ranges, flags);
  }

  // After a backslash: one character, or a class of them.
  function escaped(): number | { readonly kind: 'ranges'; readonly ranges: readonly CharacterRange[] } | Re2Problem {
    at++;
    const letter = peek();
    at++;
    if (Object.hasOwn(classes, letter.toLowerCase()) && letter !== '') {
      const named = classes[letter.toLowerCase()] ?? [];
      return { kind: 'ranges', ranges: letter === letter.toLowerCase() ? named : allBut(named) };
    }
    if (Object.hasOwn(controls, letter)) return controls[letter] ?? 0;
    if (letter === 'x') {
      const [whole, braced, plain] =
        /^(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))/.exec(characters.slice(at, at + 8).join('')) ?? [];
      const code = Number.parseInt(braced ?? plain ?? '', 16);
      if (whole === undefined || code > lastCodePoint) return problem('has a broken \\x');
      at += whole.length;
      return code;
    }
    if (letter === '' || /^[A-Za-z0-9]$/.test(letter))
      return problem(`has an escape that is not known here (\\${letter})`);
    return letter.codePointAt(0) ?? 0;
  }

  return { alternatives, isAtEnd: () => at >= characters.length };
}

function oneOf(ranges: readonly CharacterRange[], flags: Flags): Expression {
  return cased({ kind: 'characters', ranges }, flags);
}

function cased(expression: Expression, flags: Flags): Expression {
  return flags.ignoreCase ? withoutCase(expression) : expression;
}

function allBut(ranges: readonly CharacterRange[]): readonly CharacterRange[] {
  const rest: CharacterRange[] = [];
  let next = 0;
  for (const [first, last] of ranges.toSorted((one, other) => one[0] - other[0])) {
    if (first > next) rest.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  if (next <= lastCodePoint) rest.push([next, lastCodePoint]);
  return rest;
}

function problem(text: string): Re2Problem {
  return { kind: 'problem', problem: text };
}
