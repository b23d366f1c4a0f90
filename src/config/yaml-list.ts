// Splits a long YAML list into pieces of a few hundred items, each a list by itself, and composes a piece: the tree of 100,000 items
// would take hundreds of megabytes.
import { Composer, CST, isScalar, isSeq, Lexer, Parser } from 'yaml';
import { isDeeperThan } from './yaml-document.ts';
import { yamlSyntaxProblems } from './yaml-syntax-problems.ts';

export interface ListPiece {
  readonly source: string;
  /** Added to an offset in the source, it gives the one in the whole text. */
  readonly shift: number;
}

export interface ComposedPiece {
  /** Nodes of the YAML library. */
  readonly items: readonly unknown[];
  /** Sentences; the offsets are those of the whole text. */
  readonly problems: readonly { readonly offset: number; readonly message: string }[];
}

const maxDepth = 32;
const itemsPerPiece = 256;

export function composePiece({ source, shift }: ListPiece): ComposedPiece {
  const refused = (message: string): ComposedPiece => ({ items: [], problems: [{ offset: shift, message }] });
  const tokens = [...new Parser().parse(source)];
  if (isDeeperThan(tokens, maxDepth)) return refused(`the file must not be nested deeper than ${maxDepth} levels`);
  const composer = new Composer({
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    uniqueKeys: false,
  });
  const [document, other] = composer.compose(tokens, true, source.length);
  if (document === undefined || other !== undefined) return refused(yamlSyntaxProblems.MULTIPLE_DOCS);
  const { contents, errors, warnings } = document;
  const problems = [...errors, ...warnings].map(({ code, pos }) => ({
    offset: pos[0] + shift,
    message: yamlSyntaxProblems[code],
  }));
  if (problems.length > 0) return { items: [], problems };
  // Nothing, or the end of a document that has begun.
  if (contents === null || (isScalar(contents) && contents.source === ''))
    return refused('the file must not be empty: write [] for an empty list');
  return isSeq(contents) ? { items: contents.items, problems } : refused('the file must be a list');
}

/** Any other text than a list is one piece. */
export function* splitList(text: string): Generator<ListPiece> {
  const beforeList = /(?: *(?:#.*)?|%.*|---[ \t]*)\r?\n/y;
  let start = 0;
  while (beforeList.test(text)) start = beforeList.lastIndex;
  const list = /( *)(?:(-)(?=\s|$)|\[)/y;
  list.lastIndex = start;
  const [found, indent = '', dash] = list.exec(text) ?? [];
  if (found === undefined) yield { source: text, shift: 0 };
  else if (dash === undefined) yield* flowPieces(text);
  else yield* blockPieces(text, `\n${indent}-`);
}

// Everything in an item is indented deeper than its dash (YAML 1.2 section 8.2.1), so that no such line can be in the middle of one.
function* blockPieces(text: string, mark: string): Generator<ListPiece> {
  let begin = 0;
  let items = 0;
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) {
    if (!/^\s?$/.test(text.charAt(at + mark.length))) continue;
    items += 1;
    if (items % itemsPerPiece !== 0) continue;
    yield { source: text.slice(begin, at + 1), shift: begin };
    begin = at + 1;
  }
  yield { source: text.slice(begin), shift: begin };
}

// `[…, …]` becomes `[…]` and `[…]`.
function* flowPieces(text: string): Generator<ListPiece> {
  let begin = 0;
  let items = 0;
  const open = (): string => (begin === 0 ? '' : '[');
  const shift = (): number => begin - open().length;
  for (const comma of commasOf(text)) {
    items += 1;
    if (items % itemsPerPiece !== 0) continue;
    yield { source: `${open()}${text.slice(begin, comma)}]`, shift: shift() };
    begin = comma + 1;
  }
  yield { source: `${open()}${text.slice(begin)}`, shift: shift() };
}

/** The offsets of the commas between the items. */
function* commasOf(text: string): Generator<number> {
  let offset = 0;
  let depth = 0;
  let isScalar = false;
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') depth += 1;
    if (token === ']' || token === '}') depth -= 1;
    if (token === ',' && depth === 1) yield offset;
    // Tokens that the lexer inserts; the one after `CST.SCALAR` is text, even if it looks like them.
    const isMark: boolean = !isScalar && (token === CST.SCALAR || token === CST.DOCUMENT || token === CST.FLOW_END);
    if (!isMark) offset += token.length;
    isScalar = isMark && token === CST.SCALAR;
  }
}
