// The connection manager in front of the check: one spelling of a path for everybody, no forged names, no rewritten refusals.
import { filterTypes } from './http-filter.ts';
import type { GuardedManager } from './judgement.ts';
import { readStringMatcher } from './name-pattern.ts';
import type { ProtoValue } from './proto-value.ts';
import { ifTrue, listed, type Rules, sightings, unlessTrue } from './rule.ts';

const escapedSlashes = {
  IMPLEMENTATION_SPECIFIC_DEFAULT: 0,
  KEEP_UNCHANGED: 1,
  REJECT_REQUEST: 2,
  UNESCAPE_AND_REDIRECT: 3,
  UNESCAPE_AND_FORWARD: 4,
};
const underscores = { ALLOW: 0, REJECT_REQUEST: 1, DROP_HEADER: 2 };
const earlyHeaderMutation = 'envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';
const refusalStatuses = [400, 401, 403, 404, 503] as const;
const comparisons = { EQ: 0, GE: 1, LE: 2, NE: 3 };

export const requestRules = {
  'normalize-path': {
    what: '`normalize_path` is missing or false',
    why: 'the service may resolve /../ that the route and the check took as it is',
    fix: 'write `normalize_path: true`',
    find: ({ manager }) => unlessTrue(manager.value.field('normalize_path')),
  },
  'merge-slashes': {
    what: '`merge_slashes` is missing or false',
    why: 'the service may read // as / and serve another path than the one that was routed',
    fix: 'write `merge_slashes: true`',
    find: ({ manager }) => unlessTrue(manager.value.field('merge_slashes')),
  },
  'escaped-slashes': {
    what: '`path_with_escaped_slashes_action` is not REJECT_REQUEST',
    why: '%2F and %5C are slashes to some servers and not to others',
    fix: 'write `path_with_escaped_slashes_action: REJECT_REQUEST`',
    find: ({ manager }) => {
      const action = manager.value.field('path_with_escaped_slashes_action');
      return sightings(
        action.choice(escapedSlashes) !== escapedSlashes.REJECT_REQUEST,
        action,
        action.isPresent ? 'is not REJECT_REQUEST' : 'is missing',
      );
    },
  },
  'header-underscores': {
    what: '`headers_with_underscores_action` is neither REJECT_REQUEST nor DROP_HEADER',
    why: 'x_auth_uid is x-auth-uid to many upstreams',
    fix: 'write `headers_with_underscores_action: REJECT_REQUEST` in common_http_protocol_options',
    find: guarded => {
      const action = underscoresAction(guarded);
      return sightings(!refusesUnderscores(guarded), action, action.isPresent ? 'is ALLOW' : 'is missing');
    },
  },
  'path-parameters': {
    what: '`ignore_path_parameters_in_path_matching` is true',
    why: 'a route is chosen by another path than the one that is checked and served',
    fix: 'leave it out',
    find: ({ manager }) => ifTrue(manager.routes.field('ignore_path_parameters_in_path_matching')),
  },
  'owned-headers-kept': {
    what: 'Header names under `identityHeaders` are not removed before the check',
    why: 'a client that sends one is somebody else on every route that is not checked, and beside our five on the others',
    fix: 'remove the whole prefix in `early_header_mutation_extensions`, with `remove_on_match`',
    find: guarded => {
      const { names, manager } = guarded;
      const spellings = refusesUnderscores(guarded) ? [] : names.lookAlikes;
      const removes = readRemovals(guarded);
      const kept = [...names.identity, ...names.strays, ...spellings].filter(name => !removes(name));
      const at = manager.value.field('early_header_mutation_extensions');
      return sightings(kept.length > 0, at, `keeps ${listed(kept)} as a client sent it`);
    },
  },
  'override-headers-kept': {
    what: 'Headers that override path or method (x-original-url, x-rewrite-url, x-http-method-override, x-http-method, x-method-override) are not removed before the check',
    why: 'frameworks act on them instead of the path and the method that were checked',
    fix: 'remove each of them in `early_header_mutation_extensions`',
    find: guarded => {
      const removes = readRemovals(guarded);
      const kept = guarded.names.overrides.filter(name => !removes(name));
      const at = guarded.manager.value.field('early_header_mutation_extensions');
      return sightings(kept.length > 0, at, `keeps ${listed(kept)} as a client sent it`);
    },
  },
  'local-reply': {
    what: '`local_reply_config` rewrites the status or the body of refusals',
    why: 'clients and caches no longer see what was refused, a refusal can even look like a success',
    fix: 'leave it out, or limit its mappers to response flags other than UAEX',
    find: ({ manager }) => {
      const replies = manager.value.field('local_reply_config');
      const format = replies.field('body_format');
      return [
        ...sightings(format.isPresent, format, 'replaces the body of every refusal'),
        ...replies
          .field('mappers')
          .items()
          .filter(rewritesRefusals)
          .map(at => ({ at, says: 'rewrites refusals' })),
      ];
    },
  },
} as const satisfies Rules<GuardedManager>;

