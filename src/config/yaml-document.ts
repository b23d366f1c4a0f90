// YAML text → the value it holds and where in the text each part of it stands. Knows nothing of the configuration.
// The text is the operator's, but it is read again while the service runs: no text may stop or block the process.
import {
  Composer,
  CST,
  type Document,
  type ErrorCode,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  Parser,
  type YAMLError,
  type YAMLMap,
} from 'yaml';

/** Both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Something wrong with the text itself: a sentence, or with a path the rest of one about what stands there. */
export interface TextProblem {
  readonly path: readonly PropertyKey[];
  readonly position: Position;
  readonly message: string;
}

export interface YamlDocument {
  readonly kind: 'document';
  readonly value: unknown;
  /** What is wrong and yet leaves a value: keys given twice, unknown tags. */
  readonly problems: readonly TextProblem[];
  /**
   * Where the value at the path stands, or its key. A list or a mapping stands where its key does; what is not in the text,
   * where the innermost thing around it stands that is.
   */
  positionOf(path: readonly PropertyKey[], part: 'key' | 'value'): Position;
}

export interface YamlProblems {
  readonly kind: 'problems';
  readonly problems: readonly TextProblem[];
}

// Deeper nesting could exhaust the stack of the composer, which can end the process: V8 aborts where a regular expression
// has no stack left to be compiled on.
const usualMaxDepth = 32;
// What follows the first mistakes is mostly their echo.
const maxSyntaxProblems = 100;
const maxAliases = 100;

export interface YamlOptions {
  /** How deep the text may be nested; 32 if not given. */
  readonly maxDepth?: number;
  /** A tag that keys may have, which then need not be text: Envoy's `!ignore`. */
  readonly keyTag?: string;
}

export function parseYamlDocument(bytes: Uint8Array, options: YamlOptions = {}): YamlDocument | YamlProblems {
  const { maxDepth = usualMaxDepth, keyTag } = options;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return notReadable('the file is not UTF-8');
  }
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  if (tokens.some(token => isDeeperThan(token, maxDepth)))
    return notReadable(`the file is nested more than ${maxDepth} deep`);
  const [document, next] = new Composer({
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    stringKeys: keyTag === undefined,
    customTags: keyTag === undefined ? null : [{ tag: keyTag, resolve: (text: string) => text }],
    // The comparison of the library takes a minute for a large mapping.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  }).compose(tokens, true, text.length);
  return document === undefined ? notReadable('the file is empty') : readDocument(document, next, lines);
}

function readDocument(
  document: Document.Parsed,
  next: Document.Parsed | undefined,
  lines: LineCounter,
): YamlDocument | YamlProblems {
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const toTextProblem = ({ code, pos }: YAMLError): TextProblem => ({
    path: [],
    position: positionAt(pos[0]),
    message: syntaxProblems[code],
  });
  const { contents, errors, warnings } = document;
  const syntax = errors.map(toTextProblem);
  if (next !== undefined) {
    syntax.push({ path: [], position: positionAt(next.range[0]), message: 'the file has more than one document' });
  }
  const warned = warnings.map(toTextProblem);
  if (syntax.length > 0) return { kind: 'problems', problems: [...syntax, ...warned].slice(0, maxSyntaxProblems) };
  const survey = surveyNodes(contents, positionAt);
  const problems = [...warned, ...survey.problems];
  if (survey.hasBrokenAlias) return { kind: 'problems', problems };
  if (contents === null || (isScalar(contents) && contents.value === null)) return notReadable('the file is empty');
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: maxAliases });
  } catch (error) {
    // What the library throws where aliases of aliases multiply; all else that it could throw for was looked for before.
    if (!(error instanceof ReferenceError)) throw error;
    return notReadable('the file uses aliases too often');
  }
  return {
    kind: 'document',
    value,
    problems,
    positionOf: (path, part) => positionAt(offsetOf(document, survey.members, path, part)),
  };
}

type Members = ReadonlyMap<YAMLMap, ReadonlyMap<string, Pair>>;

interface Survey {
  readonly problems: readonly TextProblem[];
  readonly hasBrokenAlias: boolean;
  /** Each mapping's pairs by name: of a name given twice the last one, as in the value. */
  readonly members: Members;
}

