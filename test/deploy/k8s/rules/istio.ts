// Istio: its proxy calls account-authz in the same pod, for every protected path and nothing else, with the strictness of envoy.yaml.
import { isDeepStrictEqual } from 'node:util';
import { at, type Facts, type Path, problemsOf, type Rules } from '../facts.ts';
import { containerOf, type Manifest, ofKind, podsOf } from '../manifest.ts';
import { extAuthz, headerRules, publicManager } from './configuration.ts';

/** Settings that Istio sets itself, or that have no effect with one authorizer. */
const ownOfIstio: readonly Path[] = [
  ['transport_api_version'],
  ['stat_prefix'],
  ['failure_mode_allow'],
  ['status_on_error'],
  ['clear_route_cache'],
  ['include_peer_certificate'],
  ['max_denied_response_body_bytes'],
  ['grpc_service', 'timeout'],
  ['grpc_service', 'envoy_grpc', 'cluster_name'],
  ['grpc_service', 'envoy_grpc', 'authority'],
  ['grpc_service', 'retry_policy', 'retry_host_predicate'],
  ['grpc_service', 'retry_policy', 'host_selection_retry_max_attempts'],
];
const covered = ['/api/subscriptions', '/api/subscriptions/*'];
const hcm = 'envoy.filters.network.http_connection_manager';

export function istioProblems(facts: Facts): string[] {
  const { manifests } = facts;
  const isMeshed = ['AuthorizationPolicy', 'ServiceEntry', 'EnvoyFilter'].some(each =>
    manifests.some(({ kind }) => kind === each),
  );
  return isMeshed
    ? problemsOf([...policyRules(facts), ...providerRules(facts), ...filterRules(facts), ...counterRules(facts)])
    : [];
}

/** Istio's Envoy drops every counter that no pattern of this annotation of the pod matches as a whole. */
export function keepsCounter(manifests: readonly Manifest[], counter: string): boolean {
  const annotation = 'sidecar.istio.io/statsInclusionRegexps';
  const patterns = ofKind(manifests, 'Deployment').flatMap(
    ({ spec }) => spec.template.metadata.annotations?.[annotation]?.split(',') ?? [],
  );
  return patterns.some(pattern => new RegExp(`^(?:${pattern})$`).test(counter));
}

function counterRules({ manifests }: Facts): Rules {
  const [entry] = ofKind(manifests, 'ServiceEntry');
  const cluster = `cluster.outbound|${entry?.spec.ports?.[0]?.number}||${entry?.spec.hosts?.[0]};`;
  const read = ['http.inbound_0.0.0.0_8000;.ext_authz.error', `${cluster}.upstream_rq_timeout`];
  return read.map(counter => [keepsCounter(manifests, counter), `the counter ${counter} is dropped`]);
}

function policyRules(facts: Facts): Rules {
  const policies = ofKind(facts.manifests, 'AuthorizationPolicy');
  const [custom, ...others] = policies.filter(({ spec }) => spec.action === 'CUSTOM');
  const [allow, ...more] = policies.filter(({ spec }) => spec.action === 'ALLOW');
  const pods = podsOf(facts.manifests).flatMap(pod =>
    pod.spec.containers.concat(containerOf(pod, 'account-authz') ?? []),
  );
  const portOf = (name: string): string =>
    String(pods.flatMap(({ ports = [] }) => ports).find(port => port.name === name)?.containerPort);
  return [
    [
      others.length === 0 && custom?.spec.provider?.name === at(facts.meshConfig, 'extensionProviders', 0, 'name'),
      'no policy calls account-authz',
    ],
    [
      isDeepStrictEqual(custom?.spec.rules, [{ to: [{ operation: { paths: covered } }] }]),
      'a path under the protected one is not asked about',
    ],
    [
      more.length === 0 &&
        isDeepStrictEqual(allow?.spec.rules, [
          { to: [{ operation: { ports: [portOf('app')], paths: covered } }] },
          { to: [{ operation: { ports: [portOf('authz-admin')], methods: ['GET'], paths: ['/metrics'] } }] },
        ]),
      'what is not asked about is not refused',
    ],
  ];
}

