// A part of the bootstrap as Envoy reads it: protobuf JSON, in which a field has two spellings, null is absent and a
// boolean, a number or an enum may be written as text. What Envoy would not read is handed to `onUnreadable`.
import { isJsonObject, memberOf } from '../json/strict-json.ts';

export type ValuePath = readonly (string | number)[];

export interface ProtoValue {
  /** Where it stands in the file, or would stand. */
  readonly path: ValuePath;
  readonly isPresent: boolean;
  /** A field of a message, by its name in the .proto file; absent where it is not given. */
  field(name: string): ProtoValue;
  /** An entry of a map, by its key as it is written. */
  entry(key: string): ProtoValue;
  /** The names of the fields of a message that are given, as in the .proto file. */
  names(): readonly string[];
  /** The keys of a map, as they are written. */
  keys(): readonly string[];
  /** The parts of a repeated field. Envoy takes one that stands without its list. */
  items(): readonly ProtoValue[];
  /** Absent or unreadable: undefined. The same for all that follow. */
  flag(): boolean | undefined;
  text(): string | undefined;
  number(): number | undefined;
  /** A duration. */
  seconds(): number | undefined;
  /** The number of an enum's value; -1 for a name that is not among the given ones. */
  choice(names: Readonly<Record<string, number>>): number | undefined;
  /** The message in a google.protobuf.Any: its full name and its fields. */
  any(): TypedMessage;
  /** Whether a text stands anywhere in it. */
  holds(text: string): boolean;
  /** Says that it cannot be judged, and why: the rest of a sentence about it. */
  cannotBeJudged(message: string): void;
}

export interface TypedMessage {
  /** Without the part before the slash; empty where there is none. */
  readonly type: string;
  readonly message: ProtoValue;
}

export type OnUnreadable = (at: ProtoValue, message: string) => void;

const typedStructs: ReadonlySet<string> = new Set(['xds.type.v3.TypedStruct', 'udpa.type.v1.TypedStruct']);
// YAML 1.1 (yaml-cpp) and absl::SimpleAtob, both of which Envoy asks.
const truths: ReadonlySet<string> = new Set(['true', 't', 'yes', 'y', 'on', '1']);
const falsehoods: ReadonlySet<string> = new Set(['false', 'f', 'no', 'n', 'off', '0']);

export function createProtoValue(value: unknown, onUnreadable: OnUnreadable, path: ValuePath = []): ProtoValue {
  const child = (inner: unknown, segment: string | number) => createProtoValue(inner, onUnreadable, [...path, segment]);
  const isPresent = value !== undefined && value !== null;
  // Wrapped scalars (google.protobuf.BoolValue and the like) may be written as messages.
  const scalar = isJsonObject(value) && Object.hasOwn(value, 'value') ? value.value : value;

  const self: ProtoValue = {
    path,
    isPresent,
    field(name) {
      const camel = toCamelCase(name);
      const given = [...new Set([name, camel])].filter(each => hasMember(value, each));
      if (isPresent && !isJsonObject(value)) onUnreadable(self, 'is not a mapping');
      if (given.length > 1) onUnreadable(self, `has ${name} in two spellings`);
      const spelling = given[0] ?? name;
      return child(given[0] === undefined ? undefined : memberOf(value, spelling), spelling);
    },
    entry(key) {
      return child(memberOf(value, key), key);
    },
    names() {
      return self.keys().map(toSnakeCase);
    },
    keys() {
      return isJsonObject(value) ? Object.keys(value).filter(key => hasMember(value, key)) : [];
    },
    items() {
      if (!isPresent) return [];
      return Array.isArray(value) ? value.map((item: unknown, i) => child(item, i)) : [self];
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
      if (!isPresent) return undefined;
      const seconds = toSeconds(value);
      if (seconds === undefined) onUnreadable(self, 'is not a duration such as 0.5s');
      return seconds;
    },
    choice(names) {
      if (!isPresent) return undefined;
      const number = toNumber(scalar);
      if (number !== undefined) return number;
      if (typeof scalar === 'string') return Object.hasOwn(names, scalar) ? names[scalar] : -1;
      onUnreadable(self, 'is not the name of a value');
      return undefined;
    },
    any() {
      const type = typeNameOf(self.entry('@type').text());
      if (!typedStructs.has(type)) return { type, message: self };
      return { type: typeNameOf(self.field('type_url').text()), message: self.field('value') };
    },
    holds(text) {
      return holdsText(value, text);
    },
    cannotBeJudged(message) {
      onUnreadable(self, message);
    },
  };
  return self;
}

function hasMember(value: unknown, key: string): boolean {
  return (memberOf(value, key) ?? null) !== null;
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

function typeNameOf(url: string | undefined): string {
  return url === undefined ? '' : url.slice(url.lastIndexOf('/') + 1);
}

function toNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

// Envoy takes the JSON form of a duration and, beyond the standard, the message itself.
function toSeconds(value: unknown): number | undefined {
  if (typeof value === 'string')
    return /^\d{1,12}(?:\.\d{1,9})?s$/.test(value) ? Number(value.slice(0, -1)) : undefined;
  if (!isJsonObject(value)) return undefined;
  const [seconds, nanos] = ['seconds', 'nanos'].map(part => toNumber(memberOf(value, part) ?? 0));
  return seconds === undefined || nanos === undefined ? undefined : seconds + nanos / 1e9;
}
