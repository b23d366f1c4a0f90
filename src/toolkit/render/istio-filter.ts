// The EnvoyFilter: what Istio has no field for, in the Envoy of a sidecar or a gateway.
import {
  envoyGrpcSettings,
  extAuthzSettings,
  filterNames,
  guardFilter,
  guardReason,
  retrySettings,
} from '../envoy-settings/authz-filter.ts';
import { extension, typed } from '../envoy-settings/extension.ts';
import {
  customMethodSetting,
  earlyMutationSetting,
  hostDotSetting,
  ignoredUpgradeSetting,
  maxHeadersSetting,
  underscoresSetting,
} from '../envoy-settings/manager-settings.ts';
import { metadataRoute, overrideRoutes, publicMatch, routeFilters, unchecked } from '../envoy-settings/open-routes.ts';
import { only, toMembers } from '../envoy-settings/setting.ts';
import { isInPod, type RenderSettings } from '../envoy-settings/settings.ts';
import { above, inline, type Members, type Tree } from '../envoy-settings/tree.ts';
import { corsMembers, corsReason, trailersFilter } from './authz-filters.ts';
import { managerType } from './connection-manager.ts';

// Filters of Istio's own policies have the names that these have elsewhere.
const names = {
  trailers: 'account-authz.request-trailers',
  cors: 'account-authz.cors',
  guard: 'account-authz.only-allowed',
} as const;

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

const defaultLabels = { 'app.kubernetes.io/name': 'subscriptions' };

export function podLabels({ selector }: RenderSettings): Members {
  return selector ?? defaultLabels;
}

export function envoyFilter(settings: RenderSettings): Members {
  const { attach, upstream, isShadow } = settings;
  const context = attach === 'gateway' ? 'GATEWAY' : 'SIDECAR_INBOUND';
  // In a sidecar at this port alone: the metrics of account-authz, at another one, are served without a check.
  const portNumber = attach === 'gateway' ? undefined : upstream.port;
  const patch = (applyTo: string, place: Members, operation: string, value: Tree): Members => ({
    applyTo,
    match: { context, ...place },
    patch: { operation, value },
  });
  const manager = { name: 'envoy.filters.network.http_connection_manager' };
  const filter = inline({ ...manager, subFilter: { name: filterNames.extAuthz } });
  const atCheck = (operation: string, value: Tree, port?: number): Members =>
    patch('HTTP_FILTER', { listener: { portNumber: port, filterChain: { filter } } }, operation, value);
  const ofRoutes = (applyTo: string, operation: string, value: Tree): Members =>
    patch(applyTo, { routeConfiguration: inline({ portNumber }) }, operation, value);
  const check = atCheck('MERGE', { typed_config: checkConfig(settings) });
  const workloadSelector = { labels: podLabels(settings) };
  if (isShadow) return { workloadSelector, configPatches: [check] };
  return {
    workloadSelector,
    configPatches: [
      patch('NETWORK_FILTER', { listener: { filterChain: { filter: inline(manager) } } }, 'MERGE', {
        typed_config: typed(managerType, managerMembers(settings)),
      }),
      check,
      atCheck('INSERT_BEFORE', { ...trailersFilter(settings), name: names.trailers }),
      ...(settings.corsOrigins.length === 0
        ? []
        : [
            atCheck('INSERT_BEFORE', above(corsReason, extension(names.cors, 'filters.http.cors.v3.Cors')), portNumber),
            ofRoutes('VIRTUAL_HOST', 'MERGE', corsMembers(settings, names.cors)),
          ]),
      atCheck('INSERT_AFTER', above(guardReason, guardFilter(names.guard)), portNumber),
      ...openRoutes(settings).map(route => ofRoutes('HTTP_ROUTE', 'INSERT_FIRST', route)),
    ],
  };
}

function checkConfig(settings: RenderSettings): Members {
  return typed('filters.http.ext_authz.v3.ExtAuthz', {
    ...toMembers(only(extAuthzSettings(settings), addedToProvider)),
    grpc_service: {
      envoy_grpc: inline(toMembers(only(envoyGrpcSettings(settings), grpcLimitFields))),
      retry_policy: toMembers(isInPod(settings.authz) ? only(retrySettings, retryFields) : retrySettings),
    },
  });
}

function managerMembers(settings: RenderSettings): Members {
  return {
    path_with_escaped_slashes_action: 'REJECT_REQUEST',
    common_http_protocol_options: toMembers([underscoresSetting(settings)]),
    http_protocol_options: toMembers([ignoredUpgradeSetting, customMethodSetting(settings)]),
    ...toMembers([
      hostDotSetting,
      earlyMutationSetting(settings),
      maxHeadersSetting(settings),
      { field: 'stream_idle_timeout', value: `${settings.idleTimeoutSeconds}s` },
    ]),
  };
}

/** Served without a check, each before the routes of Istio. Each is put first, so the last one is the first to match. */
function openRoutes(settings: RenderSettings): readonly Tree[] {
  const { attach, publicRoutes, metadata, upstream } = settings;
  const cluster = attach === 'gateway' ? `outbound|${upstream.port}||${upstream.host}` : `inbound|${upstream.port}||`;
  const served = publicRoutes.map(route => ({
    name: `public ${route.text}`,
    match: publicMatch(route, settings),
    route: inline({ cluster, timeout: '0s' }),
    typed_per_filter_config: { ...unchecked(names.guard), ...routeFilters(settings, 'public', names.trailers) },
  }));
  const document = metadata && {
    ...metadataRoute(metadata, settings),
    typed_per_filter_config: unchecked(names.guard),
  };
  return [...served, ...overrideRoutes(settings, names.guard), ...(document === undefined ? [] : [document])];
}
