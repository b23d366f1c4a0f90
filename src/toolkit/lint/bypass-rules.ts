// Rules for ways around the check: listeners, upgrades and routes without it, and settings that are not in the file.
import { isLocal, readAddress } from './cluster.ts';
import { filterTypes, stateOf } from './http-filter.ts';
import {
  type AuthzFilter,
  type GuardedManager,
  isProtectedCluster,
  type LintModel,
  openTargetsOf,
} from './lint-model.ts';
import type { RouteTarget } from './listener.ts';
import { memoized } from './memoized.ts';
import type { ProtoValue } from './proto-value.ts';
import { partsOf } from './resources.ts';
import { type Finding, quoted, type Rules, when } from './rule.ts';

export const bypassRules = {
  'unchecked-listener': {
    what: 'A listener, or the `filters` of an upgrade, forwards requests for a protected path, or connections to the protected service, without the check',
    why: 'anybody who can connect to the listener can read and write every account without a token',
    fix: 'add the ext_authz filter and the settings of the checked listener, or remove the route to the service, or the `filters` of the upgrade: Envoy then applies those of the main chain',
    find: model => [
      ...uncheckedManagers(model),
      ...uncheckedTcpProxies(model),
      ...model.guarded.flatMap(uncheckedUpgrades),
    ],
  },
  'unchecked-route': {
    what: 'The check is off for a route that a protected path reaches: `disabled` on the filter, the route, its virtual host or the route configuration',
    why: 'requests reach the service without a token',
    fix: 'remove `disabled`, or match only paths that no route of the configuration protects',
    find: ({ guarded }) =>
      guarded.flatMap(each =>
        each.manager.protectedTargets.flatMap(target => turnedOff(each, target, target.protectedPath)),
      ),
  },
  'unchecked-look-alike': {
    what: 'The check is off for a route to the protected service that another spelling of a protected path reaches',
    why: 'an upstream that ignores case, as many do, serves it as the protected path, without a token',
    fix: 'match only named paths in unchecked routes, or set `case_sensitive: false` on the checked route: account-authz refuses the other spelling',
    find: model =>
      model.guarded.flatMap(each =>
        openTargetsOf(model, each.manager).flatMap(target => turnedOff(each, target, target.lookAlikePath)),
      ),
  },
  tunnel: {
    what: 'A route for CONNECT or CONNECT-UDP leads to the protected service: `connect_matcher`, or an upgrade with `connect_config` or of that type, on any listener, with the check or without',
    why: 'Envoy checks no request inside a tunnel',
    fix: 'remove the route; for WebSocket, `upgrade_type: websocket` on a checked route is enough',
    find: model =>
      model.protectedClusters.size === 0
        ? []
        : model.managers
            .filter(({ isOutbound }) => !isOutbound)
            .flatMap(({ targets }) => targets.filter(({ cluster }) => isProtectedCluster(model, cluster)))
            // A route with many weighted clusters has one.
            .filter(({ action }, i, all) => action !== all[i - 1]?.action)
            .flatMap(({ scopes, action }) => [
              ...(scopes[2]?.field('match').present('connect_matcher') ?? []),
              ...action.items('upgrade_configs').filter(isTunnel),
            ])
            .map(at => ({ at, says: 'opens a tunnel to the protected service' })),
  },
  'admin-exposed': {
    what: 'The admin interface listens on more than loopback or a Unix socket',
    why: 'anybody who reaches it can change runtime settings, read the configuration and stop Envoy',
    fix: 'bind `admin.address` to 127.0.0.1',
    find: ({ resources }) => {
      const address = resources.admin.field('address');
      return when(address.isPresent && !isLocal(readAddress(address)), address, 'is not loopback');
    },
  },
  'nothing-checked': {
    what: 'No filter in the file asks account-authz, and no route leads to a protected path',
    why: 'requests bypass this Envoy, or pass it unchecked',
    fix: 'pass the bootstrap of the Envoy in front of the service, with its listeners in static_resources',
    find: model => {
      const others = [...model.guarded, ...dynamicSettings(model), ...uncheckedManagers(model)];
      return when(others.length === 0, model.resources.place, whyNothing(model));
    },
  },
  'dynamic-settings': {
    what: 'Listeners, routes or filters come from a control plane (LDS, RDS, VHDS, ECDS) or from a tree of matchers',
    why: 'the lint cannot check settings that are not in the file',
    fix: 'check what Envoy runs with: `--envoy-admin`, or a file of what its admin interface has at /config_dump?include_eds',
    find: model => dynamicSettings(model).map(at => ({ at, says: 'takes settings from outside this file' })),
  },
} as const satisfies Rules<LintModel>;

function whyNothing({ managers, resources }: LintModel): string {
  if (
    managers.some(({ chains }) =>
      chains.some(({ filters }) => filters.some(({ type }) => type === filterTypes.extAuthz)),
    )
  )
    return 'have the check, and no route to a service: Envoy itself answers everything, by redirects for example';
  return `have no filter that asks account-authz${besideNetworkCheck(partsOf(resources))}`;
}

