// Names a file that is neither a bootstrap nor a dump, with the command that gets what the lint can read.
import { isJsonObject, memberOf } from '../../json/strict-json.ts';
import messages from './envoy-messages.json' with { type: 'json' };

const bootstrapMembers = new Set(
  (messages['config.bootstrap.v3.Bootstrap'] ?? '').split(' ').map(word => word.replace(/[:=].*/, '')),
);
const dumpOfIt = 'pass what Envoy runs with: --envoy-admin URL, or a file of /config_dump?include_eds';

/** The rest of a sentence about the file, or undefined where it may be a bootstrap or a dump. Printable, without a value of the file but kinds and keys. */
export function describeForeignFile(value: unknown): string | undefined {
  if (Array.isArray(value)) return `is a list, not a bootstrap: ${dumpOfIt}`;
  if (!isJsonObject(value)) return 'is no mapping, so no bootstrap of Envoy';
  const kind = text(value, 'kind');
  if (kind !== undefined && text(value, 'apiVersion') !== undefined) return describeManifest(value, kind);
  const isBootstrap = Object.keys(value).some(name =>
    bootstrapMembers.has(name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)),
  );
  if (memberOf(value, 'resources') !== undefined && !isBootstrap)
    return `is a list of resources for file-based discovery, not a bootstrap: ${dumpOfIt}`;
  if (
    ['filter_chains', 'filterChains', 'virtual_hosts', 'virtualHosts', 'load_assignment', 'loadAssignment'].some(
      name => memberOf(value, name) !== undefined,
    )
  )
    return `is a single resource, not a bootstrap: ${dumpOfIt}`;
  const sections = memberOf(value, 'configs');
  if (Array.isArray(sections) && !sections.some(each => text(each, '@type')?.endsWith('.ListenersConfigDump')))
    return `is a dump without listeners: ${dumpOfIt}`;
  const type = text(value, '@type') ?? '';
  if (type !== '' && !type.includes('envoy.admin.') && !type.includes('envoy.config.bootstrap.'))
    return `is a single resource (${type
      .split('/')
      .at(-1)
      ?.replaceAll(/[^\w.]/g, '')}), not a bootstrap: ${dumpOfIt}`;
  if (!isBootstrap && Object.keys(value).length > 0 && !holdsDump(value, 4))
    return `has no member of a bootstrap (static_resources, …) and no dump: ${dumpOfIt}`;
  return holdsOldNames(value)
    ? 'has names of version 2 of the API, which Envoy has not read since 1.18: write version 3'
    : undefined;
}

/** `egctl` prints a dump for each namespace and pod. */
function holdsDump(value: unknown, depth: number): boolean {
  if (!isJsonObject(value) || depth === 0) return false;
  return Array.isArray(value.configs) || Object.values(value).some(each => holdsDump(each, depth - 1));
}

/** A bootstrap may be a text in a ConfigMap, and any number of them in a List. */
function describeManifest(value: unknown, kind: string): string {
  const items = memberOf(value, 'items');
  const objects = Array.isArray(items) ? items : [value];
  for (const object of objects) {
    const data = memberOf(object, 'data');
    const key = isJsonObject(data)
      ? Object.keys(data).find(each => /static_resources|staticResources/.test(String(data[each])))
      : undefined;
    if (key === undefined) continue;
    const name = text(memberOf(object, 'metadata'), 'name') ?? 'NAME';
    if (!/^[\w.-]+$/.test(key) || !/^[\w.-]+$/.test(name))
      return 'is a Kubernetes manifest with a bootstrap inside: write that text to a file';
    const path = `{.data.${key.replaceAll('.', '\\.')}}`;
    return `is a Kubernetes manifest with a bootstrap in the key ${key}: kubectl get configmap ${name} -o jsonpath='${path}' > envoy.yaml`;
  }
  return `is a Kubernetes manifest (${kind.replaceAll(/[^\w.]/g, '')}), not a bootstrap: ${dumpOfIt}, or istioctl proxy-config all POD -o json, or egctl config envoy-proxy all`;
}

function holdsOldNames(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsOldNames);
  if (!isJsonObject(value))
    return (
      typeof value === 'string' &&
      /type\.googleapis\.com\/envoy\.(?:api\.v2|config\.filter\.(?:network|http)\.\w+\.v2)/.test(value)
    );
  // Version 2 configured a filter by `config`, and hosts of a cluster by `hosts`.
  const isOldFilter = typeof value.name === 'string' && isJsonObject(value.config) && value.name.startsWith('envoy.');
  return isOldFilter || Object.values(value).some(holdsOldNames);
}

function text(value: unknown, name: string): string | undefined {
  const found = memberOf(value, name);
  return typeof found === 'string' ? found : undefined;
}
