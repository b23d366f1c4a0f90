// Certificates of listen and of its clients, as a Secret has them, and calls that show one.
import { once } from 'node:events';
import * as tls from 'node:tls';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { checkRequest } from '../../lab/check-request.ts';
import { connect, reasonOf, type ServiceLab } from '../../lab/service.ts';
import { type TestCertificate, testCertificate } from '../../lab/test-certificate.ts';
import type { SecretMount } from '../support/secret-mount.ts';

export type Secret = Readonly<Record<'tls.crt' | 'tls.key' | 'ca.crt', string>>;

export const serverCa = testCertificate({ name: 'server ca', isAuthority: true });

export const clientCa = testCertificate({ name: 'client ca', isAuthority: true });

export const otherClientCa = testCertificate({ name: 'client ca', isAuthority: true });

export const envoy = testCertificate({ name: 'envoy', authority: clientCa });

export interface SecretOptions {
  readonly authority?: ReturnType<typeof testCertificate>;
  readonly clientAuthority?: TestCertificate;
  readonly addresses?: readonly string[];
}

export function secret({ authority = serverCa, clientAuthority = clientCa, addresses }: SecretOptions = {}): Secret {
  const dnsNames = ['localhost'];
  const own = testCertificate({ name: 'account-authz', dnsNames, authority, ...(addresses && { addresses }) });
  return { 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': clientAuthority.cert };
}

export function security(trusted: TestCertificate, own?: TestCertificate): ChannelCredentials {
  const [key, cert] = own === undefined ? [null, null] : [Buffer.from(own.key), Buffer.from(own.cert)];
  return credentials.createSsl(Buffer.from(trusted.cert), key, cert);
}

export function tlsConfig(mount: SecretMount, withClientCa = true) {
  return {
    certFile: mount.path('tls.crt'),
    keyFile: mount.path('tls.key'),
    ...(withClientCa ? { clientCaFile: mount.path('ca.crt') } : {}),
  };
}

// By name: grpc-js sends the target as SNI, and Node warns about an IP address there.
export function targetOf(lab: ServiceLab): string {
  return `localhost:${lab.service.ports.listen}`;
}

/** Makes one check over a new connection. Returns its outcome and how many checks the service logged. */
export async function attempt(lab: ServiceLab, channel: ChannelCredentials | undefined, target = targetOf(lab)) {
  const checks = (): number => lab.log.filter(line => line.msg === 'check').length;
  const before = checks();
  const client = connect(target, channel);
  const answer = await client
    .check(checkRequest({ headers: {} }))
    .then(reasonOf, (error: { code: number }) => `status ${error.code}`);
  client.close();
  return { answer, checks: checks() - before };
}

export const served = { answer: 'token_missing', checks: 1 };

export const refused = { answer: 'status 14', checks: 0 };

export async function openTls(lab: ServiceLab, options: tls.ConnectionOptions = {}): Promise<tls.TLSSocket> {
  const { cert, key } = envoy;
  const socket = tls.connect({
    host: '127.0.0.1',
    port: lab.service.ports.listen,
    ALPNProtocols: ['h2'],
    ca: serverCa.cert,
    cert,
    key,
    ...options,
  });
  await once(socket, 'secureConnect');
  return socket;
}
