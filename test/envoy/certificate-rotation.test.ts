// Changed certificate files of listen take effect without a restart, and broken ones do not.
import { X509Certificate } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { connect, type ServiceLab, startServiceLab } from '../../lab/service.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { until } from '../../lab/until.ts';
import { mountSecret, type SecretMount } from '../support/secret-mount.ts';
import {
  attempt,
  envoy,
  openTls,
  otherClientCa,
  refused,
  secret,
  security,
  served,
  serverCa,
  targetOf,
  tlsConfig,
} from './tls-secret.ts';

async function serialOf(lab: ServiceLab): Promise<string> {
  const socket = await openTls(lab, { rejectUnauthorized: false });
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

describe('TLS on listen', () => {
  describe('certificate rotation', () => {
    let mount: SecretMount;
    let lab: ServiceLab;
    beforeEach(async () => {
      mount = await mountSecret(secret());
      lab = await startServiceLab({ config: { tls: tlsConfig(mount) } });
    });
    afterEach(() => lab.stop());
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
      const notAfter = new Date(validTo).toISOString();
      expect(line).to.deep.include({ level: 'info', msg: 'tls files reloaded', notAfter });
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
