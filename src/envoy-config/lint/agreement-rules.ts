// Rules where the bootstrap must agree with the configuration: the paths, the headers that Envoy sends, and those it lets change.
import type { AuthzFilter, LintModel } from './lint-model.ts';
import { type NamePattern, readRegex, readStringMatchers } from './name-pattern.ts';
import { otherSpellings } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import { readRemovals, refusesUnderscores } from './removed-names.ts';
import { type Finding, ifAny, ifMissing, quoted, type Rules, unlessTrue } from './rule.ts';

const mutationRules = 'decoder_header_mutation_rules';

// The headers that define a request; account-authz never changes them.
const requestLine = [':path', ':method', ':authority', ':scheme', 'host'];
const dangerousNames = [...requestLine, 'content-length', 'transfer-encoding', 'connection'];

export const reachRules = {
  'unreachable-route': {
    what: 'No Envoy route leads to the service for a route of the configuration',
    why: 'Envoy answers 404 there, often because the two files spell the path differently',
    fix: 'add an Envoy route with the literal start of its path as `path_separated_prefix`, before the route that refuses the other paths',
    find: ({ unreachable, guarded: [first] }) =>
      ifAny(
        unreachable.map(({ text }) => quoted(text)),
        first?.manager.routes.field('virtual_hosts'),
        'have no route to the service for',
      ),
  },
} as const satisfies Rules<LintModel>;

export const agreementRules = {
  'account-header-hidden': {
    what: 'A header of `account.headers`, or another spelling of it (x.account.id), is not among `allowed_headers`',
    why: 'account-authz does not get it and cannot check the account in it, and the service may act on that account',
    fix: 'add it to `allowed_headers`, and its other spellings with a `safe_regex` that has [^a-z0-9] in place of each hyphen',
    find: check => hiddenBy(check, 'allowed_headers', check.names.account, true),
  },
  'authorization-hidden': {
    what: '`authorization` is not among `allowed_headers`',
    why: 'account-authz gets no token and refuses every request',
    fix: 'add `- exact: authorization` to `allowed_headers`',
    find: check => hiddenBy(check, 'allowed_headers', ['authorization']),
  },
  'ambiguity-hidden': {
    what: '`connection`, or with `account.query` also `content-type`, is not among `allowed_headers`',
    why: 'account-authz refuses a `connection` by which the service loses an identity header, and a charset by which it reads other parameters, but only if it gets them',
    fix: 'add `- exact: connection` and `- exact: content-type` to `allowed_headers`',
    find: check => hiddenBy(check, 'allowed_headers', ambiguous(check)),
  },
  'request-id-hidden': {
    what: '`x-request-id` is not among `allowed_headers`',
    why: 'account-authz generates an id for each refusal, and the log of Envoy has another one: nobody can match their log lines',
    fix: 'add `- exact: x-request-id` to `allowed_headers`',
    find: check => hiddenBy(check, 'allowed_headers', ['x-request-id']),
  },
  'disallowed-headers': {
    what: '`disallowed_headers` hides an account header, `authorization`, `x-request-id`, `connection` or, with `account.query`, `content-type`',
    why: 'it takes precedence over `allowed_headers`, and account-authz cannot check a header that it does not get',
    fix: 'remove it from `disallowed_headers`',
    find: check =>
      hiddenBy(
        check,
        'disallowed_headers',
        [...check.names.account, 'authorization', 'x-request-id', ...ambiguous(check)],
        true,
      ),
  },
  'mutation-rules-missing': {
    what: '`decoder_header_mutation_rules` is missing',
    why: 'an answer may then set any header of the request, `:path` and `host` among them',
    fix: 'write `decoder_header_mutation_rules` with `disallow_all`, `disallow_is_error` and an `allow_expression` for the identity headers and authorization',
    find: ({ settings }) => ifMissing(settings.field(mutationRules)),
  },
  'mutation-rules-too-narrow': {
    what: '`decoder_header_mutation_rules` does not allow a header that account-authz sets or removes',
    why: 'Envoy then answers 500 to every allowed request, or silently keeps the value that the client sent',
    fix: 'cover the identity headers, their spellings with _ and authorization in `allow_expression`; it must match whole names',
    find: withMutationRules((rules, { names }) =>
      ifAny(byMutability(rules, false, names.mutated), rules, 'does not allow'),
    ),
  },
  'mutation-rules-too-wide': {
    what: '`decoder_header_mutation_rules` allows a change of the request line, of `host` or of the framing of the body',
    why: 'one wrong answer moves a checked request to another path or host, or breaks the connection to the service',
    fix: 'write `disallow_all: true` and allow only the identity headers and authorization',
    find: withMutationRules(rules => ifAny(byMutability(rules, true, dangerousNames), rules, 'allows')),
  },
  'mutation-not-error': {
    what: '`disallow_is_error` of `decoder_header_mutation_rules` is missing or false',
    why: 'Envoy silently skips a change that the rules do not allow: the service gets a request without identity headers, or with forged ones',
    fix: 'write `disallow_is_error: true`',
    find: withMutationRules(rules => unlessTrue(rules.field('disallow_is_error'))),
  },
} as const satisfies Rules<AuthzFilter>;

