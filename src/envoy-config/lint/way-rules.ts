// Rules for ways that lead where no client may go, and for the metadata that only the check may write.
import { toListenAddress } from '../../text/listen-address.ts';
import { addressKey, readAddress } from './cluster.ts';
import { filterTypes } from './http-filter.ts';
import type { LintModel } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { partsOf } from './resources.ts';
import type { Finding, Rules } from './rule.ts';

export const wayRules = {
  'way-to-admin': {
    what: "A route, a mirror or a TCP proxy leads to Envoy's admin interface, except one for `/stats/prometheus` or `/ready` alone",
    why: 'a client could read the configuration, change runtime settings and stop Envoy',
    fix: 'remove the route, or match `/stats/prometheus` or `/ready` by `path`',
    find: model =>
      waysTo(model, keysOf([model.resources.admin.field('address')]), "leads to Envoy's admin interface", true),
  },
  'way-to-authz': {
    what: 'A route, a mirror or a TCP proxy leads to account-authz itself, or to its `admin`',
    why: 'a client could ask it about requests of its own making, and flood it past the limits of the check',
    fix: 'remove the route: only ext_authz asks account-authz',
    find: model => {
      const own = [model.config.listen, model.config.admin].map(text => addressKey(toListenAddress(text)));
      const asked = model.guarded.flatMap(({ checks }) => checks).flatMap(({ cluster }) => [...(cluster?.keys ?? [])]);
      // Its admin is on the same machine.
      const [, port = ''] = /:(\d+)$/.exec(own[1] ?? '') ?? [];
      const admins = asked.map(key => key.replace(/:\d+$/, `:${port}`));
      return waysTo(model, [...own, ...asked, ...admins], 'leads to account-authz');
    },
  },
  'way-to-listener': {
    what: 'A route, a mirror or a TCP proxy leads back to a listener of this Envoy',
    why: 'a request that comes from Envoy itself can count as one from inside, and get past what the first listener refused',
    fix: 'route to the service itself',
    find: model =>
      waysTo(
        model,
        keysOf(
          model.resources.listeners
            .flatMap(listener => [listener, ...listener.items('additional_addresses')])
            .map(each => each.field('address')),
        ),
        'leads back to a listener of this Envoy',
      ),
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

function keysOf(addresses: readonly ProtoValue[]): readonly string[] {
  return addresses.map(readAddress).flatMap(each => (each === undefined ? [] : addressKey(each)));
}

function waysTo(model: LintModel, to: readonly string[], says: string, exceptMetrics = false): readonly Finding[] {
  const keys = new Set(to.filter(key => !key.endsWith(':0')));
  const leads = [...model.clusters.values()].filter(each => [...each.keys].some(key => keys.has(key)));
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
