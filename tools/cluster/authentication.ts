// The authentication service of a cluster run: a pod that publishes keys over HTTPS, and tokens signed with them here.
import { generateKeyPairSync } from 'node:crypto';
import { exportJWK, SignJWT } from 'jose';
import { testCertificate } from '../../lab/test-certificate.ts';
import { apply, kubectl, programPod, untilSettled } from './kubectl.ts';
import { bundle } from './load.ts';

export interface Authentication {
  readonly issuer: string;
  readonly jwksUrl: string;
  /** The authority of its certificate, PEM. */
  readonly authority: string;
  sign(claims: Readonly<Record<string, string>>): Promise<string>;
  /** 0: it is away. */
  scale(replicas: 0 | 1): Promise<void>;
}

export const audience = 'https://api.example.com/subscriptions';

export async function startAuthentication(namespace: string, image: string): Promise<Authentication> {
  const name = 'authentication';
  const host = `${name}.${namespace}.svc.cluster.local`;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'cluster', alg: 'ES256', use: 'sig' };
  const authority = testCertificate({ name: 'cluster run', isAuthority: true, addresses: [] });
  const { key, cert } = testCertificate({ name, dnsNames: [host], addresses: [], authority });
  const files = { 'jwks.json': JSON.stringify({ keys: [jwk] }), 'tls.key': key, 'tls.crt': cert };
  const program = await bundle('issuer-pod.ts');
  const service = { selector: { app: name }, ports: [{ port: 443, targetPort: 443 }] };
  await apply([
    ...programPod({ name, namespace, image, program, files }),
    { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: service },
  ]);
  await untilSettled(namespace, `app=${name}`, 1);
  const issuer = `https://${host}`;
  return {
    issuer,
    jwksUrl: `${issuer}/.well-known/jwks.json`,
    authority: authority.cert,
    sign: claims =>
      new SignJWT({ uid: 'user-alice', app: 'web-app', acc: 'acme', role: 'owner', iss: issuer, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'cluster', typ: 'JWT' })
        .setAudience(audience)
        .setIssuedAt(Math.floor(Date.now() / 1000) - 10)
        .setExpirationTime('4h')
        .sign(privateKey),
    async scale(replicas) {
      await kubectl(['scale', '-n', namespace, `deployment/${name}`, `--replicas=${replicas}`]);
      await untilSettled(namespace, `app=${name}`, replicas);
    },
  };
}
