// Rules for ways that lead where no client may go, for headers that only the check may set, and for texts that show the token.
import { toListenAddress } from '../../text/listen-address.ts';
import { addressKey, readAddress } from './cluster.ts';
import { filterTypes } from './http-filter.ts';
import type { LintModel } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { partsOf, type Resources } from './resources.ts';
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
      return waysTo(model, own, 'leads to account-authz');
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
  'cookie-origin': {
    what: 'A token may be in a cookie, and CORS lets pages of an origin that `token.origins` does not have send and read it (`allow_credentials`)',
    why: 'any such page could read the answers with the rights of the user who opens it',
    fix: 'list the origins of `token.origins` as `exact`, or remove `allow_credentials`',
    find: ({ resources, policy, config: { token } }) =>
      partsOf(policy.hasCookiePlace ? resources : undefined)
        .flatMap(part => part.inner(name => name === 'allow_origin_string_match'))
        .filter(list => list.parent.field('allow_credentials').flag() === true)
        .flatMap(list => list.items())
        .filter(each => !token.origins?.includes(each.field('exact').text() ?? ''))
        .map(at => ({ at, says: 'allows an origin that is none of `token.origins`' })),
  },
  'shown-token': {
    what: 'A header, a body, a tag, a log or a tap has the token of a request, such as `%REQ(authorization)%`',
    why: 'whoever reads it can use the tokens in it',
    fix: 'remove it: the log of account-authz says under the same request id who the caller is',
    find: ({ resources, policy }) => {
      const tokens = new Set(policy.headers.filter(({ kind }) => kind === 'token').flatMap(({ names }) => names));
      const isToken = (text: string): boolean => tokens.has(text.toLowerCase());
      const parts = partsOf(resources);
      const listed = parts
        .flatMap(part => part.inner(name => name === 'additional_request_headers_to_log' || name === 'request_header'))
        .flatMap(each => each.texts(isToken));
      const shown = parts.flatMap(part => part.texts(text => text.includes('%') && showsToken(text, isToken)));
      const taps = parts.flatMap(part => part.texts(text => tap.test(text)));
      return [...listed, ...shown, ...taps].map(at => ({ at, says: 'shows the token of each request' }));
    },
  },
} as const satisfies Rules<LintModel>;

const tap = /^type\.googleapis\.com\/envoy\.extensions\.(?:filters\.http|transport_sockets)\.tap\.v3\.Tap$/;

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

const knownCommands: ReadonlySet<string> = new Set(
  `START_TIME EMIT_TIME REQ REQUEST_HEADER REQUEST_HEADERS REQ_WITHOUT_QUERY TRAILER RESP PROTOCOL HOSTNAME DYNAMIC_METADATA CLUSTER_METADATA
  METADATA FILTER_STATE FILTER_CHAIN_NAME ROUTE_NAME STREAM_ID UNIQUE_ID REQUESTED_SERVER_NAME ACCESS_LOG_TYPE LOCAL_REPLY_BODY PATH TRACE_ID
  SPAN_ID CEL TYPED_CEL`.split(/\s+/),
);
const knownFamilies = /^(?:RESPONSE|UPSTREAM|DOWNSTREAM|CONNECTION|VIRTUAL)_|^GRPC_STATUS|BYTES|DURATION$/;

/** Texts with a substitution command that the lint does not know: it may print what a header has. */
export function unknownCommands(resources: Resources): readonly ProtoValue[] {
  const isUnknown = (text: string): boolean =>
    text.includes('%') &&
    [...text.matchAll(/%([A-Z][A-Z0-9_]{2,40})[(:%]/g)].some(
      ([, name = '']) => !knownCommands.has(name) && !knownFamilies.test(name),
    );
  return partsOf(resources).flatMap(part => part.texts(isUnknown));
}

/** Whether a command of Envoy's formatters prints such a header: `%REQ(FIRST?SECOND):LENGTH%`, `%REQUEST_HEADER(NAME)%`, a CEL expression. */
function showsToken(text: string, isToken: (name: string) => boolean): boolean {
  return text.split('%').some(command => {
    const [name = '', ...rest] = command.split('(');
    const argument = rest.join('(');
    if (/^(?:TYPED_)?CEL$/.test(name)) return argument.split(/[^\w-]/).some(isToken);
    return (
      name === 'REQUEST_HEADERS' ||
      (/^(?:REQ|REQUEST_HEADER|REQ_WITHOUT_QUERY|TRAILER)$/.test(name) &&
        (argument.split(')', 1)[0] ?? '').split('?').some(isToken))
    );
  });
}
