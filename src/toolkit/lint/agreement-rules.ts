// Rules where the bootstrap must agree with the configuration: the paths, the hosts, the headers that Envoy sends, and those it lets change.
import { listWords } from '../../text/printable.ts';
import { domainOf } from '../envoy-settings/open-routes.ts';
import type { AuthzFilter, LintModel } from './lint-model.ts';
import { keptBefore, refusesUnderscores } from './mutations.ts';
import { readRegex, unmatched } from './name-pattern.ts';
import { otherSpellings } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Finding, ifAny, quoted, type Rules, unlessTrue, when } from './rule.ts';

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
  'other-host': {
    what: 'A virtual host with protected routes has a domain that is not in `account.hosts`, or none has the domain of an entry of it',
    why: 'account-authz or Envoy answers 404 for this host',
    fix: 'give these routes a virtual host with the domains of `account.hosts` alone (`*.api.example.com` for `:account_id.api.example.com`)',
    find: ({ guarded, isComplete, policy: { hosts } }) => {
      if (hosts === undefined) return [];
      const expected = new Set(hosts.map(domainOf));
      const domainsOf = (all: LintModel['guarded']) =>
        [...new Set(all.flatMap(({ manager }) => manager.protectedTargets.map(({ scopes }) => scopes[1])))].flatMap(
          host => host?.items('domains') ?? [],
        );
      const domains = new Set(domainsOf(guarded).map(nameIn));
      // A proxy that takes over the connections of a service, as Istio's does, has one virtual host for all hosts.
      const isSidecar = ({ manager }: LintModel['guarded'][number]) =>
        manager.protectedTargets.every(({ upstream }) => upstream?.keepsDestination === true);
      const missing = [...expected].filter(each => !includes(domains, each));
      const list = guarded[0]?.manager.routes.field('virtual_hosts');
      const says = `is no host of the configuration, which has ${listWords([...expected].map(quoted), 3)}`;
      return [
        ...domainsOf(guarded.filter(each => !isSidecar(each)))
          .filter(domain => !expected.has(nameIn(domain)))
          .map(at => ({ at, says })),
        ...(isComplete && domains.size > 0 ? ifAny(missing.map(quoted), list, 'have no protected routes for') : []),
      ];
    },
  },
} as const satisfies Rules<LintModel>;

/** Without its port. */
function nameIn(domain: ProtoValue): string {
  return (domain.text() ?? '').toLowerCase().replace(/:(?:\d+|\*)$/, '');
}

function includes(domains: ReadonlySet<string>, host: string): boolean {
  return domains.has(host) || [...host, ''].some((_, i) => domains.has(`*${host.slice(i)}`));
}

export const agreementRules = {
  'header-hidden': {
    what: 'A header that account-authz needs is not among `allowed_headers`, or hidden by `disallowed_headers`: `authorization` and each place of `token.from`, `account.headers` and their other spellings (x.account.id), `connection`, `x-request-id`, with `account.query` `content-type`, with a cookie or a subprotocol in `token.from` `origin`, and with a subprotocol `upgrade`',
    why: 'account-authz gets no token, cannot check the account that the service may act on, or cannot refuse what the service reads in another way; without x-request-id nobody can match the log lines',
    fix: 'add it to `allowed_headers`, other spellings with a `safe_regex` that has [^a-z0-9] in place of each hyphen, and write no `disallowed_headers`',
    find: check => ['allowed_headers', 'disallowed_headers'].flatMap(list => hiddenBy(check, list)),
  },
  'mutation-rules-missing': {
    what: '`decoder_header_mutation_rules` is missing',
    why: 'an answer may then set any header of the request, `:path` and `host` among them',
    fix: 'write `decoder_header_mutation_rules` with `disallow_all`, `disallow_is_error` and an `allow_expression` for the identity headers and authorization',
    find: ({ settings }) => when(!settings.field(mutationRules).isPresent, settings.field(mutationRules), 'is missing'),
  },
  'mutation-rules-wrong': {
    what: '`decoder_header_mutation_rules` does not allow a header that account-authz sets or removes, allows a change of the request line, of `host` or of the framing of the body, or has no `disallow_all: true` or `disallow_is_error: true`',
    why: 'Envoy answers 500 to every allowed request, one wrong answer moves a checked request to another path or host, or Envoy silently keeps what the client sent',
    fix: 'write `disallow_all: true`, `disallow_is_error: true`, and in `allow_expression` whole names: the identity headers, their spellings with _ and authorization',
    find: ({ settings, names }) => {
      const rules = settings.field(mutationRules);
      if (!rules.isPresent) return [];
      const expression = rules.field('allow_expression');
      const allows = expression.isPresent ? readRegex(expression) : () => false;
      const missing = names.mutated.filter(name => allows(name) === false);
      return [
        ...ifAny(missing, rules, 'does not allow'),
        ...ifAny(dangerousNames.filter(allows), expression, 'allows'),
        ...['disallow_all', 'disallow_is_error'].flatMap(name => unlessTrue(rules.field(name))),
      ];
    },
  },
} as const satisfies Rules<AuthzFilter>;

/** They only join logs and traces. */
const optional: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

function hiddenBy(check: AuthzFilter, list: string): readonly Finding[] {
  const { settings, policy, manager } = check;
  const at = settings.field(list);
  if (!at.isPresent) return [];
  const needed = policy.shownHeaders.filter(name => !optional.has(name));
  const spelled = policy.headers.filter(({ shown }) => shown === 'spellings').flatMap(({ names }) => names);
  const spellings = otherSpellings(spelled, !refusesUnderscores(manager));
  const others = new Set(unmatched(at, [...new Set([...needed, ...spellings])]));
  const isHiding = list === 'disallowed_headers';
  const isHidden = (name: string): boolean => others.has(name) !== isHiding;
  // A spelling that Envoy removes before the check need not be sent.
  const hidden = [...needed.filter(isHidden), ...keptBefore(check, spellings.filter(isHidden))];
  return ifAny(hidden, at, isHiding ? 'hides' : 'leaves out');
}
