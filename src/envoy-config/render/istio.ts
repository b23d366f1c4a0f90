// What Istio needs, so that the Envoy of its sidecar asks the account-authz in the same pod.
import { authzConnection } from '../authz-cluster.ts';
import {
  authzCall,
  envoyGrpcSettings,
  extAuthzSettings,
  filterNames,
  guardFilter,
  guardReason,
  retrySettings,
  seconds,
} from '../authz-filter.ts';
import { typed } from '../extension.ts';
import {
  customMethodSetting,
  earlyMutationSetting,
  hostDotSetting,
  maxHeadersSetting,
  underscoresSetting,
} from '../manager-settings.ts';
import { only, renamed, toMembers } from '../setting.ts';
import type { RenderSettings } from '../settings.ts';
import { above, beside, inline, type Members, type Tree } from '../tree.ts';
import { trailersFilter } from './authz-filters.ts';
import { shadowIntroduction } from './bootstrap.ts';
import { managerType } from './connection-manager.ts';
import { metadataRoute, overrideRoutes, publicMatch, routeFilters, unchecked } from './open-routes.ts';
import { type RenderedFiles, renderedFile } from './rendered-files.ts';

/** The name of the ServiceEntry, by which the mesh knows account-authz: in every pod, its own. */
const serviceName = 'account-authz.internal';

function resource(
  apiVersion: string,
  kind: string,
  name: string,
  { name: workload, namespace }: RenderSettings,
  spec: Members,
): Members {
  return {
    apiVersion,
    kind,
    metadata: { name: workload === undefined ? name : `${workload}-${name}`, namespace },
    spec,
  };
}

export function istioFiles(settings: RenderSettings): RenderedFiles {
  return [
    renderedFile(
      'authorization-policy.yaml',
      authorizationPolicies(settings),
      settings.isShadow
        ? shadowIntroduction
        : [
            'Istio checks the paths under the routes of the configuration, by whole segments. CUSTOM comes before ALLOW, and a request that no',
            'CUSTOM rule matches is not checked at all, so the second policy refuses (403) everything else.',
          ],
    ),
    renderedFile(
      'envoy-filter.yaml',
      [envoyFilter(settings)],
      [
        'Settings for which Istio has no field, so that its Envoy is as strict as a bootstrap of `render envoy`, which has the reasons.',
      ],
    ),
    renderedFile(
      'service-entry.yaml',
      [serviceEntry(settings), destinationRule(settings)],
      [
        'The name of account-authz in the mesh: each pod reaches its own. A namespace whose workloads are checked needs one.',
      ],
    ),
    renderedFile(
      'mesh-config.yaml',
      [meshConfig(settings)],
      [
        'A part of the MeshConfig of Istio, to be merged with yours: `meshConfig:` in the values of the chart istiod or of istioctl, or',
        'the key `mesh` of the ConfigMap istio in istio-system. Istio ignores a key that it does not know: copy, do not type.',
      ],
    ),
  ];
}

function authzPort({ authz }: RenderSettings): number {
  return authz.kind === 'tcp' ? authz.port : 0;
}

/** CUSTOM comes before ALLOW, and a request that no CUSTOM rule matches is not checked at all: the second policy refuses it. */
function authorizationPolicies(settings: RenderSettings): readonly Tree[] {
  const { isShadow, upstream } = settings;
  const open = settings.publicRoutes.flatMap(({ path, subtree }) => [path, subtree ? `${path}/*` : `${path}/`]);
  const paths = [
    ...settings.paths.flatMap(path => (path === '/' ? ['/*'] : [path, `${path}/*`])),
    // Checked too where the EnvoyFilter does not serve them: other methods, hosts and spellings are refused.
    ...open,
    ...(settings.metadata === undefined ? [] : [settings.metadata.path]),
  ];
  const policy = (name: string, spec: Members): Members =>
    resource('security.istio.io/v1', 'AuthorizationPolicy', name, settings, {
      selector: { matchLabels: settings.selector },
      ...spec,
    });
  const operation = (fields: Members): Members => ({ operation: inline(fields) });
  const custom = (rule: Members): Members =>
    policy('account-authz', {
      action: 'CUSTOM',
      provider: inline({ name: 'account-authz' }),
      rules: [{ to: [operation(rule)] }],
    });
  if (isShadow) return [custom({ ports: [String(upstream.port)], notPaths: open.length === 0 ? undefined : open })];
  return [
    custom({ paths }),
    policy('nothing-else', {
      action: 'ALLOW',
      rules: [
        { to: [operation({ ports: [String(settings.upstream.port)], paths })] },
        above('Metrics of account-authz. Probes do not come this way: the agent of Istio makes them itself.', {
          to: [operation({ ports: [String(settings.authzAdmin.port)], methods: ['GET'], paths: ['/metrics'] })],
        }),
      ],
    }),
  ];
}

// The filters of Istio's own policies have the name that the guard has elsewhere.
const guardName = 'account-authz.only-allowed';
const trailersName = 'account-authz.request-trailers';

/** Served without a check, each before the route of Istio that leads everything to the app. */
function openRoutes(settings: RenderSettings): readonly Tree[] {
  const { publicRoutes, metadata, upstream } = settings;
  const served = publicRoutes.map(route => ({
    name: `public ${route.text}`,
    match: publicMatch(route, settings),
    route: inline({ cluster: `inbound|${upstream.port}||`, timeout: '0s' }),
    typed_per_filter_config: { ...unchecked(guardName), ...routeFilters(settings, 'public', trailersName) },
  }));
  const document = metadata && { ...metadataRoute(metadata, settings), typed_per_filter_config: unchecked(guardName) };
  // Each is put first, so the last one is the first to match.
  return [...served, ...overrideRoutes(settings, guardName), ...(document === undefined ? [] : [document])].map(
    value => ({
      applyTo: 'HTTP_ROUTE',
      match: {
        context: 'SIDECAR_INBOUND',
        routeConfiguration: inline({ portNumber: upstream.port }),
      },
      patch: { operation: 'INSERT_FIRST', value },
    }),
  );
}

