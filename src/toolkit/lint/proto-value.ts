// Reads the bootstrap as Envoy does: protobuf JSON, in which a field has two spellings, null is absent and a boolean, a number or an
// enum may be text. Reports what Envoy would not read to `onUnreadable`.
import { isJsonObject, memberOf } from '../../json/strict-json.ts';

export type ValuePath = readonly (string | number)[];

type OnUnreadable = (at: ProtoValue, message: string) => void;

const typedStructs: ReadonlySet<string> = new Set(['xds.type.v3.TypedStruct', 'udpa.type.v1.TypedStruct']);
// The words of YAML 1.1 (yaml-cpp) and of absl::SimpleAtob; Envoy uses both.
const truths: ReadonlySet<string> = new Set(['true', 't', 'yes', 'y', 'on', '1']);
const falsehoods: ReadonlySet<string> = new Set(['false', 'f', 'no', 'n', 'off', '0']);

// A class, since a bootstrap has thousands of values: a closure for each method of each would take most of the time of the lint.
export class ProtoValue {
  readonly #value: unknown;
  readonly #above: ProtoValue | OnUnreadable;
  readonly #key: string | number;

  constructor(value: unknown, above: ProtoValue | OnUnreadable, key: string | number = '') {
    this.#value = value;
    this.#above = above;
    this.#key = key;
  }

