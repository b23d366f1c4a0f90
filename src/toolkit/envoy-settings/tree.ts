// A YAML document as plain values with comments, and its text.
import { Document, isCollection, isMap, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';

/** Members that are undefined are left out. */
export type Tree = string | number | boolean | readonly Tree[] | Members | Commented | undefined;

export interface Members {
  readonly [key: string]: Tree;
}

const commented: unique symbol = Symbol('commented');

interface Comments {
  readonly value: Tree;
  readonly above?: string;
  readonly beside?: string;
  readonly isInline?: boolean;
}

interface Commented {
  readonly [commented]: Comments;
}

export const lineWidth = 140;
/** From so many on, a mapping in a list has an empty line above it. */
const manyMembers = 5;

/** A comment in the lines above the value; an empty line if it is empty. */
export function above(comment: string, value: Tree): Tree {
  return { [commented]: { ...commentsOf(value), above: comment } };
}

/** A comment in the line of the value, or in the line of the key of a list or mapping. */
export function beside(value: Tree, comment: string): Tree {
  return { [commented]: { ...commentsOf(value), beside: comment } };
}

/** A list or mapping in one line: `{ … }`. */
export function inline(value: readonly Tree[] | Members): Tree {
  return { [commented]: { value, isInline: true } };
}

/** The text of one or more documents. `header` holds the lines of a comment on top. */
export function toYaml(trees: readonly Tree[], header: readonly string[]): string {
  const lines = header.length === 0 ? [] : ['', ...header];
  const top = lines.map(line => `#${line === '' ? '' : ` ${line}`}\n`).join('');
  const documents = trees.map(tree => {
    // Envoy reads YAML 1.1, in which `on` and `y` are booleans: with its schema such texts are quoted.
    const document = new Document(undefined, { schema: 'yaml-1.1', merge: false });
    document.contents = toNode(tree, 0);
    return document.toString({ lineWidth: 0 });
  });
  return `${top}\n${documents.join('---\n')}`;
}

/** As `JSON.parse` would give it: without comments and members that are undefined. */
export function toPlain(tree: Tree): unknown {
  const { value } = commentsOf(tree);
  if (isCommented(value)) return toPlain(value);
  if (typeof value !== 'object') return value;
  if (isList(value)) return value.filter(item => item !== undefined).map(toPlain);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, toPlain(member)]));
}

function commentsOf(tree: Tree): Comments {
  return isCommented(tree) ? tree[commented] : { value: tree };
}

function isCommented(tree: Tree): tree is Commented {
  return typeof tree === 'object' && commented in tree;
}

function toNode(tree: Tree, depth: number): Node {
  const { value, isInline = false } = commentsOf(tree);
  const node = isCommented(value) ? toNode(value, depth) : toPlainNode(value, depth);
  if (isCollection(node) && (isInline || node.items.length === 0)) node.flow = true;
  return node;
}

function toPlainNode(value: Exclude<Tree, Commented>, depth: number): Node {
  if (typeof value !== 'object') return toScalar(value);
  if (isList(value)) {
    const list = new YAMLSeq();
    for (const [i, item] of value.entries()) {
      if (item === undefined) continue;
      const node = toNode(item, depth + 1);
      comment(node, node, item, { depth, isFirst: i === 0 });
      list.items.push(node);
    }
    return list;
  }
  const map = new YAMLMap();
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const key = new Scalar(name);
    const node = toNode(member, depth + 1);
    const isFirst = map.items.length === 0;
    comment(key, isCollection(node) && node.flow !== true ? key : node, member, { depth, isFirst });
    map.items.push(new Pair(key, node));
  }
  return map;
}

function toScalar(value: string | number | boolean | undefined): Scalar {
  const scalar = new Scalar(value);
  // The parser of Envoy wants these quoted in a mapping in one line.
  if (typeof value === 'string' && /^:|\?$/.test(value)) scalar.type = Scalar.QUOTE_DOUBLE;
  return scalar;
}

/** Comments of more than one line have an empty line above them. */
function comment(first: Node, last: Node, tree: Tree, at: { readonly depth: number; readonly isFirst: boolean }): void {
  const comments = commentsOf(tree);
  if (comments.above === '') first.spaceBefore = true;
  else if (comments.above !== undefined) {
    const lines = comments.above.split('\n').flatMap(line => wrap(line, lineWidth - 2 * at.depth - 2));
    first.commentBefore = lines.map(line => ` ${line}`).join('\n');
    first.spaceBefore = !at.isFirst && lines.length > 1;
  }
  first.spaceBefore ||= !at.isFirst && isMap(first) && first.items.length >= manyMembers;
  if (comments.beside !== undefined) last.comment = ` ${comments.beside}`;
}

export function wrap(text: string, width: number): readonly string[] {
  if (text.length <= width) return [text];
  const before = text.lastIndexOf(' ', width);
  const cut = before > 0 ? before : text.indexOf(' ', width);
  if (cut < 0) return [text];
  return [text.slice(0, cut), ...wrap(text.slice(cut + 1), width)];
}

function isList(value: readonly Tree[] | Members): value is readonly Tree[] {
  return Array.isArray(value);
}
