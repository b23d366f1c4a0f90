// What the tables of configuration changes share.
import { writeFixture } from '../../lab/config-file.ts';
import { testCertificate } from '../../lab/test-certificate.ts';

/** New values by path, as `changed` of config-file.ts takes them. */
export type Changes = Readonly<Record<string, unknown>>;

export const long = (length: number) => 'a'.repeat(length);
export const socket = (bytes: number) => `unix:/${long(bytes - 1)}`;
export const tenants = (name: string) => ({ path: `/a/:${name}/*`, accountInPath: false });

const own = testCertificate();
export const tls = { certFile: writeFixture('tls.crt', own.cert), keyFile: writeFixture('tls.key', own.key) };

/** A change for each value, at the path of its place. The list of an item has that item alone. */
export function valuesOf(
  rows: readonly (readonly [place: string, values: readonly unknown[]])[],
): (readonly [string, Changes])[] {
  return rows.flatMap(([place, values]) => {
    const isItem = place.endsWith('[0]');
    const path = place.replace(/\[0\]$/, '').replaceAll(/\[(\d+)\]/g, '.$1');
    return values.map(value => [place, { [path]: isItem ? [value] : value }] as const);
  });
}
