// Adds the settings of the overlay with several authorizers to the cluster of envoy.yaml, without their TLS.
import { readFileSync } from 'node:fs';
import { type Document, parse } from 'yaml';

interface Cluster {
  readonly health_checks: unknown;
  readonly outlier_detection: unknown;
  readonly typed_extension_protocol_options: Readonly<Record<string, { readonly http_filters: unknown }>>;
}

const file = new URL('../../k8s/components/mutual-tls/envoy.yaml', import.meta.url);
const httpOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

export type Part = 'health' | 'filter';

/** As the overlay has it. */
export function clusterOfSeveralAuthorizers(): Cluster {
  const { static_resources: resources } = parse(readFileSync(file, 'utf8'));
  const clusters: readonly (Cluster & { readonly name: string })[] = resources.clusters;
  const cluster = clusters.find(({ name }) => name === 'account-authz');
  if (cluster === undefined) throw new Error('no cluster');
  return cluster;
}

/** `health`: health checks and outlier detection. `filter`: the one that keeps an answer back until it is whole. */
export function addSeveralAuthorizers(bootstrap: Document, parts: readonly Part[] = ['health', 'filter']): void {
  const cluster = clusterOfSeveralAuthorizers();
  const { clusters } = (bootstrap.toJS() as { static_resources: { clusters: { name: string }[] } }).static_resources;
  const place = ['static_resources', 'clusters', clusters.findIndex(({ name }) => name === 'account-authz')];
  if (parts.includes('health')) {
    bootstrap.setIn([...place, 'health_checks'], cluster.health_checks);
    bootstrap.setIn([...place, 'outlier_detection'], cluster.outlier_detection);
  }
  if (parts.includes('filter')) {
    const filters = cluster.typed_extension_protocol_options[httpOptions]?.http_filters;
    bootstrap.setIn([...place, 'typed_extension_protocol_options', httpOptions, 'http_filters'], filters);
  }
}
