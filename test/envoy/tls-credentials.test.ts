// TLS on listen: protocols, cipher suites and client certificates.
import { once } from 'node:events';
import type { ChannelCredentials } from '@grpc/grpc-js';
import { expect } from 'chai';
import { secrets } from '../../lab/secrets.ts';
import { type ServiceLab, serviceConfig, startServiceLab, startTestService } from '../../lab/service.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTlsCredentials, type TlsCredentials, type TlsSource } from '../../src/envoy/tls-credentials.ts';
import type { WatchFiles, WatchOutcome } from '../../src/files/file-watch.ts';
import type { TlsMaterial } from '../../src/files/tls-files.ts';
import { mountSecret, type SecretMount } from '../support/secret-mount.ts';
import {
  attempt,
  clientCa,
  envoy,
  openTls,
  otherClientCa,
  refused,
  secret,
  security,
  served,
  serverCa,
  tlsConfig,
} from './tls-secret.ts';

describe('TLS on listen', () => {
  describe('with a client CA', () => {
    let mount: SecretMount;
    let lab: ServiceLab;
    before(async () => {
      mount = await mountSecret({
        ...secret(),
        'envoy.crt': envoy.cert,
        'envoy.key': envoy.key,
        'server-ca.crt': serverCa.cert,
      });
      lab = await startServiceLab({ config: { tls: tlsConfig(mount) } });
    });
    after(() => lab.stop());

    it('serves a caller with a certificate of that CA', async () => {
      expect(await attempt(lab, security(serverCa, envoy))).to.deep.equal(served);
    });

    const signed = { name: 'envoy', authority: clientCa };
    const callers: readonly (readonly [name: string, security: ChannelCredentials | undefined])[] = [
      ['a caller without TLS', undefined],
      ['a caller that trusts another CA', security(clientCa, envoy)],
      ['a caller without a certificate', security(serverCa)],
      ['one of another CA of that name', security(serverCa, testCertificate({ ...signed, authority: otherClientCa }))],
      ['a certificate of the CA of the service', security(serverCa, testCertificate({ authority: serverCa }))],
      ['a self-signed certificate', security(serverCa, testCertificate({ name: 'envoy' }))],
      ['an expired one', security(serverCa, testCertificate({ ...signed, validFromHours: -48 }))],
      ['one not yet valid', security(serverCa, testCertificate({ ...signed, validFromHours: 1 }))],
    ];
    for (const [name, channel] of callers) {
      it(`refuses ${name} in the handshake`, async () => {
        expect(await attempt(lab, channel)).to.deep.equal(refused);
      });
    }

    for (const [version, options] of [
      ['TLSv1.3', {}],
      ['TLSv1.2', { maxVersion: 'TLSv1.2' }],
    ] as const) {
      it(`supports ${version} without session resumption`, async () => {
        const first = await openTls(lab, options);
        const sessions: Buffer[] = [];
        first.on('session', session => sessions.push(session));
        expect(first.getProtocol()).to.equal(version);
        // Wait for the HTTP/2 SETTINGS frame: TLS 1.3 sends session tickets before it.
        await once(first, 'data');
        const session = sessions.at(-1) ?? first.getSession();
        first.destroy();
        const second = await openTls(lab, { ...options, ...(session === undefined ? {} : { session }) });
        expect(second.isSessionReused()).to.equal(false);
        second.destroy();
      });
    }

    it('refuses TLS 1.1', async () => {
      const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
      const outcome = await openTls(lab, old).catch((error: NodeJS.ErrnoException) => error.code);
      expect(outcome).to.equal('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
    });

    it('accepts of TLS 1.2 only ephemeral key exchange with an AEAD cipher', async () => {
      const accepted = async (ciphers: string): Promise<boolean> => {
        const outcome = await openTls(lab, { maxVersion: 'TLSv1.2', ciphers }).catch(() => undefined);
        outcome?.destroy();
        return outcome !== undefined;
      };
      // The key of the lab's certificate is an EC key, so those for RSA keys are left out.
      const modern = ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map(end => `ECDHE-ECDSA-${end}`);
      const forbidden = [
        'ECDHE-ECDSA-AES128-SHA',
        'ECDHE-ECDSA-AES128-SHA256',
        'ECDHE-ECDSA-AES256-SHA384',
        'ECDHE-ECDSA-AES128-CCM',
      ];
      for (const cipher of modern) expect(await accepted(cipher), cipher).to.equal(true);
      for (const cipher of forbidden) expect(await accepted(cipher), cipher).to.equal(false);
    });

    it('refuses a renegotiation', async () => {
      const socket = await openTls(lab, { maxVersion: 'TLSv1.2' });
      const outcome = await new Promise<Error | null>(resolve => {
        socket.once('error', resolve);
        socket.once('close', () => resolve(new Error('closed')));
        socket.renegotiate({}, resolve);
      });
      expect(outcome).to.be.instanceOf(Error);
      socket.destroy();
    });
  });

  it('requests no client certificate without a client CA', async () => {
    const mount = await mountSecret(secret());
    const lab = await startServiceLab({ config: { tls: tlsConfig(mount, false) } });
    expect(await attempt(lab, security(serverCa))).to.deep.equal(served);
    expect(await attempt(lab, undefined)).to.deep.equal(refused);
    await lab.stop();
  });

  it('prevents the start when a file is unusable', async () => {
    const mount = await mountSecret({ ...secret(), 'tls.key': envoy.key, 'ca.crt': '' });
    const config = serviceConfig(
      { url: 'http://127.0.0.1:9', jwksUrl: 'http://127.0.0.1:9/jwks' },
      { tls: tlsConfig(mount) },
    );
    const outcome = await startTestService(config, line => secrets.show('log', line)).catch(
      (error: Error) => error.message,
    );
    secrets.show('standard error', String(outcome));
    expect(outcome).to.equal(
      'tls.clientCaFile: the file must contain a PEM certificate; tls.keyFile: the private key must belong to the first certificate of the certificate file',
    );
  });
});

describe('TLS credentials', () => {
  type Loaded = Awaited<ReturnType<TlsSource['load']>>;
  const own = testCertificate();
  const material = (): TlsMaterial => ({ ...own, kind: 'tls material', clientCa: undefined, notAfter: new Date() });
  const problem = (text: string): Loaded => ({ kind: 'problem', problem: text });

  let loads: number;
  let load: () => Loaded | Promise<Loaded>;
  let reloaded: TlsMaterial[];
  let refusals: string[];
  let active: TlsCredentials;
  /** What a watch does after a change of the files, and at each poll after the outcome `retry`. */
  let reload: (isRetry: boolean) => Promise<WatchOutcome>;

  beforeEach(async () => {
    [loads, reloaded, refusals, load] = [0, [], [], material];
    const source: TlsSource = {
      files: ['crt', 'key'],
      async load() {
        loads += 1;
        return load();
      },
      onReload: each => reloaded.push(each),
      onRefused: each => refusals.push(each),
    };
    const watchFiles: WatchFiles = watched => {
      expect(watched.files).to.deep.equal(source.files);
      expect(watched.known?.map(({ signature }) => signature)).to.deep.equal(['ENOENT', 'ENOENT']);
      reload = async isRetry => watched.apply(await watched.load(), isRetry);
      return { applyNow: () => undefined, stop: () => undefined };
    };
    active = await startTlsCredentials(source, watchFiles);
    expect(loads).to.equal(1);
  });
  afterEach(() => active.stop());

  it('loads the files again when they have changed', async () => {
    const next = material();
    load = () => next;
    expect(await reload(false)).to.deep.equal({ kind: 'accepted' });
    expect(reloaded).to.deep.equal([next]);
    expect(loads).to.equal(2);
  });

  it('retries refused files, and reports the problem once per version of the files', async () => {
    load = () => problem('one');
    for (const isRetry of [false, true, true]) expect(await reload(isRetry)).to.deep.equal({ kind: 'retry' });
    expect(refusals).to.deep.equal(['one']);
    await reload(false);
    expect(refusals).to.deep.equal(['one', 'one']);
    load = material;
    expect(await reload(true)).to.deep.equal({ kind: 'accepted' });
    expect(reloaded.length).to.equal(1);
  });
});