// What the provider of MeshConfig has no field for.
const addedToProvider = [
  'shadow_mode',
  'encode_raw_headers',
  'allowed_headers',
  'validate_mutations',
  'decoder_header_mutation_rules',
  'charge_cluster_response_stats',
  'emit_filter_state_stats',
  'enable_dynamic_metadata_ingestion',
];
const grpcLimitFields = ['max_receive_message_length', 'skip_envoy_headers'];
// The one host is in the same pod.
const retryFields = ['retry_on', 'num_retries', 'retry_back_off'];

/** What Istio has no field for. */
function envoyFilter(settings: RenderSettings): Tree {
  const custom = customMethodSetting(settings);
  const customMethods = custom.value === undefined ? undefined : toMembers([custom]);
  const manager = 'envoy.filters.network.http_connection_manager';
  const match = (subFilter?: string, portNumber?: number): Members => ({
    context: 'SIDECAR_INBOUND',
    listener: {
      portNumber,
      filterChain: { filter: inline({ name: manager, ...(subFilter && { subFilter: { name: subFilter } }) }) },
    },
  });
  const patch = (applyTo: string, place: Members, operation: string, value: Tree): Members => ({
    applyTo,
    match: place,
    patch: { operation, value },
  });
  const check = patch('HTTP_FILTER', match(filterNames.extAuthz), 'MERGE', {
    typed_config: typed('filters.http.ext_authz.v3.ExtAuthz', {
      ...toMembers(only(extAuthzSettings(settings), addedToProvider)),
      grpc_service: {
        envoy_grpc: inline(toMembers(only(envoyGrpcSettings(settings), grpcLimitFields))),
        retry_policy: toMembers(only(retrySettings, retryFields)),
      },
    }),
  });
  const filter = (configPatches: readonly Tree[]): Tree =>
    resource('networking.istio.io/v1alpha3', 'EnvoyFilter', 'account-authz', settings, {
      workloadSelector: { labels: settings.selector },
      configPatches,
    });
  if (settings.isShadow) return filter([check]);
  return filter([
    patch('NETWORK_FILTER', match(), 'MERGE', {
      typed_config: typed(managerType, {
        path_with_escaped_slashes_action: 'REJECT_REQUEST',
        common_http_protocol_options: toMembers([underscoresSetting(settings)]),
        http_protocol_options: customMethods,
        ...toMembers([
          hostDotSetting,
          earlyMutationSetting(settings),
          maxHeadersSetting(settings),
          { field: 'stream_idle_timeout', value: `${settings.idleTimeoutSeconds}s` },
        ]),
      }),
    }),
    check,
    patch('HTTP_FILTER', match(filterNames.extAuthz), 'INSERT_BEFORE', {
      ...trailersFilter(settings),
      name: trailersName,
    }),
    // At this port alone: the metrics of account-authz, at another one, are served without a check.
    patch(
      'HTTP_FILTER',
      match(filterNames.extAuthz, settings.upstream.port),
      'INSERT_AFTER',
      above(guardReason, guardFilter(guardName)),
    ),
    ...openRoutes(settings),
  ]);
}

function serviceEntry(settings: RenderSettings): Tree {
  return resource('networking.istio.io/v1', 'ServiceEntry', 'account-authz', settings, {
    hosts: inline([serviceName]),
    exportTo: inline(['.']),
    location: beside('MESH_EXTERNAL', 'no mutual TLS: it never leaves the pod'),
    resolution: 'STATIC',
    ports: [inline({ number: authzPort(settings), name: 'grpc', protocol: 'GRPC' })],
    endpoints: [inline({ address: '127.0.0.1' })],
  });
}

function destinationRule(settings: RenderSettings): Tree {
  return resource('networking.istio.io/v1', 'DestinationRule', 'account-authz', settings, {
    host: serviceName,
    exportTo: inline(['.']),
    trafficPolicy: {
      connectionPool: {
        tcp: inline({ connectTimeout: seconds(authzConnection.connectMs) }),
        http: above(
          'Each client that goes away during its check resets a stream. Node ends a connection after 1,000 resets, with the checks of others on it.',
          inline({ maxRequestsPerConnection: authzConnection.maxChecksPerConnection }),
        ),
      },
    },
  });
}

/** A part of MeshConfig. */
function meshConfig(settings: RenderSettings): Tree {
  return {
    pathNormalization: settings.isShadow
      ? undefined
      : {
          normalization: beside(
            'DECODE_AND_MERGE_SLASHES',
            'one spelling of a path for the policies, for account-authz and for the app',
          ),
        },
    extensionProviders: [
      {
        name: 'account-authz',
        envoyExtAuthzGrpc: {
          service: beside(serviceName, 'the ServiceEntry: the same pod'),
          port: authzPort(settings),
          timeout: beside(seconds(authzCall.timeoutMs), 'the default of Istio is ten minutes'),
          ...renamed(extAuthzSettings(settings), {
            statusOnError: { from: 'status_on_error', value: '503' },
            failOpen: 'failure_mode_allow',
            clearRouteCache: 'clear_route_cache',
          }),
        },
      },
    ],
  };
}
