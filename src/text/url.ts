// The parts of a URL that name a machine.
import { isLoopback } from './listen-address.ts';

/** An IP address without brackets, or a name. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The port of an https or http URL, the default one if the URL names none. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/** Whether the URL is served by this machine itself. */
export function isLoopbackUrl(url: string): boolean {
  return isLoopback(hostOf(new URL(url)));
}
