// The hosts of planned requests: the gateway's own, and one for each other entry of `account.hosts`.
import { type HostEntry, isAccountLabel, toHostEntries } from '../../authz/places/host-place.ts';
import type { Config } from '../../config/schema.ts';

type HostSettings = Pick<Config['account'], 'hosts' | 'parameter'>;

/** Values of the Host header. */
export interface PlannedHosts {
  /** The gateway's own, unless that names an account: then one that names this account, or none. */
  forAccount(account: string): string;
  /** One for each entry but the gateway's. */
  readonly others: readonly string[];
}

/** The entry of account.hosts for the gateway, or undefined if none matches. */
export function hostEntryOf({ hosts = [], parameter }: HostSettings, hostname: string): HostEntry | undefined {
  const parent = hostname.slice(hostname.indexOf('.'));
  const entries = toHostEntries(hosts, parameter);
  return (
    entries.find(entry => entry.kind === 'literal' && entry.host === hostname) ??
    entries.find(entry => entry.kind === 'account' && entry.parent === parent)
  );
}

/** `gateway` is its host and port, `example` a label that stands for an account. */
export function planHosts(account: HostSettings, gateway: string, example: string): PlannedHosts {
  const port = /:[0-9]+$/.exec(gateway)?.[0] ?? '';
  const own = hostEntryOf(account, gateway.slice(0, gateway.length - port.length).toLowerCase());
  const hostOf = (entry: HostEntry): string =>
    `${entry.kind === 'literal' ? entry.host : `${example}${entry.parent}`}${port}`;
  const entries = toHostEntries(account.hosts ?? [], account.parameter);
  return {
    forAccount(name) {
      if (own?.kind !== 'account') return gateway;
      if (isAccountLabel(name)) return `${name}${own.parent}${port}`;
      const literal = entries.find(({ kind }) => kind === 'literal');
      return literal === undefined ? gateway : hostOf(literal);
    },
    others: entries.map(hostOf).filter(host => own === undefined || host !== hostOf(own)),
  };
}
