// Rules for ways around the check: listeners, upgrades and routes without it, settings that are not in the file, clusters that lead where no
// client may go, and the metadata that only the check may write.
import { toListenAddress } from '../../text/listen-address.ts';
import { addressKey, createKeyFinder, isLocal, readAddress } from './cluster.ts';
import { filterTypes, stateOf } from './http-filter.ts';
import { type GuardedManager, isProtectedCluster, type LintModel, openTargetsOf } from './lint-model.ts';
import type { RouteTarget } from './listener.ts';
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
      return when(others.length === 0, model.resources.place, 'have no filter that asks account-authz');
    },
  },
  'dynamic-settings': {
    what: 'Listeners, routes or filters come from a control plane (LDS, RDS, VHDS, ECDS) or from a tree of matchers',
    why: 'the lint cannot check settings that are not in the file',
    fix: 'check what Envoy runs with: `--envoy-admin`, or a file of what its admin interface has at /config_dump?include_eds',
    find: model => dynamicSettings(model).map(at => ({ at, says: 'takes settings from outside this file' })),
  },
} as const satisfies Rules<LintModel>;

function dynamicSettings({ resources, listeners, managers }: LintModel): readonly ProtoValue[] {
  const inside = [...listeners, ...managers.filter(({ isOutbound }) => !isOutbound)].flatMap(({ dynamic }) => dynamic);
  return [...resources.discovery, ...inside].filter(({ isPresent }) => isPresent);
}

const remaining = ['/', '/left-over/by-all-others'];

function uncheckedManagers(model: LintModel): readonly Finding[] {
  return model.managers.flatMap(manager => {
    const checks = model.guarded.find(each => each.manager === manager)?.checks ?? [];
    if (checks.some(({ chain }) => chain.upgrade === undefined)) return [];
    // An outbound listener that takes any path to another service is no way in.
    const leadsIn = (cluster: string | undefined) => model.guarded.length > 0 && isProtectedCluster(model, cluster);
    const open = manager.protectedTargets.find(
      ({ match, cluster }) => manager.isPublic || !remaining.every(path => match.takes(path)) || leadsIn(cluster),
    );
    const says = open === undefined ? '' : `have no check, and ${wayOf(open, open.protectedPath)}`;
    return when(open !== undefined, manager.value.field('http_filters'), says);
  });
}

