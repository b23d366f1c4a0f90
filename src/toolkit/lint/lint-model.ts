// What the rules look at: the ext_authz filters, the protected routes and the clusters of a bootstrap, beside the configuration.
import { type RouteTemplate, toRouteTemplate } from '../../authz/route-template.ts';
import { authzCluster } from '../envoy-settings/authz-filter.ts';
import { type EnvoyPolicy, type EnvoyRelevantConfig, toEnvoyPolicy } from '../envoy-settings/settings.ts';
import { type Cluster, createKeyFinder, isAt, readClusters } from './cluster.ts';
import { type FilterChain, filterTypes, type HttpFilter, stateOf } from './http-filter.ts';
import { type ConnectionManager, type Listener, type RouteTarget, readListener } from './listener.ts';
import { memoized } from './memoized.ts';
import { createOwnedNames, type OwnedNames } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import type { Resources } from './resources.ts';
import { indexProtectedRoutes } from './routed-path.ts';

type Clusters = ReadonlyMap<string, Cluster>;

export interface LintModel {
  readonly resources: Resources;
  readonly policy: EnvoyPolicy;
  readonly names: OwnedNames;
  readonly config: EnvoyRelevantConfig;
  /** Whether all listeners and routes are in the file. */
  readonly isComplete: boolean;
  readonly listeners: readonly Listener[];
  readonly managers: readonly ConnectionManager[];
  readonly clusters: Clusters;
  /** The connection managers that ask account-authz. */
  readonly guarded: readonly GuardedManager[];
  /** Their checks. */
  readonly checksOf: ReadonlyMap<ConnectionManager, readonly AuthzFilter[]>;
  /** The clusters behind the protected routes. */
  readonly protectedClusters: ReadonlySet<string>;
  /** Whether an address is behind them. */
  readonly isProtectedKey: (key: string) => boolean;
  /** The routes of the configuration that none of them leads on; none if the file is not complete. */
  readonly unreachable: readonly RouteTemplate[];
  /** What `isProtectedCluster` has answered. */
  readonly isProtectedByName: Map<string | undefined, boolean>;
}

export interface GuardedManager {
  readonly manager: ConnectionManager;
  readonly checks: readonly AuthzFilter[];
}

/** An ext_authz filter that asks another service than account-authz. */
export interface ForeignCheck {
  readonly manager: ConnectionManager;
  readonly filter: HttpFilter;
}

export function foreignChecksIn({ manager, checks }: GuardedManager): readonly ForeignCheck[] {
  const own = new Set(checks.map(({ filter }) => filter.value));
  return manager.chains
    .flatMap(({ filters }) => filters)
    .filter(({ type, value }) => type === filterTypes.extAuthz && !own.has(value))
    .map(filter => ({ manager, filter }));
}

/** An ext_authz filter that asks account-authz. */
export interface AuthzFilter {
  readonly manager: ConnectionManager;
  readonly chain: FilterChain;
  readonly filter: HttpFilter;
  /** envoy.extensions.filters.http.ext_authz.v3.ExtAuthz. */
  readonly settings: ProtoValue;
  readonly service: ProtoValue;
  /** Undefined if missing or zero, which another rule reports. */
  readonly timeoutSeconds: number | undefined;
  /** Undefined if it is not in the file. */
  readonly cluster: Cluster | undefined;
  readonly config: Pick<EnvoyRelevantConfig, 'listen' | 'tls'>;
  readonly policy: EnvoyPolicy;
  readonly names: OwnedNames;
  /** The filters after it that run for a protected path. */
  readonly later: readonly HttpFilter[];
}

export function toLintModel(resources: Resources, config: EnvoyRelevantConfig): LintModel {
  const clusters = readClusters(resources);
  const policy = toEnvoyPolicy(config);
  const templates = config.routes.map(({ path }) => toRouteTemplate(path, config.account.parameter));
  const protectedRoutes = indexProtectedRoutes(templates);
  const names = createOwnedNames(policy);
  const checksOf = memoized((manager: ConnectionManager) => readChecks(manager, { config, policy, names }, clusters));
  const context = { protectedRoutes, resources, clusters, names };
  const listeners = resources.listeners
    .map(listener => readListener(listener, context))
    .map(listener => atOwnPorts(listener, clusters, manager => checksOf(manager).length > 0));
  const managers = listeners.flatMap(listener => listener.managers);
  const own = new Set(ownChecks(managers.flatMap(checksOf)));
  const guarded = managers.flatMap((manager): readonly GuardedManager[] => {
    const checks = checksOf(manager).filter(check => own.has(check));
    if (checks.length === 0 || (manager.targets.length === 0 && manager.dynamic.length === 0)) return [];
    return [{ manager, checks }];
  });
  const protectedClusters = guarded.flatMap(({ checks, manager }) => {
    const isChecked = (scopes: readonly ProtoValue[]) => checks.some(({ filter }) => stateOf(filter, scopes).runs);
    const checked = new Set(manager.protectedScopes.filter(isChecked));
    return manager.protectedTargets.flatMap(({ filterScopes, cluster }) =>
      cluster !== undefined && checked.has(filterScopes) ? cluster : [],
    );
  });
  const elsewhere = [...resources.discovery, ...listeners.flatMap(({ dynamic }) => dynamic)];
  const isComplete =
    !elsewhere.some(({ isPresent }) => isPresent) && guarded.every(({ manager }) => manager.dynamic.length === 0);
  const unreachable = guarded.reduce<readonly RouteTemplate[]>(
    (left, { manager }) => manager.withoutWay(left),
    isComplete ? templates : [],
  );
  return {
    resources,
    policy,
    names,
    config,
    isComplete,
    listeners,
    managers,
    clusters,
    guarded,
    checksOf: new Map(guarded.map(({ manager, checks }) => [manager, checks])),
    protectedClusters: new Set(protectedClusters),
    isProtectedKey: createKeyFinder(
      [...new Set(protectedClusters)].flatMap(each => [...(clusters.get(each)?.keys ?? [])]),
    ),
    unreachable,
    isProtectedByName: new Map(),
  };
}