  /** Its place in the file, also if absent. */
  get path(): ValuePath {
    const path: (string | number)[] = [];
    for (let at: ProtoValue = this; at.#above instanceof ProtoValue; at = at.#above) path.push(at.#key);
    return path.reverse();
  }

  /** The last part of its place. */
  get key(): string | number {
    return this.#key;
  }

  /** The message that it is in; of the whole file, itself. */
  get parent(): ProtoValue {
    return this.#above instanceof ProtoValue ? this.#above : this;
  }

  /** The whole file. */
  get root(): ProtoValue {
    let at: ProtoValue = this;
    while (at.#above instanceof ProtoValue) at = at.#above;
    return at;
  }

  get isPresent(): boolean {
    return isGiven(this.#value);
  }

  get isMapping(): boolean {
    return isJsonObject(this.#value);
  }

  /** A field of a message, or of nested messages, by names of the .proto files. */
  field(name: string, ...inner: readonly string[]): ProtoValue {
    const value = this.#value;
    const camelCase = name.includes('_') ? toCamelCase(name) : name;
    if (isGiven(value) && !isJsonObject(value)) this.cannotBeJudged('is not a mapping');
    const plain = memberOf(value, name);
    const other = camelCase === name ? undefined : memberOf(value, camelCase);
    if (isGiven(other) && isGiven(plain)) this.cannotBeJudged(`has ${name} in two spellings`);
    const found = isGiven(other) && !isGiven(plain) ? this.#child(other, camelCase) : this.#child(plain, name);
    return inner.length === 0 ? found : inner.reduce((at, each) => at.field(each), found);
  }

  /** Those of these fields that are present. */
  present(...names: readonly string[]): readonly ProtoValue[] {
    const value = this.#value;
    const found: ProtoValue[] = [];
    if (isJsonObject(value))
      for (const key of Object.keys(value))
        if (names.includes(toSnakeCase(key)) && isGiven(value[key])) found.push(this.entry(key));
    return found;
  }

  entry(key: string): ProtoValue {
    return this.#child(memberOf(this.#value, key), key);
  }

  /** The entries of a map. */
  entries(): readonly ProtoValue[] {
    return this.#keys().map(key => this.entry(key));
  }

  /** The names of the fields that are present, as in the .proto file. */
  names(): readonly string[] {
    return this.#keys().map(toSnakeCase);
  }

  /** The elements of a repeated field, or of repeated fields in each other. Envoy accepts a single element without a list. */
  items(...names: readonly string[]): readonly ProtoValue[] {
    if (names.length > 0)
      return names.reduce<readonly ProtoValue[]>((all, name) => all.flatMap(each => each.field(name).items()), [this]);
    if (!this.isPresent) return [];
    return Array.isArray(this.#value) ? this.#value.map((each, i) => this.#child(each, i)) : [this];
  }

  /** Undefined if absent or unreadable. The same for all that follow. */
  flag(): boolean | undefined {
    const scalar = this.#scalar();
    const word = typeof scalar === 'string' ? scalar.toLowerCase() : '';
    const flag = truths.has(word) ? true : falsehoods.has(word) ? false : undefined;
    return this.#read(typeof scalar === 'boolean' ? scalar : flag, 'is not true or false');
  }

  /** A boolean, a number or a text as text; undefined for anything else. */
  scalarText(): string | undefined {
    const scalar = this.#scalar();
    return typeof scalar === 'object' || scalar === undefined ? undefined : String(scalar);
  }

  text(): string | undefined {
    const scalar = this.#scalar();
    return this.#read(typeof scalar === 'string' ? scalar : undefined, 'is not text');
  }

  number(): number | undefined {
    return this.#read(toNumber(this.#scalar()), 'is not a number');
  }

  seconds(): number | undefined {
    return this.#read(toSeconds(this.#value), 'is not a duration such as 0.5s');
  }

  /** The number of an enum value, by names in upper case, since Envoy ignores the case; -1 for an unknown name. */
  choice(names: Readonly<Record<string, number>>): number | undefined {
    const scalar = this.#scalar();
    const named = typeof scalar === 'string' ? (names[scalar.toUpperCase()] ?? -1) : undefined;
    return this.#read(toNumber(scalar) ?? named, 'is not the name of a value');
  }

  /** The message in a google.protobuf.Any, and its full name; the name is empty if absent. */
  any(): { readonly type: string; readonly message: ProtoValue } {
    const nameIn = (url: ProtoValue): string => url.text()?.split('/').at(-1) ?? '';
    const type = nameIn(this.entry('@type'));
    if (!typedStructs.has(type)) return { type, message: this };
    return { type: nameIn(this.field('type_url')), message: this.field('value') };
  }

  /** The fields with such a name (as in the .proto file) in it, at any depth. */
  inner(isWanted: (name: string) => boolean): readonly ProtoValue[] {
    return this.#find((_, key) => typeof key === 'string' && isWanted(toSnakeCase(key)));
  }

  /** The wanted texts in it, at any depth. */
  texts(isWanted: (text: string) => boolean): readonly ProtoValue[] {
    const isFound = (value: unknown): boolean => typeof value === 'string' && isWanted(value);
    return isFound(this.#value) ? [this] : this.#find(isFound);
  }

  /** Nothing inside what is found. Makes no ProtoValue of numbers and texts, of which a file has millions. */
  #find(isFound: (value: unknown, key: string | number) => boolean, found: ProtoValue[] = []): readonly ProtoValue[] {
    const value = this.#value;
    if (Array.isArray(value)) for (let i = 0; i < value.length; i += 1) this.#visit(value[i], i, isFound, found);
    else if (isJsonObject(value)) for (const key of Object.keys(value)) this.#visit(value[key], key, isFound, found);
    return found;
  }

  #visit(
    value: unknown,
    key: string | number,
    isFound: (value: unknown, key: string | number) => boolean,
    found: ProtoValue[],
  ): void {
    if (isGiven(value) && isFound(value, key)) found.push(this.#child(value, key));
    else if (typeof value === 'object' && value !== null) this.#child(value, key).#find(isFound, found);
  }

  /** Reports that the lint cannot judge it: `message` completes a sentence about it. */
  cannotBeJudged(message: string): void {
    const { root } = this;
    if (!(root.#above instanceof ProtoValue)) root.#above(this, message);
  }

  #read<Value>(value: Value | undefined, problem: string): Value | undefined {
    if (value === undefined && this.isPresent) this.cannotBeJudged(problem);
    return value;
  }

  /** A wrapper such as google.protobuf.BoolValue may be written as a message. */
  #scalar(): unknown {
    const value = this.#value;
    return isJsonObject(value) && Object.hasOwn(value, 'value') ? value.value : value;
  }

  #keys(): readonly string[] {
    const value = this.#value;
    return isJsonObject(value) ? Object.keys(value).filter(key => isGiven(value[key])) : [];
  }

  #child(value: unknown, segment: string | number): ProtoValue {
    return new ProtoValue(value, this, segment);
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

const camelCases = new Map<string, string>();

// The names come from the rules alone, so that the map stays small.
function toCamelCase(name: string): string {
  const known = camelCases.get(name);
  if (known !== undefined) return known;
  const camelCase = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  camelCases.set(name, camelCase);
  return camelCase;
}

function toSnakeCase(name: string): string {
  if (name === name.toLowerCase()) return name;
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