function providerRules({ manifests, config, meshConfig, envoy }: Facts): Rules {
  const [entry, ...more] = ofKind(manifests, 'ServiceEntry');
  const [port, ...ports] = entry?.spec.ports ?? [];
  const addresses = (entry?.spec.endpoints ?? []).map(({ address }) => `${address}:${port?.number}`);
  const provider = {
    name: 'account-authz',
    envoyExtAuthzGrpc: {
      service: entry?.spec.hosts.join(),
      port: port?.number,
      timeout: at(envoy, ...extAuthz, 'grpc_service', 'timeout'),
      statusOnError: '503',
      failOpen: false,
      clearRouteCache: false,
    },
  };
  return [
    [more.length === 0 && ports.length === 0 && port?.protocol === 'GRPC', 'the mesh speaks something else than gRPC'],
    [addresses.join() === config.listen && entry?.spec.resolution === 'STATIC', 'the mesh calls another address'],
    [entry?.spec.location === 'MESH_EXTERNAL', 'the mesh wants mutual TLS inside a pod'],
    [entry?.spec.exportTo?.join() === '.', 'the ServiceEntry is exported to other namespaces'],
    // Istio ignores unknown fields, so compare the whole object.
    [
      isDeepStrictEqual(meshConfig, {
        pathNormalization: { normalization: 'DECODE_AND_MERGE_SLASHES' },
        extensionProviders: [provider],
      }),
      'the mesh configuration is not what was tried',
    ],
  ];
}

function filterRules({ manifests, config, envoy }: Facts): Rules {
  const filters = ofKind(manifests, 'EnvoyFilter');
  const patches = filters.flatMap(({ spec }) => spec.configPatches);
  const of = (operation: string, where: string) =>
    patches
      .filter(({ applyTo, patch }) => applyTo === where && patch.operation === operation)
      .map(({ patch }) => patch.value.typed_config);
  const own = at(envoy, ...publicManager);
  const manager = {
    '@type': at(own, '@type'),
    path_with_escaped_slashes_action: at(own, 'path_with_escaped_slashes_action'),
    common_http_protocol_options: {
      headers_with_underscores_action: at(own, 'common_http_protocol_options', 'headers_with_underscores_action'),
    },
    early_header_mutation_extensions: at(own, 'early_header_mutation_extensions'),
  };
  const [managers, checks] = [of('MERGE', 'NETWORK_FILTER'), of('MERGE', 'HTTP_FILTER')];
  const trailers = at(own, 'http_filters', 'envoy.filters.http.header_mutation', 'typed_config');
  const inManager = { context: 'SIDECAR_INBOUND', listener: { filterChain: { filter: { name: hcm } } } };
  const filter = { name: hcm, subFilter: { name: 'envoy.filters.http.ext_authz' } };
  const atCheck = { context: 'SIDECAR_INBOUND', listener: { filterChain: { filter } } };
  const atCheckOfApp = { context: 'SIDECAR_INBOUND', listener: { portNumber: 8000, filterChain: { filter } } };
  const guard = at(own, 'http_filters', 'envoy.filters.http.rbac', 'typed_config');
  const names = patches.map(({ patch }) => patch.value.name).filter(name => name !== undefined);
  return [
    [
      isDeepStrictEqual(
        patches.map(({ match }) => match),
        [inManager, atCheck, atCheck, atCheckOfApp],
      ),
      'the EnvoyFilter changes something else',
    ],
    [isDeepStrictEqual(managers, [manager]), 'Istio takes requests less strictly than envoy.yaml'],
    [
      isDeepStrictEqual(checks, [without(at(envoy, ...extAuthz), ownOfIstio)]),
      'Istio calls account-authz with other settings than envoy.yaml',
    ],
    [
      isDeepStrictEqual(of('INSERT_BEFORE', 'HTTP_FILTER'), [trailers]) &&
        names[0] === 'account-authz.request-trailers',
      'Istio takes trailers less strictly than envoy.yaml',
    ],
    // Istio's own policies have the name that the guard has in envoy.yaml.
    [
      isDeepStrictEqual(of('INSERT_AFTER', 'HTTP_FILTER'), [guard]) && names[1] === 'account-authz.only-allowed',
      'Istio has not the guard of envoy.yaml behind the check',
    ],
    ...headerRules(config, managers[0], checks[0], 'Istio'),
  ];
}

function without(value: unknown, paths: readonly Path[]): unknown {
  const copy: unknown = structuredClone(value);
  for (const path of paths) {
    const within = at(copy, ...path.slice(0, -1));
    if (typeof within === 'object' && within !== null) Reflect.deleteProperty(within, path.at(-1) ?? '');
  }
  return copy;
}
