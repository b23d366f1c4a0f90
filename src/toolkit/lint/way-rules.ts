// Rules for ways that lead where no client may go, and for the metadata that only the check may write.
import { toListenAddress } from '../../text/listen-address.ts';
import { addressKey, createKeyFinder, readAddress } from './cluster.ts';
import { filterTypes, routeSettingsOf, stateOf } from './http-filter.ts';
import { type ForeignCheck, foreignChecksIn, type LintModel } from './lint-model.ts';
import type { ConnectionManager, RouteTarget } from './listener.ts';
import { memoized } from './memoized.ts';
import type { ProtoValue } from './proto-value.ts';
import { partsOf } from './resources.ts';
import { type Finding, type Rules, when } from './rule.ts';

export const wayRules = {
  'way-inside': {
    what: "A route, a mirror or a TCP proxy leads to Envoy's admin interface (except by GET to an exact path that only reads, such as `/stats/prometheus`, with `normalize_path` or on a loopback listener), to account-authz or its `admin`, or back to a listener of this Envoy",
    why: 'a client could change or stop Envoy, ask for checks of its own making past the limits of the filter, or count as a request from inside',
    fix: 'remove the route, or match `path: /stats/prometheus` and the method GET with `normalize_path: true`; only ext_authz asks account-authz',
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
    what: 'Something other than the check writes the metadata of ext_authz, which the guard and the access log read: another ext_authz filter too, since all of them write one namespace',
    why: 'it can write what the guard asks for, or another `uid` into the access log',
    fix: 'write to a namespace of its own; in another ext_authz filter, write `enable_dynamic_metadata_ingestion: false`',
    find: model => {
      const { resources, guarded } = model;
      const names = new Set([
        'envoy.filters.http.ext_authz',
        ...guarded.flatMap(({ checks }) => checks.map(({ filter }) => filter.name)),
      ]);
      const named = partsOf(resources)
        .flatMap(part => part.inner(name => name === 'metadata_namespace' || name === 'receiving_namespaces'))
        .flatMap(each => each.texts(text => names.has(text)));
      return [
        ...named.map(at => ({ at, says: 'is the metadata of ext_authz' })),
        ...guarded.flatMap(foreignChecksIn).flatMap(writingMetadata),
      ];
    },
  },
} as const satisfies Rules<LintModel>;

const scopesOf = memoized(({ targets }: ConnectionManager) => [
  ...new Set(targets.map(({ filterScopes }) => filterScopes)),
]);

/** A service over HTTP writes only what headers of its answers are told to be. */
function writingMetadata({ filter, manager }: ForeignCheck): readonly Finding[] {
  const at = filter.config.field('enable_dynamic_metadata_ingestion');
  const scopes = scopesOf(manager);
  const settings = [filter.config, ...scopes.flatMap(each => routeSettingsOf(filter, each))];
  const canWrite = settings.some(
    each => each.inner(name => name === 'grpc_service' || name === 'dynamic_metadata_from_headers').length > 0,
  );
  const runs = canWrite && scopes.some(each => stateOf(filter, each).runs);
  return when(runs && at.flag() !== false, at, 'is not false, and this filter asks another service');
}

interface Way {
  /** The name of the cluster. */
  readonly at: ProtoValue;
  /** Where nothing is checked. */
  readonly open?: { readonly target: RouteTarget; readonly manager: ConnectionManager } | undefined;
}

function keysOf(messages: readonly ProtoValue[]): readonly string[] {
  return messages
    .map(each => readAddress(each.field('address')))
    .flatMap(each => (each === undefined ? [] : addressKey(each)));
}

function waysTo(model: LintModel, to: readonly string[], says: string, exceptReading = false): readonly Finding[] {
  const isWanted = createKeyFinder(to.filter(key => !key.endsWith(':0')));
  const leads = [...model.clusters.values()].filter(each => [...each.keys].some(isWanted));
  if (leads.length === 0) return [];
  const names = new Set(leads.map(({ name }) => name));
  return waysOf(model)
    .filter(({ at, open }) => names.has(at.text() ?? '') && !(exceptReading && onlyReads(open)))
    .map(({ at }) => ({ at, says }));
}

/** From each listener that is not for outbound traffic. */
export function waysOf({ managers, listeners }: LintModel): readonly Way[] {
  const inbound = managers.filter(({ isOutbound }) => !isOutbound);
  return [
    ...inbound.flatMap(manager => {
      const isChecked = manager.chains.some(({ filters }) => filters.some(({ type }) => type === filterTypes.extAuthz));
      return manager.targets.map(target => ({ at: target.at, open: isChecked ? undefined : { target, manager } }));
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

const reading = /^\/(?:stats|stats\/prometheus|ready|clusters|listeners|memory|server_info)$/;
// What else they show stays on this machine.
const readingHere =
  /^\/(?:certs|config_dump|contention|init_dump|runtime|help|hot_restart_version|stats\/recentlookups)$/;
const rewrites = ['prefix_rewrite', 'regex_rewrite', 'path_rewrite', 'path_rewrite_policy'];

/** Envoy Gateway and Contour have such routes on listeners of their own. A longer path could leave the one that it begins with by `..`. */
function onlyReads(open: Way['open']): boolean {
  if (open === undefined) return false;
  const { target, manager } = open;
  const { match, scopes, action } = target;
  const path = scopes[2]?.field('match', 'path').text() ?? '';
  const isNormalized = manager.value.field('normalize_path').flag() === true;
  return (
    (manager.isPublic ? isNormalized && reading.test(path) : reading.test(path) || readingHere.test(path)) &&
    match.methods?.every(each => /^(?:GET|HEAD)$/i.test(each)) === true &&
    action.present(...rewrites).length === 0
  );
}