function uncheckedTcpProxies(model: LintModel): readonly Finding[] {
  if (model.protectedClusters.size === 0) return [];
  return model.listeners.flatMap(({ managers, tcpTargets }) => {
    // What keeps the destination of a connection leads where the checked requests of the same listener go.
    const isChecked = model.guarded.some(({ manager }) => managers.includes(manager));
    const leadsIn = (name: string | undefined) =>
      name !== undefined &&
      (isProtectedCluster(model, name) || (isChecked && model.clusters.get(name)?.keepsDestination === true));
    return tcpTargets
      .filter(({ cluster }) => leadsIn(cluster.text()))
      .map(({ cluster: at }) => ({ at, says: 'forwards bytes to the protected service' }));
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
export function turnedOff({ manager, checks }: GuardedManager, target: RouteTarget, path?: string): readonly Finding[] {
  if (path === undefined) return [];
  return manager.chains.flatMap(chain => {
    const states = checks
      .filter(check => check.chain === chain)
      .map(({ filter }) => stateOf(filter, target.filterScopes));
    if (states.some(({ runs }) => runs)) return [];
    return states.slice(0, 1).map(({ by }) => ({ at: by, says: `turns the check off where ${wayOf(target, path)}` }));
  });
}

export function wayOf({ cluster }: RouteTarget, path = ''): string {
  const to = cluster === undefined ? 'a cluster that the request chooses' : `cluster ${quoted(cluster)}`;
  return `${quoted(path)} goes to ${to}`;
}

export const wayRules = {
  'way-inside': {
    what: "A route, a mirror or a TCP proxy leads to Envoy's admin interface (except one for `/stats/prometheus` or `/ready` alone), to account-authz or its `admin`, or back to a listener of this Envoy",
    why: 'a client could change or stop Envoy, ask for checks of its own making past the limits of the filter, or count as a request from inside',
    fix: 'remove the route, or match `/stats/prometheus` or `/ready` by `path`; only ext_authz asks account-authz',
    find: model => {
      const { resources, config, guarded } = model;
      const own = [config.listen, config.admin].map(text => addressKey(toListenAddress(text)));
      const asked = guarded.flatMap(({ checks }) => checks).flatMap(({ cluster }) => [...(cluster?.keys ?? [])]);
      // The admin of account-authz is on the same machine.
      const [, port = ''] = /:(\d+)$/.exec(own[1] ?? '') ?? [];
      const admins = asked.map(key => key.replace(/:\d+$/, `:${port}`));
      const listeners = resources.listeners.flatMap(each => [each, ...each.items('additional_addresses')]);
      return [
        ...waysTo(model, keysOf([resources.admin]), "leads to Envoy's admin interface", true),
        ...waysTo(model, [...own, ...asked, ...admins], 'leads to account-authz'),
        ...waysTo(model, keysOf(listeners), 'leads back to a listener of this Envoy'),
      ];
    },
  },
  'owned-metadata-set': {
    what: 'Something other than the check writes the metadata of ext_authz, which the guard reads',
    why: 'it can write `decision: allow`, and the guard lets every request pass',
    fix: 'write to a namespace of its own',
    find: ({ resources, guarded }) => {
      const names = new Set([
        'envoy.filters.http.ext_authz',
        ...guarded.flatMap(({ checks }) => checks.map(({ filter }) => filter.name)),
      ]);
      return partsOf(resources)
        .flatMap(part => part.inner(name => name === 'metadata_namespace' || name === 'receiving_namespaces'))
        .flatMap(each => each.texts(text => names.has(text)))
        .map(at => ({ at, says: 'is the metadata of ext_authz' }));
    },
  },
} as const satisfies Rules<LintModel>;

interface Way {
  /** The name of the cluster. */
  readonly at: ProtoValue;
  /** envoy.config.route.v3.Route, where nothing is checked. */
  readonly openRoute?: ProtoValue | undefined;
}

function keysOf(messages: readonly ProtoValue[]): readonly string[] {
  return messages
    .map(each => readAddress(each.field('address')))
    .flatMap(each => (each === undefined ? [] : addressKey(each)));
}

function waysTo(model: LintModel, to: readonly string[], says: string, exceptMetrics = false): readonly Finding[] {
  const isWanted = createKeyFinder(to.filter(key => !key.endsWith(':0')));
  const leads = [...model.clusters.values()].filter(each => [...each.keys].some(isWanted));
  if (leads.length === 0) return [];
  const names = new Set(leads.map(({ name }) => name));
  return waysOf(model)
    .filter(({ at, openRoute }) => names.has(at.text() ?? '') && !(exceptMetrics && isForMetrics(openRoute)))
    .map(({ at }) => ({ at, says }));
}

/** From each listener that is not for outbound traffic. */
export function waysOf({ managers, listeners }: LintModel): readonly Way[] {
  const inbound = managers.filter(({ isOutbound }) => !isOutbound);
  return [
    ...inbound.flatMap(({ targets, chains }) => {
      const isChecked = chains.some(({ filters }) => filters.some(({ type }) => type === filterTypes.extAuthz));
      return targets.map(({ at, scopes }) => ({ at, openRoute: isChecked ? undefined : scopes[2] }));
    }),
    ...inbound
      .flatMap(({ routes }) => [routes, ...routes.items('virtual_hosts')])
      .flatMap(scope => scope.items('request_mirror_policies'))
      .map(each => ({ at: each.field('cluster') })),
    ...listeners
      .flatMap(({ isOutbound, tcpTargets }) => (isOutbound ? [] : tcpTargets))
      .map(({ cluster: at }) => ({ at })),
  ];
}

/** istiod and Envoy Gateway have them on listeners of their own. */
function isForMetrics(route: ProtoValue | undefined): boolean {
  const [path] = route?.field('match').present('path', 'prefix') ?? [];
  return ['/stats/prometheus', '/ready'].includes(path?.text() ?? '');
}
