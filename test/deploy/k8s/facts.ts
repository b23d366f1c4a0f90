// The facts that the rules over manifests read: the objects of an overlay, and the contents of the files in its ConfigMaps.
import { parse } from 'yaml';
import { type Config, configSchema } from '../../../src/config/schema.ts';
import { configMapOf, type Manifest } from './manifest.ts';

export interface Facts {
  readonly manifests: readonly Manifest[];
  /** The operator's Secrets, by name: key → text. */
  readonly secrets: Secrets;
  readonly config: Config;
  /** Only if an Envoy is part of the pods: the bootstrap and the files beside it, by name. */
  readonly bootstrap: unknown;
  readonly envoyFiles: Readonly<Record<string, unknown>>;
  /** Istio only: the part that an operator merges into the mesh configuration. */
  readonly meshConfig: unknown;
  /** The envoy.yaml of this repository. */
  readonly envoy: unknown;
  /** The cluster with mutual TLS that replaces account-authz in it. */
  readonly tlsCluster: unknown;
  /** The job name in the expressions of the alerts. */
  readonly jobs: readonly RegExp[];
  /** The configuration of compose.yaml, for the same workload. */
  readonly sample: Config;
}

export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The surroundings of an overlay, the same for all of them. */
export type Surroundings = Pick<Facts, 'secrets' | 'meshConfig' | 'envoy' | 'tlsCluster' | 'jobs' | 'sample'>;

export type Rules = readonly (readonly [holds: boolean, problem: string])[];
export type Path = readonly (string | number)[];

export function problemsOf(rules: Rules): string[] {
  return rules.flatMap(([holds, problem]) => (holds ? [] : [problem]));
}

/** Undefined if the configuration is invalid. */
export function factsOf(manifests: readonly Manifest[], surroundings: Surroundings): Facts | undefined {
  const config = configOf(configMapOf(manifests, 'account-authz-config')?.['config.yaml'] ?? '');
  if (config === undefined) return undefined;
  const texts = Object.entries(configMapOf(manifests, 'account-authz-envoy') ?? {});
  const envoyFiles = Object.fromEntries(texts.map(([name, text]) => [name, yamlOf(text)]));
  return { ...surroundings, manifests, config, bootstrap: envoyFiles['envoy.yaml'], envoyFiles };
}

// A bootstrap is long, and most rendered overlays have the same one.
const yamlOf = memoized((text: string): unknown => parse(text));
const configOf = memoized((text: string) => configSchema.safeParse(yamlOf(text)).data);

/** Memoizes by text, or by object identity; callers do not change the objects. */
export function memoized<Key, Result>(work: (key: Key) => Result): (key: Key) => Result {
  const known = new Map<Key, Result>();
  return key => {
    const result = known.get(key) ?? work(key);
    known.set(key, result);
    return result;
  };
}

/** The value at a path; a name instead of an index selects the list item with that name. */
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

/** Every value in a document, containers before their contents. */
export function everyValue(value: unknown): Found[] {
  const found: Found[] = [];
  const visit = (each: unknown, path: Path): void => {
    found.push({ path, value: each });
    if (typeof each !== 'object' || each === null) return;
    for (const [key, inner] of Object.entries(each)) visit(inner, [...path, Array.isArray(each) ? Number(key) : key]);
  };
  visit(value, []);
  return found;
}

/** The values of a file; cached, so callers must not change them. */
export const valuesIn = memoized((file: unknown): readonly Found[] => everyValue(file));

/** Every value with this key, at any depth of a file. */
export function valuesOf(file: unknown, key: string): unknown[] {
  return valuesIn(file)
    .filter(({ path }) => path.at(-1) === key)
    .map(({ value }) => value);
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
