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
  /** The cluster that takes the place of account-authz in it, with mutual TLS. */
  readonly tlsCluster: unknown;
  /** What the alerts ask of the name of a job. */
  readonly jobs: readonly RegExp[];
  /** The configuration of compose.yaml, for the same workload. */
  readonly sample: Config;
}

export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** What stands outside of an overlay, the same for all of them. */
export type Surroundings = Pick<Facts, 'secrets' | 'meshConfig' | 'envoy' | 'tlsCluster' | 'jobs' | 'sample'>;

export type Rules = readonly (readonly [holds: boolean, problem: string])[];
export type Path = readonly (string | number)[];

export function problemsOf(rules: Rules): string[] {
  return rules.flatMap(([holds, problem]) => (holds ? [] : [problem]));
}

/** Undefined where the configuration breaks its own schema. */
export function factsOf(manifests: readonly Manifest[], surroundings: Surroundings): Facts | undefined {
  const config = configOf(configMapOf(manifests, 'account-authz-config')?.['config.yaml'] ?? '');
  if (config === undefined) return undefined;
  const texts = Object.entries(configMapOf(manifests, 'account-authz-envoy') ?? {});
  const envoyFiles = Object.fromEntries(texts.map(([name, text]) => [name, yamlOf(text)]));
  return { ...surroundings, manifests, config, bootstrap: envoyFiles['envoy.yaml'], envoyFiles };
}

// A bootstrap is long, and most of many rendered overlays have the same.
const yamlOf = remembered((text: string): unknown => parse(text));
const configOf = remembered((text: string) => configSchema.safeParse(yamlOf(text)).data);

/** What was worked out before for this text, or for this very object, which nobody changes. */
export function remembered<Key, Result>(work: (key: Key) => Result): (key: Key) => Result {
  const known = new Map<Key, Result>();
  return key => {
    const result = known.get(key) ?? work(key);
    known.set(key, result);
    return result;
  };
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

/** The same of a file, which is read once and never changed. */
export const valuesIn = remembered((file: unknown): readonly Found[] => everyValue(file));

/** What stands under this key, wherever it is in a file. */
export function valuesOf(file: unknown, key: string): unknown[] {
  return valuesIn(file)
    .filter(({ path }) => path.at(-1) === key)
    .map(({ value }) => value);
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
