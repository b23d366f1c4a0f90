// Envoy's half of each place where a request may name an account: the headers that Envoy shows or removes for it, the hosts that Envoy must
// match, and how a request names an account there, for verify and explain.
import { headerPlace } from '../authz/places/header-place.ts';
import { type HostEntry, hostPlace, toHostEntries } from '../authz/places/host-place.ts';
import type { AccountPlace } from '../authz/places/place.ts';
import { type AccountSettings, toAccountGrammar } from '../authz/places/places.ts';
import { queryPlace } from '../authz/places/query-place.ts';
import type { HeaderRule } from './header-rule.ts';

interface EnvoyPlace {
  readonly headers?: (account: AccountSettings) => readonly HeaderRule[];
  readonly entries: (account: AccountSettings) => readonly PlaceEntry[];
}

/** One entry of the configuration, or the path. */
export interface PlaceEntry {
  /** `the header x-account-id`. */
  readonly name: string;
  /** What account-authz does not see where the API answers a request that names another account there. */
  readonly unseen: string;
  /** Reads this entry alone; undefined for the path, which each route reads. */
  readonly place: AccountPlace | undefined;
  /** How a request names the account there; undefined where its route has no account in the path. */
  readonly naming: (request: AddressableRequest, account: string) => Partial<AddressableRequest> | undefined;
}

export interface AddressableRequest {
  readonly target: string;
  /** With its port. */
  readonly host: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** A target of the same route for another account; undefined where its path has none. */
  readonly targetFor: ((account: string) => string) | undefined;
}

/** Headers by which an upstream acts on another host than the checked one. */
export const hostOverrides = {
  names: ['forwarded', 'x-forwarded-host', 'x-forwarded-server', 'x-host', 'x-original-host', 'x-http-host-override'],
  kind: 'override',
  why: 'an upstream takes another host from it, and with it another account',
  removed: 'everywhere',
  inTrailers: 'removed',
  allow: 'removes',
} as const satisfies HeaderRule;

const places: readonly EnvoyPlace[] = [
  {
    entries: () => [
      {
        name: 'the path',
        unseen: 'the path that the API sees',
        place: undefined,
        naming: ({ targetFor }, account) => targetFor && { target: targetFor(account) },
      },
    ],
  },
  {
    headers: ({ headers }) =>
      headers.map(name => ({
        names: [name.toLowerCase()],
        kind: 'account',
        why: 'names an account',
        shown: 'spellings',
        removed: 'public',
        inTrailers: 'removed',
      })),
    entries: account =>
      account.headers.map(name => ({
        name: `the header ${name}`,
        unseen: `the account header ${name}, which Envoy or a proxy does not show it`,
        place: headerPlace([name], toAccountGrammar(account)),
        naming: ({ headers }, value) => ({ headers: [...headers, [name, value]] }),
      })),
  },
  {
    headers: ({ query }) =>
      query.length === 0
        ? []
        : [
            {
              names: ['content-type'],
              kind: 'context',
              why: 'some servers read a query in its charset',
              shown: 'exactly',
            },
          ],
    entries: account =>
      account.query.map(name => ({
        name: `the parameter ${name}`,
        unseen: `the query parameter ${name}`,
        place: queryPlace([name], toAccountGrammar(account)),
        naming: ({ target }, value) => ({ target: `${target}${target.includes('?') ? '&' : '?'}${name}=${value}` }),
      })),
  },
  {
    headers: ({ hosts }) => (hosts === undefined ? [] : [hostOverrides]),
    entries: account =>
      hostEntries(account).flatMap(entry =>
        entry.kind === 'literal'
          ? []
          : {
              name: `the host :${account.parameter}${entry.parent}`,
              unseen: 'the host that the client asked for',
              place: hostPlace(account.hosts, account.parameter, toAccountGrammar(account)),
              naming: ({ host }, name) => ({ host: `${name}${entry.parent}${/:[0-9]+$/.exec(host)?.[0] ?? ''}` }),
            },
      ),
  },
];

export function placeHeaders(account: AccountSettings): readonly HeaderRule[] {
  return places.flatMap(place => place.headers?.(account) ?? []);
}

export function placeEntries(account: AccountSettings): readonly PlaceEntry[] {
  return places.flatMap(place => place.entries(account));
}

/** The hosts that Envoy must match; none: any. */
export function hostEntries({
  hosts = [],
  parameter,
}: Pick<AccountSettings, 'hosts' | 'parameter'>): readonly HostEntry[] {
  return toHostEntries(hosts, parameter);
}
