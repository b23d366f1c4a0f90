// Parses YAML text into its value and the position of each part of it. Knows nothing of the configuration.
// The running service reads the operator's file again, so each step is linear in the text and bounded.
import { isUtf8 } from 'node:buffer';
import {
  Composer,
  CST,
  type ErrorCode,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  Parser,
  Scalar,
  type YAMLMap,
} from 'yaml';

/** Both count from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** A problem: a sentence about the file, or with a path the rest of one about what stands there. */
export interface PathProblem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

export interface TextProblem extends PathProblem {
  readonly position: Position;
}

export interface YamlDocument {
  readonly kind: 'document';
  readonly value: unknown;
  /** Problems that leave a value: duplicate keys, unknown tags. */
  readonly problems: readonly TextProblem[];
  /** What the reader leaves out, and what it reads otherwise. */
  readonly ignored: readonly TextProblem[];
  readonly misread: readonly TextProblem[];
  /**
   * The position of the value at the path, or of its key. A list, a mapping or an empty value has the position of its key; what is
   * missing has the position of the innermost value around it.
   */
  positionOf(path: readonly PropertyKey[], part: 'key' | 'value'): Position;
  /** The keys of the mapping at the path, in the order of the text, which `value` does not keep for whole numbers. */
  keysAt(path: readonly PropertyKey[]): readonly string[];
}

interface YamlProblems {
  readonly kind: 'problems';
  readonly problems: readonly TextProblem[];
}

// The composer recurses, and deep nesting could exhaust its stack and end the process: V8 aborts if it has no stack left to
// compile a regular expression.
const defaultMaxDepth = 32;
// Most syntax errors after the first ones are their consequences.
const maxSyntaxProblems = 100;
// Each value may be a problem, and zod cannot take more of them than the stack holds arguments.
const defaultMaxValues = 40_000;
/** A longer text counts as several values, because an alias has it validated again. */
const charactersOfValue = 64;

interface YamlOptions {
  /** How deep the text may be nested; 32 by default. */
  readonly maxDepth?: number;
  /** How many values it may have once its aliases are expanded; 40,000 by default. */
  readonly maxValues?: number;
  /** For a file that another program reads; then keys need not be text. */
  readonly reader?: YamlReader;
}

/** How another program reads YAML. */
interface YamlReader {
  /** Keys with this tag are left out, with their values. */
  readonly ignoredTag: string;
  /** What it reads otherwise than YAML 1.2: a text without quotes; with any other tag, every value. */
  readonly isMisread: (text: string) => boolean;
}

export function parseYamlDocument(bytes: Uint8Array, options: YamlOptions = {}): YamlDocument | YamlProblems {
  const { maxDepth = defaultMaxDepth, maxValues = defaultMaxValues, reader } = options;
  if (!isUtf8(bytes)) return notReadable('the file must be text in UTF-8');
  const text = new TextDecoder().decode(bytes);
  const lineCounter = new LineCounter();
  const excess = { isDeeper: false, isLonger: false };
  const tokens = boundedTokens(new Parser(lineCounter.addNewLine).parse(text), maxDepth, maxValues, excess);
  const positionAt = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  // The library makes an Error of each mistake, and a hundred thousand stack traces take seconds.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const composer = new Composer({
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    stringKeys: reader === undefined,
    customTags: reader === undefined ? null : [{ tag: reader.ignoredTag, resolve: (key: string) => key }],
    // The library compares each key with every other one: a minute for a large mapping.
    uniqueKeys: false,
    logLevel: 'error',
  });
  const [document, another] = composer.compose(tokens, true, text.length);
  Error.stackTraceLimit = stackTraceLimit;
  if (excess.isDeeper) return notReadable(`the file must not be nested deeper than ${maxDepth} levels`);
  const tooMany = `the file must not have more than ${maxValues} values, those that its aliases repeat among them`;
  if (excess.isLonger) return notReadable(tooMany);
  if (document === undefined) return notReadable(yamlSyntaxProblems.IMPOSSIBLE);
  const { contents, warnings } = document;
  const errors: readonly { readonly code: ErrorCode; readonly pos: readonly number[] }[] =
    another === undefined ? document.errors : [...document.errors, { code: 'MULTIPLE_DOCS', pos: another.range }];
  const syntax = [...errors, ...warnings].map(({ code, pos: [offset = 0] }) => ({
    path: [],
    position: positionAt(offset),
    message: yamlSyntaxProblems[code],
  }));
  if (errors.length > 0) return { kind: 'problems', problems: syntax.slice(0, maxSyntaxProblems) };
  const { hasBrokenAlias, values, ...review } = reviewNodes(contents, positionAt, reader);
  const problems = [...syntax, ...review.problems];
  if (hasBrokenAlias) return { kind: 'problems', problems };
  if (contents === null || (isScalar(contents) && contents.value === null)) return notReadable('the file is empty');
  if (values > maxValues) return notReadable(tooMany);
  // The library's own count of aliases visits each aliased node again for each alias.
  const value: unknown = document.toJS({ maxAliasCount: -1 });
  if (review.ignored.length > 0) dropHidden(value, new Set());
  return { ...review, kind: 'document', value, problems };
}

