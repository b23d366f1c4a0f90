// Compares settings by their directions: everything that the engine is not asked about.
import { isDeepStrictEqual } from 'node:util';
import { type Direction, directionOf } from '../../config/directions.ts';
import { validateConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import type { FileContent } from '../../files/bounded-file.ts';
import { isJsonObject, itemsOf, memberOf } from '../../json/strict-json.ts';
import { normalizeTokenType } from '../../token/verifier.ts';
import type { Both } from './path-classes.ts';
import type { Row } from './row.ts';

export interface SettingChange {
  readonly kind: Row['kind'];
  /** As `check-config` names places: `issuers[0].audiences`. */
  readonly setting: string;
  /** Values, of a list those that the other side lacks; null: none. */
  readonly before: unknown;
  readonly after: unknown;
}

/** The items of these lists are known by a name. */
const names: Readonly<Record<string, string>> = { issuers: 'issuer', public: 'path' };

/** In the place of the folder of both, so that a relative name is the same wherever they lie. */
const configFolder = '/(the folder of the configuration)/';

export function validateCompared(content: FileContent) {
  return validateConfig(content, `${configFolder}config.yaml`, { readsNamedFiles: false });
}

function inFolder(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(configFolder) ? value.slice(configFolder.length) : value;
  if (!isJsonObject(value)) return value ?? null;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, inFolder(member)]));
}

/** Of configurations as they are written, with defaults. */
export function compareSettings([before, after]: Both<Config>): readonly SettingChange[] {
  return changesIn('', '', before, after);
}

function changesIn(path: string, place: string, before: unknown, after: unknown): readonly SettingChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  const direction = directionOf(path);
  const name = names[path];
  if (name !== undefined) return ofNamedItems(path, name, itemsOf(before), itemsOf(after));
  const haveMembers = isJsonObject(before) && isJsonObject(after);
  const isWhole = !haveMembers || direction === 'policy' || direction === 'operator';
  if (direction !== undefined && isWhole) return ofSetting(direction, place, before, after);
  const members = new Set([before, after].flatMap(value => (isJsonObject(value) ? Object.keys(value) : [])));
  const dot = path === '' ? '' : '.';
  return [...members].flatMap(member =>
    changesIn(`${path}${dot}${member}`, `${place}${dot}${member}`, memberOf(before, member), memberOf(after, member)),
  );
}

/** An item that one side alone has is one change; its index is the new one where there is one. */
function ofNamedItems(path: string, name: string, before: readonly unknown[], after: readonly unknown[]) {
  const find = (items: readonly unknown[], item: unknown): number =>
    items.findIndex(each => memberOf(each, name) === memberOf(item, name));
  const added = after.flatMap((item, i) => {
    const old = before[find(before, item)];
    const place = `${path}[${i}]`;
    if (old !== undefined) return changesIn(`${path}[]`, place, old, item);
    if (isServed(item, before)) return [];
    return [{ kind: 'more', setting: place, before: null, after: shown(item, name) } as const];
  });
  const removed = before.flatMap((item, i) =>
    find(after, item) === -1 && !isServed(item, after)
      ? [{ kind: 'less', setting: `${path}[${i}]`, before: shown(item, name), after: null } as const]
      : [],
  );
  return [...added, ...removed];
}

/** Whether a public route of the others serves all that this one does. */
function isServed(item: unknown, others: readonly unknown[]): boolean {
  const { path, methods, characters } = toPublic(item);
  if (path === '') return false;
  return others.map(toPublic).some(other => {
    const isBelow = other.path.endsWith('/*') && `${path}/`.startsWith(other.path.slice(0, -1));
    const isAsWide = other.characters === 'rfc3986' || other.characters === characters;
    return isBelow && isAsWide && methods.every(method => other.methods.includes(method));
  });
}

function toPublic(item: unknown) {
  const path = memberOf(item, 'methods') === undefined ? '' : String(memberOf(item, 'path'));
  return { path, methods: itemsOf(memberOf(item, 'methods')), characters: memberOf(item, 'characters') };
}

function shown(item: unknown, name: string): unknown {
  const methods = memberOf(item, 'methods');
  return Array.isArray(methods) ? `${methods.join(', ')} ${String(memberOf(item, name))}` : memberOf(item, name);
}

function ofSetting(direction: Direction, setting: string, before: unknown, after: unknown): readonly SettingChange[] {
  const change = (kind: SettingChange['kind']): readonly SettingChange[] => [
    { kind, setting, before: inFolder(before), after: inFolder(after) },
  ];
  if (direction === 'policy' || direction === 'operator') return [];
  if (direction === 'other' || direction === 'unordered') return change(direction);
  if (Array.isArray(before) || Array.isArray(after))
    return compareLists(direction, setting, itemsOf(before), itemsOf(after));
  if (typeof direction === 'object')
    return change(direction.indexOf(String(after)) > direction.indexOf(String(before)) ? 'more' : 'less');
  // A time that comes or goes with the setting that it is about, which has its own row.
  if (typeof before !== typeof after && [before, after].some(value => typeof value === 'number')) return [];
  const [lesser, greater] = [Number(before ?? 0), Number(after ?? 0)];
  const isOrdered = typeof (before ?? after) !== 'string' && typeof (before ?? after) !== 'object';
  if (isOrdered && lesser === greater) return [];
  // A value where there was none, or none where there was one.
  const grows = isOrdered ? greater > lesser : before === undefined;
  if (!isOrdered && before !== undefined && after !== undefined) return change('unordered');
  return change(grows === (direction !== 'less') ? 'more' : 'less');
}

/** Of lists whose order decides nothing. */
export function compareLists(
  direction: Direction,
  setting: string,
  before: readonly unknown[],
  after: readonly unknown[],
) {
  const keyOf = (item: unknown): unknown =>
    setting.endsWith('.tokenTypes') && typeof item === 'string' && item !== '' ? normalizeTokenType(item) : item;
  const without = (items: readonly unknown[], others: readonly unknown[]): readonly unknown[] => {
    const known = new Set(others.map(keyOf));
    return items.filter(item => !known.has(keyOf(item)));
  };
  const isNew = (item: unknown, others: readonly unknown[]): boolean =>
    direction !== 'accounts' || !isIdle(String(item), others.map(String));
  const removed = without(before, after).filter(item => isNew(item, after));
  const added = without(after, before).filter(item => isNew(item, before));
  const allowsLess = (item: unknown): boolean => direction === 'accounts' && String(item).startsWith('!');
  return (['more', 'less'] as const).flatMap(kind => {
    const was = removed.filter(item => allowsLess(item) === (kind === 'more'));
    const is = added.filter(item => allowsLess(item) !== (kind === 'more'));
    if (was.length === 0 && is.length === 0) return [];
    return [{ kind, setting, before: listed(was), after: listed(is) }];
  });
}

/** Whether the entry of `accounts` changes nothing beside the others: one of them has all of its accounts, or none has what it excepts. */
function isIdle(entry: string, others: readonly string[]): boolean {
  const isExcepted = entry.startsWith('!');
  const has = (outer: string, inner: string): boolean =>
    outer.endsWith('*') ? inner.replace(/\*$/, '').startsWith(outer.slice(0, -1)) : outer === inner;
  if (others.some(other => other.startsWith('!') === isExcepted && has(other, entry))) return true;
  const name = entry.slice(1);
  return isExcepted && !others.some(other => !other.startsWith('!') && (has(other, name) || has(name, other)));
}

function listed(items: readonly unknown[]): unknown {
  return items.length === 0 ? null : items.length === 1 ? items[0] : items;
}
