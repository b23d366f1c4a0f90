// Names a file that is neither a bootstrap nor a dump, with the command that gets what the lint can read.
import { isJsonObject, memberOf } from '../../json/strict-json.ts';
import messages from './envoy-messages.json' with { type: 'json' };

const bootstrapMembers = new Set(messages['config.bootstrap.v3.Bootstrap'].split(' ').map(word => plain(word)));
const dumpOfIt = 'pass what Envoy runs with: --envoy-admin URL, or a file of /config_dump?include_eds';

/** The rest of a sentence about the file, or undefined where it may be a bootstrap or a dump. Printable, without a value of the file but kinds and keys. */
export function describeForeignFile(value: unknown): string | undefined {
  if (Array.isArray(value)) return `is a list, not a bootstrap: ${dumpOfIt}`;
  if (!isJsonObject(value)) return 'is no mapping, so no bootstrap of Envoy';
  const has = (...names: readonly string[]) => names.some(name => memberOf(value, name) !== undefined);
  const kind = text(value, 'kind');
  if (kind !== '' && text(value, 'apiVersion') !== '') return describeManifest(value, kind);
  const isBootstrap = Object.keys(value).some(name =>
    bootstrapMembers.has(name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)),
  );
  if (has('resources') && !isBootstrap)
    return `is a list of resources for file-based discovery, not a bootstrap: ${dumpOfIt}`;
  const type = text(value, '@type');
  const isOfEnvoy = type === '' || /envoy\.(?:admin|config\.bootstrap)\./.test(type);
  const names = ['filter_chains', 'filterChains', 'virtual_hosts', 'virtualHosts', 'load_assignment', 'loadAssignment'];
  if (!isOfEnvoy || has(...names))
    return `is a single resource${isOfEnvoy ? '' : ` (${plain(type)})`}, not a bootstrap: ${dumpOfIt}`;
  const sections = memberOf(value, 'configs');
  if (Array.isArray(sections) && !sections.some(each => text(each, '@type').endsWith('.ListenersConfigDump')))
    return `is a dump without listeners: ${dumpOfIt}`;
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
  const found = (Array.isArray(items) ? items : [value])
    .map(object => ({ object, data: Object.entries(memberOf(object, 'data') ?? {}) }))
    .map(({ object, data }) => ({ object, key: data.find(([, each]) => /static_?resources/i.test(String(each)))?.[0] }))
    .find(({ key }) => key !== undefined);
  if (found === undefined)
    return `is a Kubernetes manifest (${plain(kind)}), not a bootstrap: ${dumpOfIt}, or istioctl proxy-config all POD -o json, or egctl config envoy-proxy all`;
  const { object, key = '' } = found;
  const name = text(memberOf(object, 'metadata'), 'name') || 'NAME';
  if (!/^[\w.-]+$/.test(key) || !/^[\w.-]+$/.test(name))
    return 'is a Kubernetes manifest with a bootstrap inside: write that text to a file';
  const path = `{.data.${key.replaceAll('.', '\\.')}}`;
  return `is a Kubernetes manifest with a bootstrap in the key ${key}: kubectl get configmap ${name} -o jsonpath='${path}' > envoy.yaml`;
}

// Version 2 configured a filter by `config`.
function holdsOldNames(value: unknown): boolean {
  if (typeof value === 'string')
    return /type\.googleapis\.com\/envoy\.(?:api\.v2|config\.filter\.(?:network|http)\.\w+\.v2)/.test(value);
  if (typeof value !== 'object' || value === null) return false;
  const isOldFilter = text(value, 'name').startsWith('envoy.') && isJsonObject(memberOf(value, 'config'));
  return isOldFilter || Object.values(value).some(holdsOldNames);
}

/** The last part of a type, or the first word of a text, printable. */
function plain(text: string): string {
  return (text.split('/').at(-1) ?? '').replace(/[^\w.].*/, '');
}

function text(value: unknown, name: string): string {
  const found = memberOf(value, name);
  return typeof found === 'string' ? found : '';
}
