// Rules where the bootstrap must agree with the configuration: the paths, the headers that Envoy sends, and those it lets change.
import type { AuthzFilter, LintModel } from './lint-model.ts';
import { isRemovedBefore, refusesUnderscores } from './mutations.ts';
import { type NamePattern, readRegex, readStringMatchers } from './name-pattern.ts';
import { otherSpellings } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
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
  'header-hidden': {
    what: 'A header that account-authz needs is not among `allowed_headers`, or hidden by `disallowed_headers`: `authorization` and each place of `token.from`, `account.headers` and their other spellings (x.account.id), `connection`, `x-request-id`, with `account.query` `content-type`, with a cookie in `token.from` `origin`',
    why: 'account-authz gets no token, cannot check the account that the service may act on, or cannot refuse what the service reads in another way; without x-request-id nobody can match the log lines',
    fix: 'add it to `allowed_headers`, other spellings with a `safe_regex` that has [^a-z0-9] in place of each hyphen, and write no `disallowed_headers`',
    find: check => ['allowed_headers', 'disallowed_headers'].flatMap(list => hiddenBy(check, list)),
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

/** They only join logs and traces. */
const optional: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

function hiddenBy(check: AuthzFilter, list: string): readonly Finding[] {
  const { settings, policy, manager } = check;
  const at = settings.field(list);
  if (!at.isPresent) return [];
  const matches = readStringMatchers(at);
  const isHiding = list === 'disallowed_headers';
  const isHidden = (name: string): boolean => matches(name) === isHiding;
  const needed = policy.shownHeaders.filter(name => !optional.has(name));
  const spelled = policy.headers.filter(({ shown }) => shown === 'spellings').flatMap(({ names }) => names);
  const hiddenSpellings = otherSpellings(spelled, !refusesUnderscores(manager)).filter(isHidden);
  // A spelling that Envoy removes before the check need not be sent.
  const hidden = [...needed.filter(isHidden), ...hiddenSpellings.filter(name => !isRemovedBefore(check, name))];
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