/** A member of a mapping, or an item of a list, which is its own key. */
interface Member {
  readonly key: unknown;
  readonly value: unknown;
}

// One walk in linear time: it reports what the library accepts: duplicate keys, `__proto__`, and aliases of nothing or of a node around
// them; and it counts the values, those of aliases each time. Positions are looked up only for problems: an index of all nodes would take
// as much memory as the document.
function reviewNodes(contents: unknown, positionAt: (offset: number) => Position, reader: YamlReader | undefined) {
  const problems: TextProblem[] = [];
  const ignored: TextProblem[] = [];
  const misread: TextProblem[] = [];
  const anchors = new Map<string, { readonly node: unknown; readonly values: number }>();
  const targets = new Map<unknown, unknown>();
  let hasBrokenAlias = false;

  const report = (node: unknown, path: readonly PropertyKey[], message: string, list = problems) =>
    list.push({ path, position: positionAt(startOf(node)), message });

  const reviewReading = (node: Node, path: readonly PropertyKey[]): void => {
    if (node.tag !== undefined) report(node, path, 'has a tag', misread);
    else if (isScalar(node) && node.type === 'PLAIN' && reader?.isMisread(node.source ?? ''))
      report(node, path, 'is a number with a zero at its start', misread);
  };

  /** The number of values of the node. */
  function review(node: unknown, path: readonly PropertyKey[]): number {
    if (isAlias(node)) {
      const anchor = anchors.get(node.source);
      if (anchor !== undefined) targets.set(node, anchor.node);
      else {
        hasBrokenAlias = true;
        report(node, path, 'is an alias without an anchor above it: put text that starts with * in quotes');
      }
      return anchor?.values ?? 0;
    }
    if (!isNode(node)) return 0;
    if (reader !== undefined) reviewReading(node, path);
    const [start, end] = node.range ?? [0, 0];
    let values = isScalar(node) ? Math.ceil((end - start + 1) / charactersOfValue) : 1;
    if (isSeq(node)) for (const [i, item] of node.items.entries()) values += review(item, [...path, i]);
    if (isMap(node)) values += reviewMembers(node, path);
    // Not before its content is known: a node that contains its own alias would have no end.
    if (node.anchor !== undefined) anchors.set(node.anchor, { node, values });
    return values;
  }

  function reviewMembers(map: YAMLMap, path: readonly PropertyKey[]): number {
    const names = new Set<string>();
    let values = 0;
    map.items = map.items.filter(pair => {
      const { key, value } = pair;
      const named = isAlias(key) ? anchors.get(key.source)?.node : key;
      const name = nameOf(named);
      const innerPath = [...path, name];
      if (reader !== undefined && isScalar(named) && named.tag === reader.ignoredTag) {
        report(key, innerPath, 'is ignored', ignored);
        // It stays until all is resolved: aliases may lead into it.
        pair.key = new Scalar(hiddenName);
        values += review(value, innerPath);
        return true;
      }
      if (name === '__proto__') report(key, innerPath, 'is not allowed as a key');
      if (names.has(name)) report(key, innerPath, 'is set twice: remove one');
      names.add(name);
      review(key, innerPath);
      values += Math.max(1, review(value, innerPath));
      return name !== '__proto__';
    });
    return values;
  }

  const membersByName = new Map<YAMLMap, ReadonlyMap<string, Member>>();
  function memberAt(node: unknown, segment: PropertyKey): Member | undefined {
    const target = targets.get(node) ?? node;
    if (isSeq(target)) {
      const item = target.items[Number(segment)];
      return item === undefined ? undefined : { key: item, value: item };
    }
    if (!isMap(target)) return undefined;
    const members = membersByName.get(target) ?? new Map(target.items.map(pair => [nameOf(pair.key), pair]));
    membersByName.set(target, members);
    return members.get(String(segment));
  }

  const values = review(contents, []);
  const positionOf: YamlDocument['positionOf'] = (path, part) => {
    let place: Member = { key: contents, value: contents };
    for (const segment of path) {
      const inner = memberAt(place.value, segment);
      if (inner === undefined) return positionAt(startOfValue(place));
      place = inner;
    }
    return positionAt(part === 'key' ? startOf(place.key) : startOfValue(place));
  };
  const keysAt: YamlDocument['keysAt'] = path => {
    const node = path.reduce((outer, segment) => memberAt(outer, segment)?.value, contents);
    const target = targets.get(node) ?? node;
    return isMap(target) ? target.items.map(({ key }) => nameOf(key)) : [];
  };
  return { problems, ignored, misread, hasBrokenAlias, values, positionOf, keysAt };
}