// One walk for what the composer leaves alone: keys given twice, `__proto__`, and aliases that lead nowhere or back.
function surveyNodes(root: unknown, positionAt: (offset: number) => Position): Survey {
  const problems: TextProblem[] = [];
  const members = new Map<YAMLMap, Map<string, Pair>>();
  const anchors = new Set<string>();
  let hasBrokenAlias = false;
  const report = (node: unknown, path: readonly PropertyKey[], message: string) => {
    problems.push({ path, position: positionAt(startOf(node) ?? 0), message });
  };
  const survey = (node: unknown, path: readonly PropertyKey[]): void => {
    if (isAlias(node)) {
      if (anchors.has(node.source)) return;
      hasBrokenAlias = true;
      report(node, path, 'is an alias of nothing above it, text that starts with * must stand in quotes');
    } else if (isMap(node)) {
      const pairs = new Map<string, Pair>();
      members.set(node, pairs);
      node.items = node.items.filter(pair => {
        const name = nameOf(pair.key);
        const isPossible = name !== '__proto__';
        if (!isPossible) report(pair.key, [...path, name], 'is not a possible key');
        if (pairs.has(name)) report(pair.key, [...path, name], 'is given twice');
        pairs.set(name, pair);
        survey(pair.key, path);
        survey(pair.value, [...path, name]);
        return isPossible;
      });
    } else if (isSeq(node)) {
      for (const [i, item] of node.items.entries()) survey(item, [...path, i]);
    }
    // Known only from its end on, so that nothing can hold itself.
    if (isNode(node) && !isAlias(node) && node.anchor !== undefined) anchors.add(node.anchor);
  };
  survey(root, []);
  return { problems, hasBrokenAlias, members };
}

function offsetOf(
  document: Document.Parsed,
  members: Members,
  path: readonly PropertyKey[],
  part: 'key' | 'value',
): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [i, segment] of path.entries()) {
    const around = isAlias(node) ? node.resolve(document) : node;
    if (isMap(around)) {
      const pair = members.get(around)?.get(String(segment));
      if (pair === undefined) return offset;
      node = pair.value;
      const standsAtKey = isCollection(node) || (isScalar(node) && node.value === null);
      const isKeyMeant = part === 'key' && i === path.length - 1;
      offset = startOf(isKeyMeant || standsAtKey ? pair.key : node) ?? offset;
    } else if (isSeq(around) && typeof segment === 'number') {
      node = around.items[segment];
      offset = startOf(node) ?? offset;
    } else {
      return offset;
    }
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

function nameOf(key: unknown): string {
  return isScalar(key) ? String(key.value) : '';
}

// With a stack of its own: the text decides how deep this goes.
function isDeeperThan(token: CST.Token, depth: number): boolean {
  const open: { readonly token: CST.Token; readonly depth: number }[] = [{ token, depth: 0 }];
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    if (each.depth > depth) return true;
    if (each.token.type === 'document') {
      if (each.token.value !== undefined) open.push({ token: each.token.value, depth: each.depth });
    } else if (CST.isCollection(each.token)) {
      for (const { key, value } of each.token.items) {
        if (key) open.push({ token: key, depth: each.depth + 1 });
        if (value) open.push({ token: value, depth: each.depth + 1 });
      }
    }
  }
  return false;
}

function notReadable(message: string): YamlProblems {
  return { kind: 'problems', problems: [{ path: [], position: { line: 1, column: 1 }, message }] };
}

// Ours instead of the library's, which repeat the text of the file.
const syntaxProblems: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias must not have an anchor or a tag',
  BAD_ALIAS: 'an alias or an anchor is broken, text that starts with * or & must stand in quotes',
  BAD_COLLECTION_TYPE: 'a tag does not fit what it stands before',
  BAD_DIRECTIVE: 'a directive is unknown or broken, text that starts with % must stand in quotes',
  BAD_DQ_ESCAPE: 'an escape sequence is unknown, a \\ in double quotes must be written twice',
  BAD_INDENT: 'the indentation fits nothing above it, or a bracket is not closed',
  BAD_PROP_ORDER: 'an anchor or a tag must stand directly before its value',
  BAD_SCALAR_START: 'text that starts with a character such as @ or ` must stand in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a key must stand on a line of its own, text with ": " in it must stand in quotes',
  BLOCK_IN_FLOW: 'an indented list or mapping must not stand inside brackets',
  DUPLICATE_KEY: 'a key is given twice',
  IMPOSSIBLE: 'this is not YAML',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR: 'a closing quote, a comma, a colon or a space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must stand on one line, with a colon after it',
  MULTIPLE_ANCHORS: 'a value must not have two anchors',
  MULTIPLE_DOCS: 'the file has more than one document',
  MULTIPLE_TAGS: 'a value must not have two tags',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'the file is nested too deep',
  TAB_AS_INDENT: 'a tab must not be used for indentation',
  TAG_RESOLVE_FAILED: 'a tag is unknown or does not fit its value, text that starts with ! must stand in quotes',
  UNEXPECTED_TOKEN: 'something stands where YAML has no place for it',
};
