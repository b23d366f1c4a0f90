// What the rules over manifests read: the objects of an overlay, and what the files in its ConfigMaps say.
import { parse } from 'yaml';
import { type Config, configSchema } from '../../src/config/schema.ts';
import { configMapOf, type Manifest } from './manifest.ts';

export interface Facts {
  readonly manifests: readonly Manifest[];
  /** The operator's, by name: key → text. */
  readonly secrets: Secrets;
  readonly config: Config;
  /** Where an Envoy is part of the pods: the files beside its bootstrap too, by name. */
  readonly bootstrap: unknown;
  readonly envoyFiles: Readonly<Record<string, unknown>>;
  /** Of Istio: what an operator merges into the mesh's own. */
  readonly meshConfig: unknown;
  /** The envoy.yaml of this repository. */
  readonly envoy: unknown;
}

export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** What stands outside of an overlay, the same for all of them. */
export type Surroundings = Pick<Facts, 'secrets' | 'meshConfig' | 'envoy'>;

export type Rules = readonly (readonly [holds: boolean, problem: string])[];
export type Path = readonly (string | number)[];

export function problemsOf(rules: Rules): string[] {
  return rules.flatMap(([holds, problem]) => (holds ? [] : [problem]));
}

/** Undefined where the configuration breaks its own schema. */
export function factsOf(manifests: readonly Manifest[], surroundings: Surroundings): Facts | undefined {
  const config = configSchema.safeParse(yamlOf(configMapOf(manifests, 'account-authz-config')?.['config.yaml']));
  if (!config.success) return undefined;
  const texts = Object.entries(configMapOf(manifests, 'account-authz-envoy') ?? {});
  const envoyFiles = Object.fromEntries(texts.map(([name, text]) => [name, yamlOf(text)]));
  return { ...surroundings, manifests, config: config.data, bootstrap: envoyFiles['envoy.yaml'], envoyFiles };
}

const parsed = new Map<string, unknown>();

// A bootstrap is long, and most of many rendered overlays have the same.
function yamlOf(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  if (!parsed.has(text)) parsed.set(text, parse(text));
  return parsed.get(text);
}

/** The value at a path; a name in place of an index finds the list item with that name. */
export function at(within: unknown, ...path: Path): unknown {
  return path.reduce<unknown>((value, key) => {
    if (Array.isArray(value) && typeof key === 'string') return value.find(item => item.name === key);
    return typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>)[key] : undefined;
  }, within);
}

export interface Found {
  readonly path: Path;
  readonly value: unknown;
}

/** Every value in a document, the containers before what they contain. */
export function everyValue(value: unknown, path: Path = []): Found[] {
  const inner = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return [
    { path, value },
    ...inner.flatMap(([key, each]) => everyValue(each, [...path, Array.isArray(value) ? Number(key) : key])),
  ];
}

/** What stands under this key, wherever it is. */
export function valuesOf(document: unknown, key: string): unknown[] {
  return everyValue(document)
    .filter(({ path }) => path.at(-1) === key)
    .map(({ value }) => value);
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
