// Rules for `account.hosts`: the domains of the virtual hosts with protected routes must be these hosts.
import { listWords } from '../../text/printable.ts';
import { domainOf } from '../render/open-routes.ts';
import type { LintModel, ProtectedTarget } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { ifAny, quoted, type Rules } from './rule.ts';

export const hostRules = {
  'other-host': {
    what: 'A virtual host with protected routes has a domain that is not in `account.hosts`',
    why: 'account-authz answers 404 for every other host, and whoever reads Envoy believes that it is served',
    fix: 'give these routes a virtual host with the domains of `account.hosts` alone (`*.api.example.com` for `:account_id.api.example.com`)',
    find: ({ guarded, policy: { hosts } }) => {
      const expected = hosts?.map(domainOf) ?? [];
      return (hosts === undefined ? [] : guarded)
        .flatMap(({ manager, targets }) => (targets.every(isSidecarOf) ? [] : protectedDomains(manager)))
        .filter(domain => !expected.includes(nameIn(domain)))
        .map(at => ({
          at,
          says: `is no host of the configuration, which has ${listWords(expected.map(quoted), 3)}`,
        }));
    },
  },
  'host-missing': {
    what: 'No virtual host with protected routes has the domain of an entry of `account.hosts`',
    why: 'Envoy answers 404 for this host',
    fix: 'add the domain to the virtual host of the protected routes (`*.api.example.com` for `:account_id.api.example.com`)',
    find: ({ guarded, isComplete, policy: { hosts: entries } }) => {
      if (entries === undefined) return [];
      const known = guarded.flatMap(({ manager }) => protectedDomains(manager)).map(nameIn);
      const missing = entries.map(domainOf).filter(each => !known.some(domain => includes(domain, each)));
      const hosts = guarded[0]?.manager.routes.field('virtual_hosts');
      return isComplete && known.length > 0 ? ifAny(missing.map(quoted), hosts, 'have no protected routes for') : [];
    },
  },
} as const satisfies Rules<LintModel>;

/** A proxy that takes over the connections of a service, as Istio's does, has one virtual host for all hosts. */
function isSidecarOf({ upstream }: ProtectedTarget): boolean {
  return upstream?.keepsDestination === true;
}

function protectedDomains({ protectedTargets }: LintModel['managers'][number]): readonly ProtoValue[] {
  const hosts = new Set(protectedTargets.map(({ scopes }) => scopes[1]));
  return [...hosts].flatMap(host => host?.items('domains') ?? []);
}

/** Without its port. */
function nameIn(domain: ProtoValue): string {
  return (domain.text() ?? '').toLowerCase().replace(/:(?:\d+|\*)$/, '');
}

function includes(domain: string, host: string): boolean {
  return domain === '*' || domain === host || (domain.startsWith('*') && host.endsWith(domain.slice(1)));
}
