// The schemas of every kind in k8s/, as an API server with the CRDs installed publishes them (OpenAPI v3), made strict:
// an unknown field is an error. Rules that only the server can evaluate (CEL, references) are not in them.
import { readFile, writeFile } from 'node:fs/promises';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Manifest } from '../../../lab/manifest.ts';

/** Group and version as a path of the API server → the kinds that we use. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  'api/v1': ['ConfigMap', 'Namespace', 'Service', 'ServiceAccount'],
  'apis/apps/v1': ['Deployment'],
  'apis/autoscaling/v2': ['HorizontalPodAutoscaler'],
  'apis/gateway.envoyproxy.io/v1alpha1': ['ClientTrafficPolicy', 'EnvoyProxy', 'HTTPRouteFilter', 'SecurityPolicy'],
  'apis/gateway.networking.k8s.io/v1': ['BackendTLSPolicy', 'Gateway', 'GatewayClass', 'HTTPRoute'],
  'apis/gateway.networking.k8s.io/v1beta1': ['ReferenceGrant'],
  'apis/monitoring.coreos.com/v1': ['PodMonitor'],
  'apis/networking.istio.io/v1': ['DestinationRule', 'ServiceEntry'],
  'apis/networking.istio.io/v1alpha3': ['EnvoyFilter'],
  'apis/networking.k8s.io/v1': ['NetworkPolicy'],
  'apis/policy/v1': ['PodDisruptionBudget'],
  'apis/security.istio.io/v1': ['AuthorizationPolicy'],
};

const folder = new URL('../../fixtures/k8s-schemas/', import.meta.url);

type Node = Readonly<Record<string, unknown>>;

interface SchemaFile {
  readonly kinds: Readonly<Record<string, string>>;
  readonly $defs: Readonly<Record<string, unknown>>;
}

/** Validates manifests against the strict schemas; each problem names its object and field. */
export async function createSchemaCheck(): Promise<(manifests: readonly Manifest[]) => string[]> {
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
  const validators = new Map<string, ValidateFunction>();
  for (const place of Object.keys(kinds)) {
    const file: SchemaFile = JSON.parse(await readFile(fileOf(place), 'utf8'));
    ajv.addSchema({ $id: place, $defs: file.$defs });
    for (const [kind, name] of Object.entries(file.kinds))
      validators.set(`${apiVersionOf(place)} ${kind}`, ajv.compile({ $ref: `${place}#/$defs/${name}` }));
  }
  return manifests =>
    manifests.flatMap(manifest => {
      const name = `${manifest.kind}/${manifest.metadata.name}`;
      const validate = validators.get(`${manifest.apiVersion} ${manifest.kind}`);
      if (validate === undefined) return [`${name}: no such kind: ${manifest.apiVersion} ${manifest.kind}`];
      if (validate(manifest)) return [];
      return (validate.errors ?? []).map(
        ({ instancePath, message, params }) => `${name}: ${instancePath} ${message} ${JSON.stringify(params)}`,
      );
    });
}

/** Fetches the schemas from an API server through `kubectl proxy`. */
export async function writeSchemas(apiServer: string): Promise<void> {
  for (const [place, names] of Object.entries(kinds)) {
    const document: unknown = await (await fetch(`${apiServer}/openapi/v3/${place}`)).json();
    const { schemas } = (document as { components: { schemas: Readonly<Record<string, Node>> } }).components;
    const roots = names.map(kind => [kind, rootOf(schemas, place, kind)] as const);
    const $defs: Record<string, unknown> = {};
    for (const [kind, name] of roots) {
      collect(schemas, name, $defs);
      const root = $defs[name] as { properties: Record<string, unknown>; required?: string[] };
      const { status: _written, ...properties } = root.properties;
      $defs[name] = {
        ...root,
        properties: { ...properties, apiVersion: { const: apiVersionOf(place) }, kind: { const: kind } },
        required: [...new Set([...(root.required ?? []), 'apiVersion', 'kind', 'metadata'])],
      };
    }
    const sorted = Object.fromEntries(Object.entries($defs).sort(([a], [b]) => (a < b ? -1 : 1)));
    await writeFile(fileOf(place), `${JSON.stringify({ kinds: Object.fromEntries(roots), $defs: sorted })}\n`);
  }
}

function fileOf(place: string): URL {
  return new URL(`${place.replace(/^apis?\//, '').replaceAll('/', '-')}.json`, folder);
}

function apiVersionOf(place: string): string {
  return place.replace(/^apis?\//, '');
}

function rootOf(schemas: Readonly<Record<string, Node>>, place: string, kind: string): string {
  const [version, group = ''] = apiVersionOf(place).split('/').reverse();
  const found = Object.entries(schemas).find(([, schema]) =>
    (schema['x-kubernetes-group-version-kind'] as Node[] | undefined)?.some(
      each => each.group === group && each.version === version && each.kind === kind,
    ),
  );
  if (found === undefined) throw new Error(`the API server has no ${kind} in ${place}`);
  return found[0];
}

function collect(schemas: Readonly<Record<string, Node>>, name: string, $defs: Record<string, unknown>): void {
  if (Object.hasOwn($defs, name)) return;
  $defs[name] = {};
  $defs[name] = closedSchema(schemas[name], referenced => collect(schemas, referenced, $defs));
}

const logical = ['allOf', 'anyOf', 'oneOf', 'not'];
const dropped = new Set(['description', 'default', 'format', 'example', 'externalDocs']);

/** Drops descriptions and closes every object with known properties (additionalProperties: false), except below allOf, anyOf, … */
function closedSchema(node: unknown, refer: (name: string) => void, isRule = false): unknown {
  if (Array.isArray(node)) return node.map(item => closedSchema(item, refer, isRule));
  if (typeof node !== 'object' || node === null) return node;
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) {
    if (dropped.has(key) || key.startsWith('x-kubernetes')) continue;
    if (key === '$ref') {
      const name = String(value).split('/').at(-1) ?? '';
      refer(name);
      kept[key] = `#/$defs/${name}`;
    } else if (key === 'properties') {
      const properties = Object.entries(value as Node);
      kept[key] = Object.fromEntries(properties.map(([name, schema]) => [name, closedSchema(schema, refer, isRule)]));
    } else {
      // A $ref in an allOf with one member stands for the type itself, which is closed at its definition.
      kept[key] = closedSchema(value, refer, isRule || logical.includes(key));
    }
  }
  const isOpen = 'additionalProperties' in node || (node as Node)['x-kubernetes-preserve-unknown-fields'] === true;
  if ('properties' in node && !isOpen && !isRule) kept.additionalProperties = false;
  return kept;
}
