// A row of a comparison: what it is about, in data and in words, and its example.
import { allMethods } from '../../authz/permission.ts';
import { printable } from '../../text/printable.ts';
import type { AskedCase, Example, Examples } from './example.ts';
import type { Mode } from './permissions.ts';

export const kinds = ['more', 'less', 'other', 'unordered'] as const;

export interface Row {
  readonly kind: (typeof kinds)[number];
  /** As tokens write it; several: each of them. */
  readonly role?: string | readonly string[];
  /** One of which a token has; `*` with `!`: any but these, or none. */
  readonly scope?: string | readonly string[];
  readonly methods?: readonly string[];
  readonly path?: string;
  /** Templates of what the path covers and the row is not about. */
  readonly except?: readonly string[];
  /** What is special about the requests. */
  readonly when?: string;
  readonly setting?: string;
  /** The entry of the setting. */
  readonly entry?: string | readonly string[];
  /** Reasons, `allowed` among them, or values of the setting. */
  readonly before: unknown;
  readonly after: unknown;
  readonly example?: Example;
}

export const whens: Readonly<Record<Mode, string | undefined>> = {
  own: undefined,
  another: 'for another account than that of the token',
  several: 'for a token with several accounts',
  wide: 'with a character that only rfc3986 permits',
  loose: 'with a literal in another case, or with a format',
};

/** With the first case that the engine answers as the row says. The reasons are those that it gets: another check may refuse it first. */
export function withExample(row: Row, cases: readonly AskedCase[], { answers }: Examples): Row {
  for (const asked of cases) {
    const [before, after] = answers(asked);
    const kind = before === after ? undefined : after === 'allowed' ? 'more' : before === 'allowed' ? 'less' : 'other';
    if (kind !== row.kind) continue;
    const changed = { ...row, before, after };
    return { ...changed, example: { name: toText(changed), ...asked, expect: after } };
  }
  return row;
}

/** One line: `more  role member  POST  /v1/comments/*  was role_forbidden`. */
export function toText({ kind, role, scope, methods, path, except, when, setting, entry, before, after }: Row): string {
  const parts = [
    kind,
    role && `role ${listOf(role)}`,
    scope && scopeText(scope),
    methods && methodsText(methods),
    path,
    except && `except ${someOf(except).join(', ')}`,
    setting,
    entry && listOf(entry),
    when,
    changeText(before, after),
  ];
  return parts.filter(part => part !== undefined).join('  ');
}

/** `*` stands for the methods that it stands for in a configuration. */
export function methodsText(methods: readonly string[]): string {
  const isEvery = allMethods.every(method => methods.includes(method));
  const others = methods.filter(method => !allMethods.includes(method));
  return (isEvery ? ['*', ...others] : methods).join(', ');
}

export function scopeText(scope: string | readonly string[]): string {
  const [first, ...others] = [scope].flat();
  return first === '*' ? `no scope of ${others.map(name => name.slice(1)).join(', ')}` : `scope ${listOf(scope)}`;
}

export function listOf(value: string | readonly string[]): string {
  return [value].flat().join(', ');
}

const maxListed = 8;

/** The first ones, and how many more there are. */
export function someOf(items: readonly string[]): readonly string[] {
  const more = items.length - maxListed;
  return more > 0 ? [...items.slice(0, maxListed), `and ${more} more`] : items;
}

function changeText(before: unknown, after: unknown): string {
  if (after === 'allowed') return `was ${valueText(before)}`;
  return before === 'allowed' ? `now ${valueText(after)}` : `${valueText(before)} → ${valueText(after)}`;
}

/** Printable and bounded. */
export function valueText(value: unknown): string {
  if (value === null) return 'none';
  return printable(typeof value === 'string' ? value : JSON.stringify(value), maxValueLength);
}

const maxValueLength = 300;

export function oneOrAll(items: readonly string[]): string | readonly string[] {
  const [only] = items;
  return items.length === 1 && only !== undefined ? only : items;
}
