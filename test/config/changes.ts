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
