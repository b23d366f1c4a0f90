// Converts the output of a control plane (an xDS dump in JSON) to one static bootstrap for stock Envoy: the filters of one chain, and
// the clusters that they name, at addresses of this machine. Timeouts, filters, routes and TLS stay as generated.

type Json = Record<string, unknown>;

const tcp = (port: number): Json => ({ socket_address: { address: '127.0.0.1', port_value: port } });

/** The resources of every section of a dump, by type name. */
export function resourcesOf(dump: unknown): { listeners: Json[]; clusters: Json[]; routes: Json[]; endpoints: Json[] } {
  const sections: Json[] = [];
  walk(dump, node => {
    if (Array.isArray(node.configs)) sections.push(...(node.configs as Json[]));
  });
  const all = (type: string, ...keys: readonly string[]): Json[] =>
    sections
      .filter(section => String(section['@type']).endsWith(type))
      .flatMap(section => Object.values(section).flatMap(value => (Array.isArray(value) ? (value as Json[]) : [])))
      .flatMap(item => {
        const found = keys.reduce<unknown>((value, key) => (value as Json | undefined)?.[key], item);
        return found === undefined ? [] : [withoutType(found as Json)];
      });
  return {
    listeners: all('ListenersConfigDump', 'activeState', 'listener'),
    clusters: all('ClustersConfigDump', 'cluster'),
    routes: all('RoutesConfigDump', 'routeConfig'),
    endpoints: all('EndpointsConfigDump', 'endpointConfig'),
  };
}

export interface StaticPlaces {
  readonly port: number;
  readonly adminPort: number;
  /** The port by which rules of the filters identify the listener, if the bootstrap has another. */
  readonly destinationPort?: number;
  /** Cluster → port of 127.0.0.1. */
  readonly endpoints: Readonly<Record<string, number>>;
  /** Name of a secret → PEM files that replace the control plane's SDS. */
  readonly secrets?: Readonly<
    Record<string, { readonly chain: string; readonly key: string } | { readonly ca: string }>
  >;
}

/** `filters` is one network filter chain; filters whose name begins with `istio` exist in Istio's own Envoy only. */
export function staticBootstrap(dump: unknown, filters: unknown, places: StaticPlaces): unknown {
  const { clusters, routes, endpoints } = resourcesOf(dump);
  const chain = structuredClone(filters) as Json[];
  walk(chain, node => {
    // Standard output is a pipe here, which Envoy's file logger cannot open.
    delete node.accessLog;
    if ('destinationPort' in node && node.destinationPort === places.destinationPort)
      node.destinationPort = places.port;
    if (Array.isArray(node.httpFilters)) node.httpFilters = stock(node.httpFilters);
    const { rds } = node as { rds?: { routeConfigName: string } };
    if (rds === undefined) return;
    delete node.rds;
    node.routeConfig = routes.find(({ name }) => name === rds.routeConfigName);
  });
  const bootstrap = {
    node: { id: 'test', cluster: 'test' },
    admin: { address: tcp(places.adminPort) },
    static_resources: {
      listeners: [{ name: 'inbound', address: tcp(places.port), filter_chains: [{ filters: stock(chain) }] }],
      clusters: Object.entries(places.endpoints).map(([name, port]) => {
        const cluster = structuredClone(clusters.find(each => each.name === name));
        if (cluster === undefined)
          throw new Error(`the dump has no cluster ${name}: ${clusters.map(each => each.name)}`);
        const {
          edsClusterConfig,
          filters: _filters,
          type: _type,
          loadAssignment,
          upstreamBindConfig: _bind,
          lbPolicy: _policy,
          ...rest
        } = cluster as Json & { edsClusterConfig?: { serviceName?: string } };
        const service = edsClusterConfig?.serviceName ?? name;
        const generated = structuredClone(loadAssignment ?? endpoints.find(each => each.clusterName === service));
        return { ...rest, type: 'STATIC', loadAssignment: atPort(name, generated as Json | undefined, port) };
      }),
    },
  };
  walk(bootstrap, node => inlineSecrets(node, places.secrets ?? {}));
  return bootstrap;
}

/** The generated endpoints with their TLS metadata, at another address; one endpoint if there were none. */
function atPort(name: string, assignment: Json | undefined, port: number): unknown {
  let count = 0;
  walk(assignment, node => {
    if (!('endpoint' in node)) return;
    count += 1;
    Object.assign(node.endpoint as Json, { address: tcp(port) });
  });
  const one = [{ lbEndpoints: [{ endpoint: { address: tcp(port) } }] }];
  return { ...(count === 0 ? { endpoints: one } : assignment), clusterName: name };
}

function inlineSecrets(node: Json, secrets: NonNullable<StaticPlaces['secrets']>): void {
  const { tlsCertificateSdsSecretConfigs: own, combinedValidationContext: combined } = node as {
    tlsCertificateSdsSecretConfigs?: { name: string }[];
    combinedValidationContext?: { defaultValidationContext: Json; validationContextSdsSecretConfig: { name: string } };
  };
  const secretOf = (name: string) => {
    const secret = secrets[name];
    if (secret === undefined) throw new Error(`the dump names a secret that is not given: ${name}`);
    return secret;
  };
  if (own !== undefined) {
    delete node.tlsCertificateSdsSecretConfigs;
    node.tlsCertificates = own.map(({ name }) => {
      const secret = secretOf(name);
      if (!('chain' in secret)) throw new Error(`${name} is no certificate`);
      return { certificateChain: { filename: secret.chain }, privateKey: { filename: secret.key } };
    });
  }
  if (combined !== undefined) {
    const secret = secretOf(combined.validationContextSdsSecretConfig.name);
    if (!('ca' in secret)) throw new Error(`${combined.validationContextSdsSecretConfig.name} is no authority`);
    delete node.combinedValidationContext;
    node.validationContext = { ...combined.defaultValidationContext, trustedCa: { filename: secret.ca } };
  }
}

function stock(filters: unknown): Json[] {
  return (filters as Json[]).filter(filter => {
    const { typeUrl, '@type': type } = (filter.typedConfig ?? {}) as { typeUrl?: string; '@type'?: string };
    return ![filter.name, typeUrl, type].some(name => /(^|\/)(istio\.|stats\.)/.test(String(name ?? '')));
  });
}

function withoutType({ '@type': _type, ...rest }: Json): Json {
  return rest;
}

function walk(node: unknown, visit: (node: Json) => void): void {
  if (typeof node !== 'object' || node === null) return;
  if (!Array.isArray(node)) visit(node as Json);
  for (const value of Object.values(node)) walk(value, visit);
}
