// Rules for ways that lead where no client may go, for headers that only the check may set, and for texts that show the token.
import type { ListenAddress } from '../../text/listen-address.ts';
import { type Cluster, isAt, isSameEndpoint, readAddress } from './cluster.ts';
import type { LintModel } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Finding, quoted, type Rules, when } from './rule.ts';

export const wayRules = {
  'way-to-admin': {
    what: "A route or a TCP proxy leads to Envoy's admin interface, except one for `/stats/prometheus` or `/ready` alone",
    why: 'a client could read the configuration, change runtime settings and stop Envoy',
    fix: 'remove the route, or match `/stats/prometheus` or `/ready` by `path`',
    find: model => {
      const admin = readAddress(model.resources.admin.field('address'));
      return waysTo(
        model,
        ({ cluster, isForMetrics }) => !isForMetrics && hasEndpoint(cluster, admin),
        "leads to Envoy's admin interface",
      );
    },
  },
  'way-to-authz': {
    what: 'A route or a TCP proxy leads to account-authz itself',
    why: 'a client could ask it about requests of its own making, and flood it past the limits of the check',
    fix: 'remove the route: only ext_authz asks account-authz',
    find: model => waysTo(model, ({ cluster }) => isAt(cluster, model.listen) === true, 'leads to account-authz'),
  },
  'way-to-listener': {
    what: 'A route or a TCP proxy leads back to a listener of this Envoy',
    why: 'a request that comes from Envoy itself can count as one from inside, and get past what the first listener refused',
    fix: 'route to the service itself',
    find: model => {
      const own = model.resources.listeners.map(listener => readAddress(listener.field('address')));
      return waysTo(
        model,
        ({ cluster }) => own.some(each => hasEndpoint(cluster, each)),
        'leads back to a listener of this Envoy',
      );
    },
  },
  'owned-header-set': {
    what: 'Something other than the check sets an identity header, an account header, the token, or a header that overrides path, method or host: an early mutation, a header_mutation filter, `request_headers_to_add` of any route',
    why: 'the service would take it for what account-authz verified, or serve another request than the checked one',
    fix: 'remove it: a client sends the token and the account, and only the check sets identity headers',
    find: ({ managers, names }) =>
      managers
        .filter(({ isOutbound }) => !isOutbound)
        .flatMap(({ value, routes }) => [value, routes])
        .flatMap(value => value.inner(name => name === 'append' || name === 'request_headers_to_add'))
        .flatMap(list => list.items())
        .filter(({ isMapping, path }) => isMapping && !path.some(step => String(step).startsWith('response')))
        .map(each => each.field('header', 'key'))
        .flatMap(key => {
          const meaning = names.meaningOf(key.text() ?? '', 'add');
          return when(meaning !== undefined, key, `sets ${quoted(key.text() ?? '')}, ${meaning}`);
        }),
  },
  'shown-token': {
    what: 'A header, a body, a tag or a log has `%REQ(authorization)%`',
    why: 'whoever reads it can use the tokens in it',
    fix: 'remove it',
    find: ({ managers }) =>
      managers
        .flatMap(({ value, routes }) => [value, routes])
        .flatMap(value => value.texts(showsToken))
        .map(at => ({ at, says: 'shows the token of each request' })),
  },
} as const satisfies Rules<LintModel>;

interface Way {
  readonly at: ProtoValue;
  readonly cluster: Cluster | undefined;
  readonly isForMetrics: boolean;
}

function waysTo(model: LintModel, isWanted: (way: Way) => boolean, says: string): readonly Finding[] {
  return waysOf(model)
    .filter(isWanted)
    .map(({ at }) => ({ at, says }));
}

function waysOf({ managers, listeners, clusters }: LintModel): readonly Way[] {
  const named = (at: ProtoValue, isForMetrics: boolean): Way => ({
    at,
    cluster: clusters.get(at.text() ?? ''),
    isForMetrics,
  });
  const routes = managers
    .filter(({ isOutbound }) => !isOutbound)
    .flatMap(({ routes: table }) => table.items('virtual_hosts', 'routes'))
    .flatMap(route => {
      const action = route.field('route');
      const path = route.field('match', 'path').text() ?? route.field('match', 'prefix').text() ?? '';
      const isForMetrics = path === '/stats/prometheus' || path === '/ready';
      const all = [
        action.field('cluster'),
        ...action.items('weighted_clusters', 'clusters').map(each => each.field('name')),
      ];
      return all.filter(({ isPresent }) => isPresent).map(at => named(at, isForMetrics));
    });
  const tcp = listeners.flatMap(({ tcpTargets }) => tcpTargets.map(({ cluster }) => named(cluster, false)));
  return [...routes, ...tcp];
}

function hasEndpoint(cluster: Cluster | undefined, address: ListenAddress | undefined): boolean {
  return (cluster?.endpoints ?? []).some(each => isSameEndpoint(each, address));
}

/** The commands of Envoy's formatters that print a request header: `%REQ(FIRST?SECOND):LENGTH%`, and a CEL expression. */
function showsToken(text: string): boolean {
  return text.split('%').some(command => {
    const [name = '', ...rest] = command.split('(');
    const argument = rest.join('(').toLowerCase();
    if (/^(?:TYPED_)?CEL$/.test(name)) return argument.includes('authorization');
    return (
      /^REQ(?:_WITHOUT_QUERY)?$/.test(name) && (argument.split(')', 1)[0] ?? '').split('?').includes('authorization')
    );
  });
}
