// TLS on listen: client certificates, protocol versions, unusable files, and certificate rotation without a restart.
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import * as tls from 'node:tls';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { expect } from 'chai';
import { startTlsCredentials, type TlsCredentials, type TlsSource } from '../../src/envoy/tls-credentials.ts';
import type { WatchFiles, WatchOutcome } from '../../src/files/file-watch.ts';
import type { TlsMaterial } from '../../src/files/tls-files.ts';
import { checkRequest } from '../support/check-request.ts';
import { mountSecret, type SecretMount } from '../support/secret-mount.ts';
import { secrets } from '../support/secrets.ts';
import {
  connect,
  reasonOf,
  type ServiceLab,
  serviceConfig,
  startServiceLab,
  startTestService,
} from '../support/service.ts';
import { type TestCertificate, testCertificate } from '../support/test-certificate.ts';
import { until } from '../support/until.ts';

type Secret = Readonly<Record<'tls.crt' | 'tls.key' | 'ca.crt', string>>;

const serverCa = testCertificate({ name: 'server ca', isAuthority: true });
const clientCa = testCertificate({ name: 'client ca', isAuthority: true });
const otherClientCa = testCertificate({ name: 'client ca', isAuthority: true });
const envoy = testCertificate({ name: 'envoy', authority: clientCa });

interface SecretOptions {
  readonly authority?: ReturnType<typeof testCertificate>;
  readonly clientAuthority?: TestCertificate;
  readonly addresses?: readonly string[];
}

