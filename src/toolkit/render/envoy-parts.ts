// The parts of a bootstrap that ask account-authz, for a bootstrap of your own.
import { authzClusterSettings } from '../envoy-settings/authz-cluster.ts';
import { documentBytes } from '../envoy-settings/open-routes.ts';
import { toMembers } from '../envoy-settings/setting.ts';
import type { EnvoySettings } from '../envoy-settings/settings.ts';
import { above, type Members } from '../envoy-settings/tree.ts';
import { authzFilters } from './authz-filters.ts';
import { layeredRuntime, shadowIntroduction } from './bootstrap.ts';
import { managerMembers, otherHosts, virtualHost } from './connection-manager.ts';
import { type RenderedFile, renderedFile } from './rendered-files.ts';
import { pathClusters } from './upstreams.ts';

export function partsFile(settings: EnvoySettings): RenderedFile {
  return settings.isShadow
    ? renderedFile('envoy-parts.yaml', [shadowParts(settings)], shadowIntroduction)
    : renderedFile('envoy-parts.yaml', [parts(settings)], introduction);
}

const introduction = [
  'The parts that your own bootstrap needs, so that Envoy asks account-authz about each request. Each part says where it belongs.',
  'Check the whole with: account-authz check-config --config FILE --envoy YOUR-BOOTSTRAP',
];

function clusterParts(settings: EnvoySettings): Members {
  return {
    layered_runtime: above('Add to the bootstrap, or its setting to a layer of yours.', layeredRuntime(settings)),
    cluster: above('Add to static_resources.clusters.', toMembers(authzClusterSettings(settings))),
  };
}

/** Nothing else of the bootstrap changes. */
function shadowParts(settings: EnvoySettings): Members {
  const comment = 'Put at the start of http_filters of each connection manager that leads to the service.';
  return { ...clusterParts(settings), http_filters: above(comment, authzFilters(settings)) };
}

function parts(settings: EnvoySettings): Members {
  const { routes, domains, name, ...corsSettings } = virtualHost(settings);
  const hostSettings = { ...(settings.hosts && { domains }), ...corsSettings };
  return {
    ...clusterParts(settings),
    connection_manager: above(
      'Add to the settings of the HttpConnectionManager of each listener that leads to the service, in place of its own.',
      managerMembers(settings),
    ),
    http_filters: above(
      'Put at the start of http_filters of that connection manager. After them, keep only filters that refuse, limit or count, and the router.',
      authzFilters(settings),
    ),
    virtual_host: Object.values(hostSettings).some(each => each !== undefined)
      ? above('Add to the virtual host.', hostSettings)
      : undefined,
    route_config:
      documentBytes(settings) &&
      above('Add to the route configuration.', { max_direct_response_body_size_bytes: documentBytes(settings) }),
    routes: above(
      'The routes of the virtual host. The cluster `upstream` is your service, `upstream-grpc` the same over HTTP/2. The last route refuses every other path.',
      routes,
    ),
    upstream_clusters:
      settings.upstreams.length === 0
        ? undefined
        : above('Add to static_resources.clusters: the services of --upstream with a path.', pathClusters(settings)),
    other_hosts:
      settings.hosts &&
      above('Add to virtual_hosts: a request for a host that account.hosts does not have is answered 404.', otherHosts),
  };
}