function underscoresAction({ manager }: GuardedManager): ProtoValue {
  return manager.value.field('common_http_protocol_options').field('headers_with_underscores_action');
}

function refusesUnderscores(guarded: GuardedManager): boolean {
  const action = underscoresAction(guarded).choice(underscores);
  return action === underscores.REJECT_REQUEST || action === underscores.DROP_HEADER;
}

/** Whether a name is removed from every request before it is checked. */
function readRemovals({ manager, checks }: GuardedManager): (name: string) => boolean {
  const early = manager.value
    .field('early_header_mutation_extensions')
    .items()
    .map(each => each.field('typed_config').any())
    .filter(({ type }) => type === earlyHeaderMutation)
    .flatMap(({ message }) => message.field('mutations').items());
  const everywhere = early.map(readRemoval);
  // The same by a filter, where it stands before each check.
  const byChain = checks.map(({ chain, filter }) =>
    chain.filters
      .slice(0, chain.filters.indexOf(filter))
      .filter(({ type, isOff }) => type === filterTypes.headerMutation && !isOff)
      .flatMap(({ config }) => config.field('mutations').field('request_mutations').items())
      .map(readRemoval),
  );
  return name =>
    everywhere.some(removes => removes(name)) || byChain.every(removals => removals.some(removes => removes(name)));
}

function readRemoval(mutation: ProtoValue): (name: string) => boolean {
  const exact = mutation.field('remove').text()?.toLowerCase();
  const onMatch = mutation.field('remove_on_match').field('key_matcher');
  if (!onMatch.isPresent) return name => name === exact;
  const pattern = readStringMatcher(onMatch);
  return name => pattern(name) ?? true;
}

function rewritesRefusals(mapper: ProtoValue): boolean {
  const rewrites = ['status_code', 'body', 'body_format_override'].some(name => mapper.field(name).isPresent);
  return rewrites && mayBeRefusal(mapper.field('filter'));
}

/** Whether an envoy.config.accesslog.v3.AccessLogFilter lets an answer of account-authz through. */
function mayBeRefusal(filter: ProtoValue): boolean {
  const flags = filter.field('response_flag_filter').field('flags').items();
  if (flags.length > 0) return flags.some(flag => flag.text() === 'UAEX');
  const all = filter.field('and_filter').field('filters').items();
  if (all.length > 0) return all.every(mayBeRefusal);
  const any = filter.field('or_filter').field('filters').items();
  if (any.length > 0) return any.some(mayBeRefusal);
  const comparison = filter.field('status_code_filter').field('comparison');
  return !comparison.isPresent || refusalStatuses.some(status => isComparedTrue(comparison, status));
}

function isComparedTrue(comparison: ProtoValue, status: number): boolean {
  const value = comparison.field('value').field('default_value').number() ?? 0;
  switch (comparison.field('op').choice(comparisons) ?? comparisons.EQ) {
    case comparisons.EQ:
      return status === value;
    case comparisons.GE:
      return status >= value;
    case comparisons.LE:
      return status <= value;
    default:
      return true;
  }
}
