// Sets a claim in a generated payload: a top-level member, or the target of a JSON Pointer of the configuration.
import type { FieldSource, ListSource } from '../oracle/settings.ts';
import { drop, type Member } from './token-draft.ts';

/** Sets the JSON text at the place of the name, and creates the objects and arrays on the path to it. */
export function setClaim(payload: Member[], name: string, text: string): void {
  const [top = '', ...inner] = placeOf(name);
  const literal = JSON.stringify(top);
  const found = payload.find(([each]) => each === literal);
  const value = withPart(found?.[1], inner, text);
  if (found === undefined) payload.push([literal, value]);
  else found[1] = value;
}

/** The pointer or name of a source, with the account in the place of `{acc}`. */
export function placeOfSource(source: ListSource, acc: string): string {
  if (typeof source !== 'string') return placeOfSource('keysOf' in source ? source.keysOf : source.wordsOf, acc);
  return source
    .split('/')
    .map(part => (part === '{acc}' ? escaped(acc) : part))
    .join('/');
}

export function sourcesOf(source: FieldSource): readonly string[] {
  return typeof source === 'string' ? [source] : source;
}

/** The names as the source reads a list of them. */
export function listInForm(source: ListSource, names: readonly unknown[]): unknown {
  if (typeof source === 'string') return names;
  if ('keysOf' in source) return Object.fromEntries(names.map(name => [String(name), {}]));
  const separator = source.by ?? ' ';
  return names
    .map(String)
    .filter(name => name !== '' && !name.includes(separator))
    .join(separator);
}

/** Removes the whole top-level member of the claim. */
export function dropClaim(payload: Member[], name: string): void {
  drop(payload, placeOf(name)[0] ?? '');
}

/** Names of places next to that of a claim. */
export function placesBeside(name: string): readonly string[] {
  const [top = '', ...inner] = placeOf(name);
  const last = inner.at(-1) ?? top;
  const parent = name.slice(0, name.lastIndexOf('/'));
  if (!name.startsWith('/')) return [`/${name.replaceAll('.', '/')}/x`, `${name}.x`, `/x/${escaped(name)}`];
  // A lax reader takes these for the same index.
  if (/^[0-9]+$/.test(last)) return [`${parent}/${Number(last)}`, `${parent}/0${last}`, `${parent}/${last}.0`];
  return [`${name}/x`, `${name}/0`, `${name}x`, `${parent}x/${escaped(last)}`, `/${escaped(name)}`, `/x${name}`];
}

function placeOf(name: string): readonly string[] {
  if (!name.startsWith('/')) return [name];
  return name
    .slice(1)
    .split('/')
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function escaped(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}

function withPart(json: string | undefined, [name, ...inner]: readonly string[], text: string): string {
  if (name === undefined) return text;
  const value = parsed(json);
  if (/^[0-9]$/.test(name) && (value === undefined || Array.isArray(value))) {
    const items = (value ?? []).map(each => JSON.stringify(each));
    while (items.length <= Number(name)) items.push('"beside"');
    items[Number(name)] = withPart(items[Number(name)], inner, text);
    return `[${items.join()}]`;
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const members = new Map(Object.entries(isObject ? value : {}).map(([key, each]) => [key, JSON.stringify(each)]));
  members.set(name, withPart(members.get(name), inner, text));
  return `{${Array.from(members, ([key, each]) => `${JSON.stringify(key)}:${each}`).join()}}`;
}

// JSON that an earlier change broke is replaced.
function parsed(json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json);
  } catch {
    return undefined;
  }
}
