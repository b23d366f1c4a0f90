// Rules for what the connection manager does with a path and with refusals.
import type { GuardedManager } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { ifPresent, ifTrue, type Rules, when } from './rule.ts';

const refusalStatuses = [400, 401, 403, 404, 503] as const;

export const requestRules = {
  'path-parameters': {
    what: '`ignore_path_parameters_in_path_matching` is true',
    why: 'Envoy chooses the route by a path other than the one that is checked and served',
    fix: 'remove it',
    find: ({ manager }) => ifTrue(manager.routes.field('ignore_path_parameters_in_path_matching')),
  },
  'local-reply': {
    what: '`local_reply_config` rewrites the status or the body of refusals',
    why: 'clients and caches no longer see that a request was refused; a refusal can even look like a success',
    fix: 'remove it, or limit its mappers to response flags other than UAEX',
    find: ({ manager }) => {
      const replies = manager.value.field('local_reply_config');
      return [
        ...ifPresent(replies.field('body_format'), 'replaces the body of every refusal'),
        ...replies.items('mappers').flatMap(at => when(rewritesRefusals(at), at, 'rewrites refusals')),
      ];
    },
  },
} as const satisfies Rules<GuardedManager>;

function rewritesRefusals(mapper: ProtoValue): boolean {
  const rewrites = ['status_code', 'body', 'body_format_override'].some(name => mapper.field(name).isPresent);
  return rewrites && mayBeRefusal(mapper.field('filter'));
}

/** Whether an envoy.config.accesslog.v3.AccessLogFilter matches a refusal by account-authz. */
function mayBeRefusal(filter: ProtoValue): boolean {
  const flags = filter.items('response_flag_filter', 'flags');
  if (flags.length > 0) return flags.some(flag => flag.text() === 'UAEX');
  const all = filter.items('and_filter', 'filters');
  if (all.length > 0) return all.every(mayBeRefusal);
  const any = filter.items('or_filter', 'filters');
  if (any.length > 0) return any.some(mayBeRefusal);
  const comparison = filter.field('status_code_filter', 'comparison');
  return !comparison.isPresent || refusalStatuses.some(status => isComparedTrue(comparison, status));
}

function isComparedTrue(comparison: ProtoValue, status: number): boolean {
  const value = comparison.field('value', 'default_value').number() ?? 0;
  const op = comparison.field('op').choice({ EQ: 0, GE: 1, LE: 2 }) ?? 0;
  // Another operator may be true.
  return [status === value, status >= value, status <= value][op] ?? true;
}
