// Rules for the connection manager before the check: normalized paths, no forged headers, no rewritten refusals.
import type { GuardedManager } from './lint-model.ts';
import type { ConnectionManager } from './listener.ts';
import { otherSpellings } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import { readRemovals, readTrailerRemovals, refusesUnderscores } from './removed-names.ts';
import { type Finding, ifAny, ifPresent, ifTrue, type Rules, when } from './rule.ts';

const refusalStatuses = [400, 401, 403, 404, 503] as const;

export const requestRules = {
  'path-parameters': {
    what: '`ignore_path_parameters_in_path_matching` is true',
    why: 'Envoy chooses the route by a path other than the one that is checked and served',
    fix: 'remove it',
    find: ({ manager }) => ifTrue(manager.routes.field('ignore_path_parameters_in_path_matching')),
  },
  'owned-headers-kept': {
    what: 'Envoy does not remove headers under the prefix `identityHeaders` before the check',
    why: 'a client can claim any identity on unchecked routes, and send other headers under the prefix on checked ones',
    fix: 'remove the whole prefix in `early_header_mutation_extensions`, with `remove_on_match`',
    find: each => {
      const { identity, otherPrefixedNames, lookAlikes } = each.names;
      return kept(each, [...identity, ...otherPrefixedNames, ...(refusesUnderscores(each.manager) ? [] : lookAlikes)]);
    },
  },
  'override-headers-kept': {
    what: 'Headers that override path or method (x-original-url, x-rewrite-url, x-script-name, script-name, x-forwarded-prefix, x-http-method-override, x-http-method, x-method-override), with `account.hosts` also those that override the host (x-forwarded-host, forwarded, …), or other spellings of them (x.http.method), are not removed before the check',
    why: 'frameworks use them in place of the checked path, method and host, and interfaces such as CGI and WSGI read a dot and other signs as a hyphen',
    fix: 'remove each of them in `early_header_mutation_extensions`, with `remove_on_match` and [^a-z0-9] in place of each hyphen',
    find: each => kept(each, withSpellings(each.names.overrides, each.manager)),
  },
  'trailers-kept': {
    what: 'Identity headers, headers of `account.headers`, the token, or headers that override path, method or host are not removed from request trailers',
    why: 'a service that Envoy calls over HTTP/2, or with `enable_trailers`, gets the trailers unchecked, and some servers merge them into the headers',
    fix: 'add a header_mutation filter before ext_authz, with a `remove_on_match` for each of them in `request_trailers_mutations`',
    find: ({ names, manager, checks }) =>
      checks.flatMap(check => {
        const removes = readTrailerRemovals(check);
        const held = withSpellings([...names.account, ...names.overrides, ...names.tokens], manager);
        const left = [...names.identity, ...names.otherPrefixedNames, ...held].filter(name => !removes(name));
        return ifAny(left, check.chain.value, 'keeps', ' as a trailer');
      }),
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

function kept({ manager, checks }: GuardedManager, headers: readonly string[]): readonly Finding[] {
  const removes = readRemovals(manager, checks);
  const left = headers.filter(name => !removes(name));
  return ifAny(left, manager.value.field('early_header_mutation_extensions'), 'keeps', ' as a client sent it');
}

function withSpellings(headers: readonly string[], manager: ConnectionManager): readonly string[] {
  return [...headers, ...otherSpellings(headers, !refusesUnderscores(manager))];
}

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
