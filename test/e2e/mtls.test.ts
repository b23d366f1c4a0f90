// Mutual TLS between a real Envoy and the built product.
import { expect } from 'chai';
import { isMap, isSeq } from 'yaml';
import { type EnvoyOptions, envoyVersions, startEnvoy } from '../../lab/envoy.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { until } from '../../lab/until.ts';
import { mountSecret, type SecretMount } from '../support/secret-mount.ts';
import { bearer, installEnvoys, type Lab, onlyRequestOf, reasonOf, startLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1/items';
const serverCa = testCertificate({ name: 'server ca', isAuthority: true });
const clientCa = testCertificate({ name: 'client ca', isAuthority: true });
const otherCa = testCertificate({ name: 'client ca', isAuthority: true });
const serverName = 'account-authz.authz.svc';

function serviceSecret() {
  const own = testCertificate({ name: 'account-authz', dnsNames: [serverName], authority: serverCa });
  return { 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': clientCa.cert };
}

/** The transport socket of Envoy's cluster, with a client certificate if given. */
function transportSocket(files: SecretMount, trusted: string, own?: string): unknown {
  const file = (name: string): unknown => ({ filename: files.path(name) });
  const san = { san_type: 'DNS', matcher: { exact: serverName } };
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      sni: serverName,
      common_tls_context: {
        validation_context: { trusted_ca: file(trusted), match_typed_subject_alt_names: [san] },
        ...(own && { tls_certificates: [{ certificate_chain: file(`${own}.crt`), private_key: file(`${own}.key`) }] }),
      },
    },
  };
}

function withTransportSocket(socket: unknown): NonNullable<EnvoyOptions['edit']> {
  return bootstrap => {
    const clusters = bootstrap.getIn(['static_resources', 'clusters']);
    const cluster = isSeq(clusters)
      ? clusters.items.find(item => isMap(item) && item.get('name') === 'account-authz')
      : undefined;
    if (!isMap(cluster)) throw new Error('envoy.yaml has no cluster account-authz');
    cluster.set('transport_socket', bootstrap.createNode(socket));
  };
}

describe('mTLS between Envoy and the service', () => {
  let service: SecretMount;
  let envoyFiles: SecretMount;
  let lab: Lab;
  let owner: string;

  before(async () => {
    await installEnvoys();
    const good = testCertificate({ name: 'envoy', authority: clientCa });
    const foreign = testCertificate({ name: 'envoy', authority: otherCa });
    service = await mountSecret(serviceSecret());
    envoyFiles = await mountSecret({
      'good.crt': good.cert,
      'good.key': good.key,
      'foreign.crt': foreign.cert,
      'foreign.key': foreign.key,
      'server-ca.crt': serverCa.cert,
      'other-ca.crt': otherCa.cert,
    });
    const [certFile, keyFile, clientCaFile] = ['tls.crt', 'tls.key', 'ca.crt'].map(service.path);
    lab = await startLab({ tls: { certFile, keyFile, clientCaFile } });
    owner = await bearer();
  });
  after(async () => {
    await lab.stop();
    await Promise.all([service.remove(), envoyFiles.remove()]);
  });
  beforeEach(() => lab.upstream.clear());

  const start = (edit: EnvoyOptions['edit'], version?: string) =>
    startEnvoy({
      upstream: lab.upstream.port,
      authz: lab.service.address,
      ...(edit && { edit }),
      ...(version && { version }),
    });
  const send = (port: number, lines: readonly string[] = [`Authorization: ${owner}`]) =>
    exchange(port, requestBytes('GET', path, lines));

  for (const version of envoyVersions) {
    it(`Envoy ${version} is served, also while the certificate of the service is replaced`, async () => {
      const socket = transportSocket(envoyFiles, 'server-ca.crt', 'good');
      const envoy = await start(withTransportSocket(socket), version);
      expect((await send(envoy.port)).status).to.equal(200);
      expect(onlyRequestOf(lab.upstream).path).to.equal(path);
      expect(reasonOf(await send(envoy.port, []))).to.equal('token_missing');

      const reloads = () => lab.service.log().filter(({ msg }) => msg === 'tls files reloaded').length;
      const before = reloads();
      await service.update(serviceSecret());
      await until(() => reloads() === before + 1);
      const next = await start(withTransportSocket(socket), version);
      for (const { port } of [envoy, next]) expect((await send(port)).status).to.equal(200);
      await Promise.all([envoy.stop(), next.stop()]);
    });
  }

  const refused: readonly (readonly [name: string, edit: () => EnvoyOptions['edit']])[] = [
    ['speaks no TLS', () => undefined],
    ['has no certificate', () => withTransportSocket(transportSocket(envoyFiles, 'server-ca.crt'))],
    [
      'has a certificate of another authority',
      () => withTransportSocket(transportSocket(envoyFiles, 'server-ca.crt', 'foreign')),
    ],
    ['trusts another authority', () => withTransportSocket(transportSocket(envoyFiles, 'other-ca.crt', 'good'))],
  ];
  for (const [name, edit] of refused) {
    it(`an Envoy that ${name} gets no answer, and its requests end in 503`, async () => {
      const checks = () => lab.service.log().filter(({ msg }) => msg === 'check').length;
      const before = checks();
      const envoy = await start(edit());
      const answer = await send(envoy.port);
      expect({ status: answer.status, reason: reasonOf(answer) }).to.deep.equal({ status: 503, reason: undefined });
      expect(lab.upstream.requests).to.deep.equal([]);
      expect(checks()).to.equal(before);
      await envoy.stop();
    });
  }
});