function secret({ authority = serverCa, clientAuthority = clientCa, addresses }: SecretOptions = {}): Secret {
  const dnsNames = ['localhost'];
  const own = testCertificate({ name: 'account-authz', dnsNames, authority, ...(addresses && { addresses }) });
  return { 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': clientAuthority.cert };
}

function security(trusted: TestCertificate, own?: TestCertificate): ChannelCredentials {
  const [key, cert] = own === undefined ? [null, null] : [Buffer.from(own.key), Buffer.from(own.cert)];
  return credentials.createSsl(Buffer.from(trusted.cert), key, cert);
}

function tlsConfig(mount: SecretMount, withClientCa = true) {
  return {
    certFile: mount.path('tls.crt'),
    keyFile: mount.path('tls.key'),
    ...(withClientCa ? { clientCaFile: mount.path('ca.crt') } : {}),
  };
}

// By name: grpc-js sends the target as SNI, and Node warns about an IP address there.
function targetOf(lab: ServiceLab): string {
  return `localhost:${lab.service.ports.listen}`;
}

/** Makes one check over a new connection. Returns its outcome and how many checks the service logged. */
async function attempt(lab: ServiceLab, channel: ChannelCredentials | undefined, target = targetOf(lab)) {
  const checks = (): number => lab.log.filter(line => line.msg === 'check').length;
  const before = checks();
  const client = connect(target, channel);
  const answer = await client
    .check(checkRequest({ headers: {} }))
    .then(reasonOf, (error: { code: number }) => `status ${error.code}`);
  client.close();
  return { answer, checks: checks() - before };
}

const served = { answer: 'token_missing', checks: 1 };
const refused = { answer: 'status 14', checks: 0 };

async function openTls(lab: ServiceLab, options: tls.ConnectionOptions = {}): Promise<tls.TLSSocket> {
  const { cert, key } = envoy;
  const socket = tls.connect({
    ...{ host: '127.0.0.1', port: lab.service.ports.listen, ALPNProtocols: ['h2'], ca: serverCa.cert, cert, key },
    ...options,
  });
  await once(socket, 'secureConnect');
  return socket;
}

async function serialOf(lab: ServiceLab): Promise<string> {
  const socket = await openTls(lab, { rejectUnauthorized: false });
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

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
  let isWatched: boolean;

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
      isWatched = true;
      reload = async isRetry => watched.apply(await watched.load(), isRetry);
      return {
        applyNow: () => undefined,
        stop() {
          isWatched = false;
        },
      };
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

  it('ends its watch when it stops', () => {
    expect(isWatched).to.equal(true);
    active.stop();
    expect(isWatched).to.equal(false);
  });
});

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
    after(async () => {
      await lab.stop();
      await mount.remove();
    });

    it('serves a caller with a certificate of that CA', async () => {
      expect(await attempt(lab, security(serverCa, envoy))).to.deep.equal(served);
    });

    const callers: readonly (readonly [name: string, security: ChannelCredentials | undefined])[] = [
      ['a caller without TLS', undefined],
      ['a caller that trusts another CA', security(clientCa, envoy)],
      ['a caller without a certificate', security(serverCa)],
      [
        'a certificate of another CA with the same name',
        security(serverCa, testCertificate({ name: 'envoy', authority: otherClientCa })),
      ],
      [
        "a certificate of the CA of the service's own certificate",
        security(serverCa, testCertificate({ authority: serverCa })),
      ],
      ['a self-signed certificate', security(serverCa, testCertificate({ name: 'envoy' }))],
      [
        'an expired certificate',
        security(serverCa, testCertificate({ name: 'envoy', authority: clientCa, validFromHours: -48 })),
      ],
      [
        'a certificate that is not yet valid',
        security(serverCa, testCertificate({ name: 'envoy', authority: clientCa, validFromHours: 1 })),
      ],
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
      const modern = [
        'ECDHE-ECDSA-AES128-GCM-SHA256',
        'ECDHE-ECDSA-AES256-GCM-SHA384',
        'ECDHE-ECDSA-CHACHA20-POLY1305',
      ];
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
    await mount.remove();
  });

  it('applies to a Unix socket too', async () => {
    const ca = { 'server-ca.crt': serverCa.cert, 'envoy.crt': envoy.cert, 'envoy.key': envoy.key };
    const mount = await mountSecret({ ...secret(), ...ca });
    const listen = `unix:${mount.path('authz.sock')}`;
    const lab = await startServiceLab({ config: { listen, tls: tlsConfig(mount) } });
    expect(await attempt(lab, security(serverCa, envoy), listen)).to.deep.equal(served);
    expect(await attempt(lab, security(serverCa), listen)).to.deep.equal(refused);
    expect(await attempt(lab, undefined, listen)).to.deep.equal(refused);
    await lab.stop();
    await mount.remove();
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
    await mount.remove();
  });

  describe('certificate rotation', () => {
    let mount: SecretMount;
    let lab: ServiceLab;
    beforeEach(async () => {
      mount = await mountSecret(secret());
      lab = await startServiceLab({ config: { tls: tlsConfig(mount) } });
    });
    afterEach(async () => {
      await lab.stop();
      await mount.remove();
    });
    const tlsLines = () => lab.log.filter(({ msg }) => String(msg).startsWith('tls files'));

    it('uses the new certificate for new connections, and keeps old connections', async () => {
      const old = connect(targetOf(lab), security(serverCa, envoy));
      await old.check(checkRequest({}));
      // The old client does not trust it: a new connection would fail.
      const renewed = secret({ authority: testCertificate({ name: 'next server ca', isAuthority: true }) });
      await mount.update(renewed);
      const { serialNumber, validTo } = new X509Certificate(renewed['tls.crt']);
      await until(async () => (await serialOf(lab)) === serialNumber);
      expect((await old.check(checkRequest({}))).status.code).to.equal(16);
      old.close();
      expect(await attempt(lab, security(serverCa, envoy))).to.deep.equal(refused);
      const [line, ...others] = tlsLines();
      expect(line).to.deep.include({
        level: 'info',
        msg: 'tls files reloaded',
        notAfter: new Date(validTo).toISOString(),
      });
      expect(others).to.deep.equal([]);
    });

    it('uses the new client CA for new connections', async () => {
      await mount.update(secret({ clientAuthority: otherClientCa }));
      await until(() => tlsLines().length === 1);
      expect(await attempt(lab, security(serverCa, envoy))).to.deep.equal(refused);
      const next = testCertificate({ name: 'envoy', authority: otherClientCa });
      expect(await attempt(lab, security(serverCa, next))).to.deep.equal(served);
    });

    it('keeps the old files while the new ones are broken, and loads the next valid ones', async () => {
      const serial = await serialOf(lab);
      const broken = { ...secret(), 'tls.key': 'hunter2secret', 'ca.crt': 'hunter2secret' };
      await mount.update(broken);
      await until(() => tlsLines().length === 1);
      expect(await serialOf(lab)).to.equal(serial);
      expect(await attempt(lab, security(serverCa, envoy))).to.deep.equal(served);
      const problem =
        'tls.keyFile: the file must contain a PEM private key; tls.clientCaFile: the file must contain a PEM certificate';
      expect(tlsLines()[0]).to.deep.include({ level: 'warn', problem });
      expect(JSON.stringify(lab.log)).not.to.contain('hunter2secret');

      const next = secret();
      await mount.update(next);
      await until(async () => (await serialOf(lab)) === new X509Certificate(next['tls.crt']).serialNumber);
      expect(tlsLines().map(({ level }) => level)).to.deep.equal(['warn', 'info']);
    });

    it('keeps the old files when the new ones are missing', async () => {
      await rename(mount.path('..data'), mount.path('..gone'));
      await until(() => tlsLines().length === 1);
      expect(tlsLines()[0]).to.have.property('problem').that.contains('tls.certFile: the file does not exist');
      expect(await attempt(lab, security(serverCa, envoy))).to.deep.equal(served);
      expect(await attempt(lab, security(serverCa))).to.deep.equal(refused);
    });

    it('loads files that are written in place, one after the other', async () => {
      const next = secret();
      await writeFile(mount.path('tls.crt'), next['tls.crt']);
      await writeFile(mount.path('tls.key'), next['tls.key']);
      await until(async () => (await serialOf(lab)) === new X509Certificate(next['tls.crt']).serialNumber);
      expect(tlsLines().map(({ level }) => level)).to.deep.equal(['info']);
    });
  });
});
