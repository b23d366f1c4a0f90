// A setting of Envoy: what `render` writes, why, and what else the lint accepts. One table of them for each message.
import { above, beside, type Members, type Tree } from './tree.ts';

export interface Setting {
  /** The name in the .proto file. */
  readonly field: string;
  /** What `render` writes. Undefined: it leaves the field out, and only that is good unless `accepts` has more. */
  readonly value?: Tree;
  /** Where there is no value: the settings of the message in this field. */
  readonly fields?: readonly Setting[];
  /** The comment in what `render` writes, and the reason in what the lint says. More than one line is allowed. */
  readonly why?: string;
  /** What is as good as `value`. */
  readonly accepts?: Accepted;
}

/** `anything`: values of the field's type, and none. Durations are numbers of seconds. */
export type Accepted =
  | 'anything'
  | {
      /** The field may be left out. */
      readonly absent?: true;
      readonly values?: readonly (string | number | boolean)[];
      readonly least?: number;
      readonly most?: number;
    };

/** A comment up to this length stands beside its value. */
const shortComment = 90;

/** The members of the message, each with its reason as the comment. */
export function toMembers(settings: readonly Setting[]): Members {
  return Object.fromEntries(settings.map(each => [each.field, toTree(each)]));
}

function toTree({ value, fields, why }: Setting): Tree {
  const tree = value === undefined && fields !== undefined ? toMembers(fields) : value;
  if (why === undefined || tree === undefined) return tree;
  return why.length <= shortComment ? beside(tree, why) : above(toSentence(why), tree);
}

/** Those of these fields, in the order of the table. */
export function only(settings: readonly Setting[], fields: readonly string[]): readonly Setting[] {
  return settings.filter(({ field }) => fields.includes(field));
}

/** The settings of these fields, under the names that another API has for them. A value of that API replaces the one of Envoy. */
export function renamed(
  settings: readonly Setting[],
  names: Readonly<Record<string, string | { readonly from: string; readonly value: Tree }>>,
): Members {
  const ours = new Map(settings.map(each => [each.field, each]));
  const members = Object.entries(names).map(([field, name]) => {
    const found = ours.get(typeof name === 'string' ? name : name.from) ?? { field };
    return [field, toTree(typeof name === 'string' ? found : { ...found, value: name.value })];
  });
  return Object.fromEntries(members);
}

export function toSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.:]$/.test(text) ? '' : '.'}`;
}
