// The hosts that requests may be for. The first label of a host may name the account, as in `acme.api.example.com`.
import type { Account, AccountGrammar } from '../principal.ts';
import { type Refusal, refusal } from '../refusal.ts';
import type { RequestFacts } from '../request-facts.ts';
import type { NotationProblem } from '../route-template.ts';
import type { AccountPlace } from './place.ts';

/** One entry of the configuration. Names are in lower case. */
export type HostEntry =
  | { readonly kind: 'literal'; readonly host: string }
  /** `parent` is what follows the label of the account, with its leading dot. */
  | { readonly kind: 'account'; readonly parent: string };

interface Hosts {
  readonly literals: ReadonlySet<string>;
  readonly parents: ReadonlySet<string>;
  /** `account.case` is lower. */
  readonly lower: boolean;
}

// RFC 1123 section 2.1.
const hostGrammar = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const maxHostLength = 253;

/** `parameter` is the name by which the configuration writes the account. */
export function parseHostEntry(text: string, parameter: string): HostEntry | NotationProblem {
  const label = `:${parameter}`;
  const namesAccount = text.startsWith(`${label}.`);
  const host = (namesAccount ? text.slice(label.length + 1) : text).toLowerCase();
  if (host.length > maxHostLength || !hostGrammar.test(host)) {
    const rule = 'must be a host name without port and without a dot at the end';
    return { kind: 'problem', problem: `${rule}, whose first label may be ${label}` };
  }
  return namesAccount ? { kind: 'account', parent: `.${host}` } : { kind: 'literal', host };
}

/** Throws on an invalid entry, which the validation of a configuration reports. */
export function toHostEntries(texts: readonly string[], parameter: string): readonly HostEntry[] {
  return texts.map(text => {
    const entry = parseHostEntry(text, parameter);
    if (entry.kind === 'problem') throw new Error(`the configuration has an invalid host: it ${entry.problem}`);
    return entry;
  });
}

/** Without `texts` any host is good. Throws as `toHostEntries`. */
export function hostPlace(
  texts: readonly string[] | undefined,
  parameter: string,
  { lower }: AccountGrammar,
): AccountPlace {
  const entries = texts && toHostEntries(texts, parameter);
  const hosts = entries && {
    literals: new Set(entries.flatMap(entry => (entry.kind === 'literal' ? entry.host : []))),
    parents: new Set(entries.flatMap(entry => (entry.kind === 'account' ? entry.parent : []))),
    lower,
  };
  return { read: ({ facts }) => accountsInHost(hosts, facts) };
}

/**
 * The account in the host of the request, which is compared without its port; none where a literal entry matches, which wins over one with
 * the account. `hosts` is undefined where the configuration has none: then any host is good.
 */
function accountsInHost(
  hosts: Hosts | undefined,
  facts: Pick<RequestFacts, 'host' | 'headers'>,
): readonly Account[] | Refusal {
  const { host: attribute, headers } = facts;
  const others = hosts === undefined && attribute !== '' ? [] : hostHeaders(headers);
  const first = attribute === '' ? others[0] : attribute;
  const host = first?.replace(/:[0-9]{0,5}$/, '');
  // Without hosts, a message that has no host at all is good too: Envoy sends one whenever the client did.
  if (host === '' || (host === undefined && hosts !== undefined)) return refusal('request_invalid', 'an empty host');
  if (host !== undefined && host.length > maxHostLength)
    return refusal('request_invalid', `a host longer than ${maxHostLength} characters`);
  if (hosts === undefined || host === undefined) return [];
  if (others.some(each => each !== first)) return refusal('request_invalid', 'the host contradicts :authority');
  if (host.endsWith('.')) return refusal('request_invalid', 'a host with a dot at its end');
  // ASCII letters alone (RFC 4343 section 3): a Kelvin sign is no k, and no letter changes its length.
  const folded = host.replace(/[A-Z]+/g, letters => letters.toLowerCase());
  if (hosts.literals.has(folded)) return [];
  const dot = host.indexOf('.');
  if (dot === -1 || !hosts.parents.has(folded.slice(dot))) return refusal('route_unknown', 'no host matches');
  const label = (hosts.lower ? folded : host).slice(0, dot);
  return isAccountLabel(label) ? [label] : refusal('request_invalid', 'an account label outside the grammar');
}

// Envoy shows the host as an attribute and as `:authority`; HTTP/2 allows a `host` beside it (RFC 9113 section 8.3.1).
function hostHeaders(headers: RequestFacts['headers']): readonly string[] {
  return [...(headers.get(':authority') ?? []), ...(headers.get('host') ?? [])];
}

/** Lower case only: host names ignore case, accounts do not, so another spelling would be another account without account.case: lower. */
export function isAccountLabel(label: string): label is Account {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label);
}