/** The key of what a reader ignores, until it is dropped. */
const hiddenName = '\0ignored';

function dropHidden(value: unknown, seen: Set<unknown>): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return;
  seen.add(value);
  Reflect.deleteProperty(value, hiddenName);
  for (const each of Object.values(value)) dropHidden(each, seen);
}

function nameOf(key: unknown): string {
  return isScalar(key) ? String(key.value) : '';
}

function startOfValue({ key, value }: Member): number {
  const standsAtKey = isCollection(value) || !isNode(value) || (isScalar(value) && value.value === null);
  return startOf(standsAtKey ? key : value);
}

function startOf(node: unknown): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? 0;
}

/** Ends before a document that is nested too deep or is one value too long, and says so in `excess`. */
function* boundedTokens(
  tokens: Iterable<CST.Token>,
  maxDepth: number,
  maxItems: number,
  excess: { isDeeper: boolean; isLonger: boolean },
): Iterable<CST.Token> {
  let items = 0;
  for (const token of tokens) {
    if (token.type === 'document') {
      CST.visit(token, (_, path) => {
        items += 1;
        excess.isDeeper ||= path.length > maxDepth;
        excess.isLonger ||= items > maxItems;
        return excess.isDeeper || excess.isLonger ? CST.visit.BREAK : undefined;
      });
      if (excess.isDeeper || excess.isLonger) return;
    }
    yield token;
  }
}

function notReadable(message: string): YamlProblems {
  return { kind: 'problems', problems: [{ path: [], position: { line: 1, column: 1 }, message }] };
}

/** What each error code of the library means, in sentences that do not repeat the text of the file as the library's own do. */
const yamlSyntaxProblems: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias must not have an anchor or a tag',
  BAD_ALIAS: 'an alias or anchor is broken: put text that starts with * or & in quotes',
  BAD_COLLECTION_TYPE: 'a tag does not fit its value: remove the tag',
  BAD_DIRECTIVE: 'a directive is unknown or broken: put text that starts with % in quotes',
  BAD_DQ_ESCAPE: 'an escape sequence is unknown: write \\ in double quotes twice',
  BAD_INDENT: 'the indentation does not match a line above, or a bracket is not closed',
  BAD_PROP_ORDER: 'an anchor or a tag must be directly before its value',
  BAD_SCALAR_START: 'text that starts with a character such as @ or ` must be in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a key must be on a line of its own: put text that contains ": " in quotes',
  BLOCK_IN_FLOW: 'an indented list or mapping must not be inside brackets',
  DUPLICATE_KEY: 'a key is set twice: remove one',
  IMPOSSIBLE: 'the file must be YAML',
  KEY_OVER_1024_CHARS: 'a key must not be longer than 1024 characters',
  MISSING_CHAR: 'a closing quote, a comma, a colon or a space is missing, or a line above is indented otherwise',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line and end in a colon and a space',
  MULTIPLE_ANCHORS: 'a value must not have two anchors',
  MULTIPLE_DOCS: 'the file must be one YAML document: remove the line "---" between documents',
  MULTIPLE_TAGS: 'a value must not have two tags',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'the file must not be nested so deep',
  TAB_AS_INDENT: 'a tab must not be used for indentation',
  TAG_RESOLVE_FAILED: 'a tag is unknown or does not fit its value: put text that starts with ! in quotes',
  UNEXPECTED_TOKEN: 'unexpected text: YAML allows nothing at this place; put text with { } [ ] or , in quotes',
};