function besideNetworkCheck(parts: readonly ProtoValue[]): string {
  const [network] = parts.flatMap(part => part.texts(text => text.endsWith(networkCheck)));
  if (network === undefined) return '';
  const fails =
    network.parent.field('failure_mode_allow').flag() === true ? ', and lets pass what it cannot ask about' : '';
  return `, but a network ext_authz, which asks once for each connection, without a path or a token${fails}`;
}

/** The filter chain that it is in. */
function chainAround(at: ProtoValue): readonly ProtoValue[] {
  const { path } = at;
  const start = path.indexOf('filters');
  return start === -1 ? [] : [path.slice(start).reduce(inner => inner.parent, at)];
}

function isTunnel(upgrade: ProtoValue): boolean {
  const type = upgrade.field('upgrade_type').text() ?? '';
  return (
    upgrade.field('enabled').flag() !== false &&
    (upgrade.field('connect_config').isPresent || /^connect(?:-udp)?$/i.test(type))
  );
}

function dynamicSettings({ resources, listeners, managers }: LintModel): readonly ProtoValue[] {
  const inside = [...listeners, ...managers.filter(({ isOutbound }) => !isOutbound)].flatMap(({ dynamic }) => dynamic);
  return [...resources.discovery, ...inside].filter(({ isPresent }) => isPresent);
}

const networkCheck = '/envoy.extensions.filters.network.ext_authz.v3.ExtAuthz';
const remaining = ['/', '/left-over/by-all-others'];

function uncheckedManagers(model: LintModel): readonly Finding[] {
  return model.managers.flatMap(manager => {
    const checks = model.checksOf.get(manager) ?? [];
    if (checks.some(({ chain }) => chain.upgrade === undefined)) return [];
    // An outbound listener that takes any path to another service is no way in.
    const leadsIn = (cluster: string | undefined) => model.guarded.length > 0 && isProtectedCluster(model, cluster);
    const open = manager.protectedTargets.find(
      ({ match, cluster }) => manager.isPublic || !remaining.every(path => match.takes(path)) || leadsIn(cluster),
    );
    const says =
      open === undefined
        ? ''
        : `have no check${besideNetworkCheck(chainAround(manager.value))}, and ${wayOf(open, open.protectedPath)}`;
    return when(open !== undefined, manager.value.field('http_filters'), says);
  });
}

function uncheckedTcpProxies(model: LintModel): readonly Finding[] {
  if (model.protectedClusters.size === 0) return [];
  return model.listeners.flatMap(({ managers, tcpTargets }) => {
    // What keeps the destination of a connection leads where the checked requests of the same listener go.
    const isChecked = managers.some(each => model.checksOf.has(each));
    const leadsIn = (name: string | undefined) =>
      name !== undefined &&
      (isProtectedCluster(model, name) || (isChecked && model.clusters.get(name)?.keepsDestination === true));
    return tcpTargets
      .filter(({ cluster }) => leadsIn(cluster.text()))
      .map(({ cluster: at }) => ({
        at,
        says: `forwards bytes to the protected service${besideNetworkCheck(chainAround(at))}`,
      }));
  });
}

function uncheckedUpgrades({ manager, checks }: GuardedManager): readonly Finding[] {
  const open = manager.chains.filter(each => each.upgrade !== undefined && !checks.some(({ chain }) => chain === each));
  return (manager.protectedTargets.length === 0 ? [] : open).map(({ upgrade = '', value: at }) => ({
    at,
    says: `do not check requests for the upgrade ${quoted(upgrade)}`,
  }));
}

/** Reports what turns all checks of a chain off for the target, if its path is given. */
export function turnedOff(
  { checks }: Pick<GuardedManager, 'checks'>,
  target: RouteTarget,
  path?: string,
): readonly Finding[] {
  if (path === undefined) return [];
  return offBy(checks)(target.filterScopes).map(at => ({
    at,
    says: `turns the check off where ${wayOf(target, path)}`,
  }));
}

/** In each chain, what turns all its checks off. */
const offBy = memoized((checks: readonly AuthzFilter[]) => {
  const chains = [...new Set(checks.map(({ chain }) => chain))].map(each =>
    checks.filter(({ chain }) => chain === each),
  );
  return memoized((scopes: readonly ProtoValue[]) =>
    chains.flatMap(all => {
      const states = all.map(({ filter }) => stateOf(filter, scopes));
      return states.some(({ runs }) => runs) ? [] : states.slice(0, 1).map(({ by }) => by);
    }),
  );
});

export function wayOf({ cluster }: RouteTarget, path = ''): string {
  const to = cluster === undefined ? 'a cluster that the request chooses' : `cluster ${quoted(cluster)}`;
  return `${quoted(path)} goes to ${to}`;
}
