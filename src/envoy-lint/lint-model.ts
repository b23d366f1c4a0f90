// What the rules look at: the bootstrap and the configuration side by side, taken apart into what is asked, what is protected
// and what stands around it.
import { type Cluster, isAt, isSameEndpoint, readCluster } from './cluster.ts';
import { type ConnectionManager, type Listener, type RouteTarget, readListener } from './connection-manager.ts';
import { type FilterChain, filterTypes, type HttpFilter, stateOf } from './http-filter.ts';
import { type CheckedConfig, createOwnedNames, type OwnedNames } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import { toProtectedRoutes } from './route-match.ts';

export interface LintModel {
  readonly root: ProtoValue;
  readonly listeners: readonly Listener[];
  readonly clusters: ReadonlyMap<string, Cluster>;
  /** The connection managers in which account-authz is asked. */
  readonly guarded: readonly GuardedManager[];
  /** The clusters behind the protected routes. */
  readonly protectedClusters: ReadonlySet<string>;
}

export interface GuardedManager {
  readonly manager: ConnectionManager;
  readonly names: OwnedNames;
  readonly checks: readonly AuthzFilter[];
  /** What leads to a cluster from a protected path. */
  readonly targets: readonly ProtectedTarget[];
}

export interface ProtectedTarget {
  readonly target: RouteTarget;
  readonly names: OwnedNames;
  readonly cluster: Cluster | undefined;
}

/** An ext_authz filter that asks account-authz. */
export interface AuthzFilter {
  readonly manager: ConnectionManager;
  readonly chain: FilterChain;
  readonly filter: HttpFilter;
  /** envoy.extensions.filters.http.ext_authz.v3.ExtAuthz. */
  readonly settings: ProtoValue;
  readonly service: ProtoValue;
  /** Undefined where none is given, which is a mistake of its own, as zero is. */
  readonly timeoutSeconds: number | undefined;
  /** Undefined where it is not in the file. */
  readonly cluster: Cluster | undefined;
  readonly config: CheckedConfig;
  readonly names: OwnedNames;
  /** The filters behind it that run for what is protected. */
  readonly later: readonly HttpFilter[];
}

export function toLintModel(root: ProtoValue, config: CheckedConfig): LintModel {
  const resources = root.field('static_resources');
  const clusters = new Map(
    resources
      .field('clusters')
      .items()
      .map(readCluster)
      .map(cluster => [cluster.name, cluster]),
  );
  const protectedRoutes = toProtectedRoutes(config.routes.map(({ path }) => path));
  const listeners = resources
    .field('listeners')
    .items()
    .map(listener => readListener(listener, protectedRoutes));
  const names = createOwnedNames(config);
  const managers = listeners.flatMap(listener => listener.managers);
  const checks = ownChecks(managers.flatMap(manager => readChecks(manager, clusters, config, names)));
  const guarded = managers
    .map((manager): GuardedManager => {
      const targets = manager.targets.filter(({ protectedPath }) => protectedPath !== undefined);
      return {
        manager,
        names,
        checks: checks.filter(check => check.manager === manager),
        targets: targets.map(target => ({ target, names, cluster: clusters.get(target.cluster ?? '') })),
      };
    })
    .filter(each => each.checks.length > 0 && leadsSomewhere(each.manager));
  const protectedClusters = new Set(
    guarded.flatMap(({ targets, checks }) =>
      targets
        .filter(({ target }) => checks.some(({ filter }) => stateOf(filter, target.scopes).runs))
        .flatMap(({ target }) => target.cluster ?? []),
    ),
  );
  return { root, listeners, clusters, guarded, protectedClusters };
}

function leadsSomewhere({ targets, dynamic }: ConnectionManager): boolean {
  return targets.length > 0 || dynamic.length > 0;
}

/** Whether what is behind the cluster is behind protected routes too. */
export function isProtectedCluster({ clusters, protectedClusters }: LintModel, name: string | undefined): boolean {
  // The request decides, or nothing is known of what is protected.
  if (name === undefined || protectedClusters.has(name) || protectedClusters.size === 0) return true;
  const endpoints = clusters.get(name)?.endpoints ?? [];
  const known = [...protectedClusters].flatMap(each => clusters.get(each)?.endpoints ?? []);
  return endpoints.some(one => known.some(other => isSameEndpoint(one, other)));
}

function readChecks(
  manager: ConnectionManager,
  clusters: ReadonlyMap<string, Cluster>,
  config: CheckedConfig,
  names: OwnedNames,
): readonly AuthzFilter[] {
  return manager.chains.flatMap(chain =>
    chain.filters.flatMap((filter, i): readonly AuthzFilter[] => {
      if (filter.type !== filterTypes.extAuthz) return [];
      const settings = filter.config;
      const service = settings.field('grpc_service');
      const cluster = clusters.get(service.field('envoy_grpc').field('cluster_name').text() ?? '');
      const timeoutSeconds = service.field('timeout').seconds() || undefined;
      const later = chain.filters.slice(i + 1).filter(each => runsForProtected(each, manager));
      return [{ manager, chain, filter, settings, service, timeoutSeconds, cluster, config, names, later }];
    }),
  );
}

// Another service may be asked by another ext_authz. If every one seems to ask another service, an address is wrong instead.
function ownChecks(checks: readonly AuthzFilter[]): readonly AuthzFilter[] {
  const own = checks.filter(({ cluster, config }) => cluster === undefined || isAt(cluster, config.listen) !== false);
  return own.length > 0 ? own : checks;
}

function runsForProtected(filter: HttpFilter, { targets }: ConnectionManager): boolean {
  const scopes = targets.filter(({ protectedPath }) => protectedPath !== undefined).map(target => target.scopes);
  return scopes.length === 0 ? !filter.isOff : scopes.some(each => stateOf(filter, each).runs);
}
