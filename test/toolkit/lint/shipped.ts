// The shipped envoy.yaml and config.example.yaml as values that a test may change.
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { configSchema } from '../../../src/config/schema.ts';
import type { EnvoyRelevantConfig } from '../../../src/toolkit/envoy-settings/settings.ts';
import { type LintProblem, type LintResult, lintEnvoy } from '../../../src/toolkit/lint/lint.ts';

const root = new URL('../../../', import.meta.url);
export const shippedFile = new URL('envoy.yaml', root).pathname;
export const exampleFile = new URL('config.example.yaml', root).pathname;
export const shippedText = readFileSync(shippedFile, 'utf8');

/** A part of a bootstrap, of any type. */
// biome-ignore lint/suspicious/noExplicitAny: the tests plant values of every type, wrong ones too
export type Part = any;

/** The parts of the shipped bootstrap that tests change most. */
export interface Shipped {
  readonly root: Part;
  readonly listener: Part;
  readonly manager: Part;
  readonly host: Part;
  /** The routes: the protected paths, and the refusal of everything else. */
  readonly routes: Part[];
  readonly filters: Part[];
  readonly check: Part;
  readonly service: Part;
  readonly retry: Part;
  readonly early: Part[];
  /** The removals from request trailers. */
  readonly trailers: Part[];
  readonly authz: Part;
  readonly upstream: Part;
  readonly config: Part;
}

// Parsed once: most of the time of these tests would go into it.
const shippedRoot: Part = parse(shippedText);
const exampleConfig: Part = configSchema.parse(parse(readFileSync(exampleFile, 'utf8')));

export function shipped(): Shipped {
  const root: Part = structuredClone(shippedRoot);
  const [listener] = root.static_resources.listeners;
  const manager = listener.filter_chains[0].filters[0].typed_config;
  const check = manager.http_filters[1].typed_config;
  const [authz, upstream] = root.static_resources.clusters;
  return {
    root,
    listener,
    manager,
    host: manager.route_config.virtual_hosts[0],
    routes: manager.route_config.virtual_hosts[0].routes,
    filters: manager.http_filters,
    check,
    service: check.grpc_service,
    retry: check.grpc_service.retry_policy,
    trailers: manager.http_filters[0].typed_config.mutations.request_trailers_mutations,
    early: manager.early_header_mutation_extensions[0].typed_config.mutations,
    authz,
    upstream,
    config: structuredClone(exampleConfig),
  };
}

/** The problems that the lint finds in the shipped files after an edit. */
export function problemsAfter(edit: (parts: Shipped) => unknown): readonly LintProblem[] {
  return lintAfter(edit).problems;
}

/** All that the lint says of the shipped files after an edit. */
export function lintAfter(edit: (parts: Shipped) => unknown): LintResult {
  const parts = shipped();
  edit(parts);
  return lintEnvoy(parts.root, parts.config as EnvoyRelevantConfig);
}

/** The ids of the rules that the shipped files break after an edit, in alphabetical order. */
export function rulesAfter(edit: (parts: Shipped) => unknown): readonly string[] {
  return [...new Set(problemsAfter(edit).map(({ rule }) => rule))].sort();
}

/** A typed configuration. A type without a package is an HTTP filter. */
export function typed(type: string, fields: Readonly<Record<string, unknown>> = {}): Part {
  const name = type.startsWith('envoy.') ? type : `envoy.extensions.filters.http.${type}`;
  return { '@type': `type.googleapis.com/${name}`, ...fields };
}

export function filter(type: string, fields: Readonly<Record<string, unknown>> = {}): Part {
  return { name: `my.${type}`, typed_config: typed(type, fields) };
}
