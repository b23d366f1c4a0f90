// Regular languages as automata: whether a text is in one, and a text that is in one and not in another. Never a regular
// expression of the runtime: the patterns are a stranger's, and every question here ends.

/** Code points from the first to the last, both included. */
export type CharacterRange = readonly [first: number, last: number];

export type Expression =
  | { readonly kind: 'characters'; readonly ranges: readonly CharacterRange[] }
  | { readonly kind: 'sequence'; readonly parts: readonly Expression[] }
  | { readonly kind: 'choice'; readonly options: readonly Expression[] }
  | { readonly kind: 'repeat'; readonly inner: Expression; readonly min: number; readonly max: number | undefined }
  | { readonly kind: 'edge'; readonly edge: Edge };

/** What holds at the start or at the end of the text only. */
export type Edge = 'start' | 'end';

export interface Language {
  readonly first: number;
  readonly last: number;
  /** By state: where it leads without a character, at an edge, and with one. */
  readonly free: readonly (readonly number[])[];
  readonly edges: readonly (readonly { readonly edge: Edge; readonly to: number }[])[];
  readonly steps: readonly (readonly { readonly ranges: readonly CharacterRange[]; readonly to: number }[])[];
}

export const lastCodePoint = 0x10ffff;
const anyRange: CharacterRange = [0, lastCodePoint];
const maxStates = 20_000;
const maxExploredSets = 5000;

export const anyText: Expression = {
  kind: 'repeat',
  inner: { kind: 'characters', ranges: [anyRange] },
  min: 0,
  max: undefined,
};

export function exactly(text: string): Expression {
  const parts = Array.from(text, (character): Expression => {
    const code = character.codePointAt(0) ?? 0;
    return { kind: 'characters', ranges: [[code, code]] };
  });
  return { kind: 'sequence', parts };
}

export function sequence(...parts: readonly Expression[]): Expression {
  return { kind: 'sequence', parts };
}

export function choice(...options: readonly Expression[]): Expression {
  return { kind: 'choice', options };
}

export function optional(inner: Expression): Expression {
  return { kind: 'repeat', inner, min: 0, max: 1 };
}

export function withoutCase(expression: Expression): Expression {
  switch (expression.kind) {
    case 'characters':
      return { kind: 'characters', ranges: expression.ranges.flatMap(bothCases) };
    case 'sequence':
      return { kind: 'sequence', parts: expression.parts.map(withoutCase) };
    case 'choice':
      return { kind: 'choice', options: expression.options.map(withoutCase) };
    case 'repeat':
      return { ...expression, inner: withoutCase(expression.inner) };
    case 'edge':
      return expression;
  }
}

/** Undefined where it would be too large to be worked with. */
export function toLanguage(expression: Expression): Language | undefined {
  if (sizeOf(expression) > maxStates) return undefined;
  const free: number[][] = [];
  const edges: { edge: Edge; to: number }[][] = [];
  const steps: { ranges: readonly CharacterRange[]; to: number }[][] = [];
  const newState = (): number => {
    edges.push([]);
    steps.push([]);
    return free.push([]) - 1;
  };
  // Leads from the state through the expression, and gives the state behind it.
  const build = (part: Expression, from: number): number => {
    switch (part.kind) {
      case 'characters': {
        const to = newState();
        steps[from]?.push({ ranges: part.ranges, to });
        return to;
      }
      case 'edge': {
        const to = newState();
        edges[from]?.push({ edge: part.edge, to });
        return to;
      }
      case 'sequence':
        return part.parts.reduce((state, each) => build(each, state), from);
      case 'choice': {
        const to = newState();
        for (const option of part.options) {
          const start = newState();
          free[from]?.push(start);
          free[build(option, start)]?.push(to);
        }
        return to;
      }
      case 'repeat': {
        let state = from;
        for (let i = 0; i < part.min; i++) state = build(part.inner, state);
        const to = newState();
        if (part.max === undefined) {
          const loop = newState();
          free[state]?.push(loop);
          free[build(part.inner, loop)]?.push(loop);
          free[loop]?.push(to);
          return to;
        }
        free[state]?.push(to);
        for (let i = part.min; i < part.max; i++) {
          state = build(part.inner, state);
          free[state]?.push(to);
        }
        return to;
      }
    }
  };
  const first = newState();
  const last = build(expression, first);
  return { first, last, free, edges, steps };
}