/**
 * A filter chain for no port does not get connections to a port that has a chain of its own. If such a chain asks account-authz, the
 * service is at its port, and what forwards each connection to its original destination leads to other services.
 */
function atOwnPorts(
  listener: Listener,
  clusters: Clusters,
  isChecked: (manager: ConnectionManager) => boolean,
): Listener {
  if (!listener.managers.some(each => !each.isForOtherPorts && isChecked(each))) return listener;
  const keepsPort = (name: string | undefined) => clusters.get(name ?? '')?.keepsDestination === true;
  return {
    ...listener,
    managers: listener.managers.filter(
      ({ isForOtherPorts, targets, dynamic }) =>
        !isForOtherPorts || dynamic.length > 0 || !targets.every(({ cluster }) => keepsPort(cluster)),
    ),
    tcpTargets: listener.tcpTargets.filter(
      ({ cluster, isForOtherPorts }) => !isForOtherPorts || !keepsPort(cluster.text()),
    ),
  };
}

/** Whether a cluster has a host that is also behind protected routes. */
export function isProtectedCluster(model: LintModel, name: string | undefined): boolean {
  const known = model.isProtectedByName.get(name) ?? findProtected(model, name);
  model.isProtectedByName.set(name, known);
  return known;
}

/** Other routes to the protected service than those with a protected path. */
export function openTargetsOf(model: LintModel, { targets }: ConnectionManager): readonly RouteTarget[] {
  return targets.filter(each => each.protectedPath === undefined && isProtectedCluster(model, each.cluster));
}

function findProtected(model: LintModel, name: string | undefined): boolean {
  const { clusters, protectedClusters, isProtectedKey } = model;
  // Undefined: the request chooses. Without protected clusters, any may be one.
  if (name === undefined || protectedClusters.size === 0) return true;
  const cluster = clusters.get(name);
  return (
    [name, ...(cluster?.members ?? [])].some(each => protectedClusters.has(each)) ||
    cluster?.isChosenByRequest === true ||
    [...(cluster?.keys ?? [])].some(isProtectedKey)
  );
}

/** In a chain. Others are not judged. */
const maxChecks = 16;

/** The ext_authz filters of a connection manager, whichever service they ask. */
function readChecks(
  manager: ConnectionManager,
  context: Pick<AuthzFilter, 'config' | 'policy' | 'names'>,
  clusters: Clusters,
) {
  return manager.chains.flatMap(chain => {
    const filters = chain.filters.filter(({ type }) => type === filterTypes.extAuthz).slice(0, maxChecks);
    return filters.map((filter): AuthzFilter => {
      const i = chain.filters.indexOf(filter);
      const settings = filter.config;
      const service = settings.field('grpc_service');
      const cluster = clusters.get(service.field('envoy_grpc', 'cluster_name').text() ?? '');
      const timeoutSeconds = service.field('timeout').seconds() || undefined;
      const later = chain.filters.slice(i + 1).filter(each => runsForProtected(each, manager));
      return { ...context, manager, chain, filter, settings, service, timeoutSeconds, cluster, later };
    });
  });
}

// Another ext_authz may ask another service, perhaps at the same port of another machine; one over HTTP always does. If all of them do, a
// cluster has the wrong address instead.
function ownChecks(checks: readonly AuthzFilter[]): readonly AuthzFilter[] {
  const overGrpc = checks.filter(({ settings }) => !settings.field('http_service').isPresent);
  const at = (wanted: boolean | undefined) =>
    overGrpc.filter(({ cluster, config }) => isAt(cluster, config.listen) === wanted);
  const isNamed = ({ cluster }: AuthzFilter): boolean =>
    [cluster?.name ?? '', ...(cluster?.keys ?? [])].some(each => each.includes(authzCluster));
  const [here, open] = [at(true), at(undefined)];
  const choices = [here.filter(isNamed), open.filter(isNamed), here, open, overGrpc];
  return choices.find(each => each.length > 0) ?? [];
}

function runsForProtected(filter: HttpFilter, { protectedScopes }: ConnectionManager): boolean {
  if (protectedScopes.length === 0) return !filter.isOff;
  return protectedScopes.some(scopes => stateOf(filter, scopes).runs);
}