/** What account-authz must be shown to refuse a request that the service could read in another way. */
function ambiguous({ policy }: AuthzFilter): readonly string[] {
  return policy.shownHeaders.filter(name => ['connection', 'content-type'].includes(name));
}

function hiddenBy(
  check: AuthzFilter,
  list: 'allowed_headers' | 'disallowed_headers',
  headers: readonly string[],
  withAccountSpellings = false,
): readonly Finding[] {
  const { settings, names, manager } = check;
  const at = settings.field(list);
  if (!at.isPresent) return [];
  const matches = readStringMatchers(at);
  const isHiding = list === 'disallowed_headers';
  const isHidden = (name: string): boolean => matches(name) === isHiding;
  const spellings = withAccountSpellings ? otherSpellings(names.account, !refusesUnderscores(manager)) : [];
  const hiddenSpellings = spellings.filter(isHidden);
  // A spelling that Envoy removes before the check need not be sent.
  const removes = hiddenSpellings.length === 0 ? () => true : readRemovals(manager, [check]);
  const hidden = [...headers.filter(isHidden), ...hiddenSpellings.filter(name => !removes(name))];
  return ifAny(hidden, at, isHiding ? 'hides' : 'leaves out');
}

function withMutationRules(find: (rules: ProtoValue, check: AuthzFilter) => readonly Finding[]) {
  return (check: AuthzFilter): readonly Finding[] => {
    const rules = check.settings.field(mutationRules);
    return rules.isPresent ? find(rules, check) : [];
  };
}

function byMutability(rules: ProtoValue, isAllowed: boolean, headers: readonly string[]): readonly string[] {
  const allows = readMutationRules(rules);
  return headers.filter(name => allows(name) === isAllowed);
}

/** Whether envoy.config.common.mutation_rules.v3.HeaderMutationRules allow a header to be set; undefined if they cannot be judged. */
function readMutationRules(rules: ProtoValue): NamePattern {
  const isOn = (name: string) => rules.field(name).flag() === true;
  const expression = (name: string): NamePattern =>
    rules.field(name).isPresent ? readRegex(rules.field(name)) : () => false;
  const [disallowed, allowed] = [expression('disallow_expression'), expression('allow_expression')];
  const [allRouting, envoy] = [isOn('allow_all_routing'), isOn('allow_envoy')];
  const [noSystem, none] = [isOn('disallow_system'), isOn('disallow_all')];
  return name => {
    const isDisallowed = disallowed(name);
    const isAllowed = allowed(name);
    if (isDisallowed === true) return false;
    if (isDisallowed === undefined || isAllowed === undefined) return undefined;
    if (isAllowed) return true;
    if (none || (noSystem && name.startsWith(':'))) return false;
    if ([':authority', ':scheme', ':method', 'host'].includes(name)) return allRouting;
    return envoy || !name.startsWith('x-envoy-');
  };
}
