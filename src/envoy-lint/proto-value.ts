// Reads the bootstrap as Envoy does: protobuf JSON, in which a field has two spellings, null is absent and a boolean, a number or an
// enum may be text. Reports what Envoy would not read to `onUnreadable`.
import { isJsonObject, memberOf } from '../json/strict-json.ts';

export type ValuePath = readonly (string | number)[];

export interface ProtoValue {
  /** Its place in the file, also if absent. */
  readonly path: ValuePath;
  readonly isPresent: boolean;
  /** A field of a message, or of nested messages, by names of the .proto files. */
  field(name: string, ...inner: readonly string[]): ProtoValue;
  entry(key: string): ProtoValue;
  /** The entries of a map. */
  entries(): readonly ProtoValue[];
  /** The names of the fields that are present, as in the .proto file. */
  names(): readonly string[];
  /** The elements of a repeated field, or of repeated fields in each other. Envoy accepts a single element without a list. */
  items(...names: readonly string[]): readonly ProtoValue[];
  /** Undefined if absent or unreadable. The same for all that follow. */
  flag(): boolean | undefined;
  text(): string | undefined;
  number(): number | undefined;
  seconds(): number | undefined;
  /** The number of an enum value; -1 for an unknown name. */
  choice(names: Readonly<Record<string, number>>): number | undefined;
  /** The message in a google.protobuf.Any, and its full name; the name is empty if absent. */
  any(): { readonly type: string; readonly message: ProtoValue };
  /** Whether any text in it equals this one. */
  holds(text: string): boolean;
  /** Reports that the lint cannot judge it: `message` completes a sentence about it. */
  cannotBeJudged(message: string): void;
}

export type OnUnreadable = (at: ProtoValue, message: string) => void;

const typedStructs: ReadonlySet<string> = new Set(['xds.type.v3.TypedStruct', 'udpa.type.v1.TypedStruct']);
// Of YAML 1.1 (yaml-cpp) and absl::SimpleAtob; Envoy uses both.
const truths: ReadonlySet<string> = new Set(['true', 't', 'yes', 'y', 'on', '1']);
const falsehoods: ReadonlySet<string> = new Set(['false', 'f', 'no', 'n', 'off', '0']);

export function createProtoValue(value: unknown, onUnreadable: OnUnreadable, path: ValuePath = []): ProtoValue {
  const child = (inner: unknown, segment: string | number) => createProtoValue(inner, onUnreadable, [...path, segment]);
  const isPresent = isGiven(value);
  // A wrapper such as google.protobuf.BoolValue may be written as a message.
  const scalar = isJsonObject(value) && Object.hasOwn(value, 'value') ? value.value : value;
  const keys = () => (isJsonObject(value) ? Object.keys(value).filter(key => isGiven(value[key])) : []);

  const self: ProtoValue = {
    path,
    isPresent,
    field(name, ...inner) {
      const given = [...new Set([name, toCamelCase(name)])].filter(each => isGiven(memberOf(value, each)));
      if (isPresent && !isJsonObject(value)) onUnreadable(self, 'is not a mapping');
      if (given.length > 1) onUnreadable(self, `has ${name} in two spellings`);
      const [spelling = name] = given;
      return inner.reduce((at, each) => at.field(each), child(memberOf(value, spelling), spelling));
    },
    entry: key => child(memberOf(value, key), key),
    entries: () => keys().map(key => self.entry(key)),
    names: () => keys().map(toSnakeCase),
    items(...names) {
      if (names.length > 0) return names.reduce((all, name) => all.flatMap(each => each.field(name).items()), [self]);
      if (!isPresent) return [];
      return Array.isArray(value) ? value.map(child) : [self];
    },
    flag() {
      if (!isPresent || typeof scalar === 'boolean') return isPresent ? scalar === true : undefined;
      const word = typeof scalar === 'string' ? scalar.toLowerCase() : '';
      if (truths.has(word)) return true;
      if (!falsehoods.has(word)) onUnreadable(self, 'is not true or false');
      return falsehoods.has(word) ? false : undefined;
    },
    text() {
      if (isPresent && typeof scalar !== 'string') onUnreadable(self, 'is not text');
      return typeof scalar === 'string' ? scalar : undefined;
    },
    number() {
      const number = toNumber(scalar);
      if (isPresent && number === undefined) onUnreadable(self, 'is not a number');
      return number;
    },
    seconds() {
      const seconds = toSeconds(value);
      if (isPresent && seconds === undefined) onUnreadable(self, 'is not a duration such as 0.5s');
      return seconds;
    },
    choice(names) {
      const number = toNumber(scalar);
      if (number !== undefined || !isPresent) return number;
      if (typeof scalar === 'string') return Object.hasOwn(names, scalar) ? names[scalar] : -1;
      onUnreadable(self, 'is not the name of a value');
      return undefined;
    },
    any() {
      const nameIn = (url: ProtoValue): string => url.text()?.split('/').at(-1) ?? '';
      const type = nameIn(self.entry('@type'));
      if (!typedStructs.has(type)) return { type, message: self };
      return { type: nameIn(self.field('type_url')), message: self.field('value') };
    },
    holds: text => holdsText(value, text),
    cannotBeJudged: message => onUnreadable(self, message),
  };
  return self;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function holdsText(value: unknown, text: string): boolean {
  if (typeof value !== 'object' || value === null) return value === text;
  return Object.values(value).some(each => holdsText(each, text));
}

function toCamelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`);
}

function toNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

// Envoy also accepts the message form of a duration, which is not standard JSON.
function toSeconds(value: unknown): number | undefined {
  if (typeof value === 'string')
    return /^\d{1,12}(?:\.\d{1,9})?s$/.test(value) ? Number(value.slice(0, -1)) : undefined;
  if (!isJsonObject(value)) return undefined;
  const [seconds, nanos] = ['seconds', 'nanos'].map(part => toNumber(memberOf(value, part) ?? 0));
  return seconds === undefined || nanos === undefined ? undefined : seconds + nanos / 1e9;
}