export function isIn(language: Language, text: string): boolean {
  let states = startOf(language);
  for (const character of text) {
    states = after(language, states, character.codePointAt(0) ?? 0);
    if (states.length === 0) return false;
  }
  return isAccepted(language, states, text === '');
}

export type Found = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'none' | 'too many' };

/** A shortest text that is in the one language and not in the other. */
export function findText(wanted: readonly Language[], unwanted: Language): Found {
  const languages = [...wanted, unwanted];
  const alphabet = representatives(languages);
  const start = { text: '', sets: languages.map(startOf) };
  const seen = new Set([keyOf(start.sets)]);
  const open = [start];
  for (const { text, sets } of open) {
    const accepted = languages.map((language, i) => isAccepted(language, sets[i] ?? [], text === ''));
    if (accepted.every((each, i) => each === i < wanted.length)) return { kind: 'text', text };
    for (const code of alphabet) {
      const next = languages.map((language, i) => after(language, sets[i] ?? [], code));
      if (next.slice(0, wanted.length).some(set => set.length === 0)) continue;
      const key = keyOf(next);
      if (seen.has(key)) continue;
      if (seen.size >= maxExploredSets) return { kind: 'too many' };
      seen.add(key);
      open.push({ text: text + String.fromCodePoint(code), sets: next });
    }
  }
  return { kind: 'none' };
}

function startOf(language: Language): readonly number[] {
  return closureOf(language, [language.first], ['start']);
}

function after(language: Language, states: readonly number[], code: number): readonly number[] {
  const next: number[] = [];
  for (const state of states) {
    for (const { ranges, to } of language.steps[state] ?? []) {
      if (ranges.some(([first, last]) => first <= code && code <= last)) next.push(to);
    }
  }
  return closureOf(language, next, []);
}

function isAccepted(language: Language, states: readonly number[], isEmpty: boolean): boolean {
  return closureOf(language, states, isEmpty ? ['start', 'end'] : ['end']).includes(language.last);
}

function closureOf(language: Language, states: readonly number[], at: readonly Edge[]): readonly number[] {
  const found = new Set<number>();
  const open = [...states];
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    if (found.has(state)) continue;
    found.add(state);
    open.push(...(language.free[state] ?? []));
    for (const { edge, to } of language.edges[state] ?? []) if (at.includes(edge)) open.push(to);
  }
  return [...found].sort((one, other) => one - other);
}

function keyOf(sets: readonly (readonly number[])[]): string {
  return sets.map(set => set.join(',')).join(';');
}

// One character for each group of characters that no language tells apart, a plain one where there is one.
function representatives(languages: readonly Language[]): readonly number[] {
  const bounds = new Set([0]);
  for (const { ranges } of languages.flatMap(({ steps }) => steps.flat())) {
    for (const [first, last] of ranges) bounds.add(first).add(last + 1);
  }
  const sorted = [...bounds].filter(code => code <= lastCodePoint).sort((one, other) => one - other);
  const plain = Array.from('x1XA/-_.', character => character.codePointAt(0) ?? 0);
  const chosen = sorted.map((first, i) => {
    const end = sorted[i + 1] ?? lastCodePoint + 1;
    return plain.find(code => first <= code && code < end) ?? first;
  });
  // In this order, so that of the shortest texts the plainest is found.
  return [...plain.filter(code => chosen.includes(code)), ...chosen.filter(code => !plain.includes(code))];
}

function sizeOf(expression: Expression): number {
  switch (expression.kind) {
    case 'characters':
    case 'edge':
      return 1;
    case 'sequence':
      return expression.parts.reduce((sum, each) => sum + sizeOf(each), 1);
    case 'choice':
      return expression.options.reduce((sum, each) => sum + sizeOf(each) + 1, 1);
    case 'repeat':
      return 2 + (sizeOf(expression.inner) + 1) * Math.max(expression.max ?? expression.min + 1, 1);
  }
}

// ASCII, which is all that header names and the paths of Envoy have.
function bothCases(range: CharacterRange): readonly CharacterRange[] {
  return [range, ...shifted(range, 0x41, 0x5a, 0x20), ...shifted(range, 0x61, 0x7a, -0x20)];
}

function shifted([first, last]: CharacterRange, from: number, to: number, by: number): readonly CharacterRange[] {
  const [low, high] = [Math.max(first, from), Math.min(last, to)];
  return low <= high ? [[low + by, high + by]] : [];
}
