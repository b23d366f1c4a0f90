// The certificate, key and client CA of listen, as a configuration names them.
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { changed, configOf, fixtureFolder, problemsOf, writeFixture } from '../../lab/config-file.ts';
import { secrets } from '../../lab/secrets.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { loadConfig } from '../../src/config/load.ts';
import { runs } from '../support/foreign-bytes.ts';
import { good, positionsOf } from './load-lab.ts';

describe('configuration file', () => {
  describe('with TLS files', () => {
    const pem = testCertificate({ name: 'a' });
    const otherPem = testCertificate({ name: 'b' });
    const files = { 'own.crt': pem.cert, 'own.key': pem.key, 'ca.crt': otherPem.cert };
    type Contents = Readonly<Partial<Record<keyof typeof files, string | Buffer>>>;
    const withFiles = (contents: Contents) => {
      for (const [name, content] of Object.entries({ ...files, ...contents })) writeFixture(name, content);
      return changed({ tls: { certFile: 'own.crt', keyFile: './own.key', clientCaFile: 'ca.crt' } });
    };

    it('resolves relative names against its own folder', async () => {
      expect((await configOf(withFiles({}))).tls).to.deep.equal({
        certFile: join(fixtureFolder(), 'own.crt'),
        keyFile: join(fixtureFolder(), 'own.key'),
        clientCaFile: join(fixtureFolder(), 'ca.crt'),
      });
    });

    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    secrets.mint('private key', rsa.export({ type: 'pkcs8', format: 'pem' }).toString());
    const ec = createPrivateKey(pem.key);
    const usable: readonly (readonly [name: string, contents: Contents])[] = [
      ['a certificate chain', { 'own.crt': `${pem.cert}# the authority\n${otherPem.cert}` }],
      ['several client CAs', { 'ca.crt': pem.cert + otherPem.cert }],
      ['a SEC 1 key', { 'own.key': ec.export({ type: 'sec1', format: 'pem' }) }],
      ['certificate and key in one file', { 'own.crt': pem.key + pem.cert, 'own.key': pem.cert + pem.key }],
    ];
    for (const [name, contents] of usable) {
      it(`accepts ${name}`, async () => {
        expect(await problemsOf(withFiles(contents))).to.deep.equal([]);
      });
    }

    const noKey = 'tls.keyFile: the file must contain a PEM private key';
    const foreign = 'tls.keyFile: the private key must belong to the first certificate of the certificate file';
    const locked = 'tls.keyFile: the private key must not be encrypted: there is no setting for a passphrase';
    const encrypted = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
    const unusable: readonly (readonly [name: string, contents: Contents, ...problems: string[]])[] = [
      ['no certificate', { 'own.crt': pem.key }, 'tls.certFile: the file must contain a PEM certificate'],
      [
        'a truncated chain',
        { 'own.crt': pem.cert + otherPem.cert.slice(0, 99) },
        'tls.certFile: the file must not contain a broken certificate',
      ],
      ['no key', { 'own.key': pem.cert }, noKey],
      ['a truncated key', { 'own.key': pem.key.slice(0, 99) }, noKey],
      ['a public key', { 'own.key': createPublicKey(ec).export({ type: 'spki', format: 'pem' }) }, noKey],
      ['an encrypted key', { 'own.key': ec.export({ type: 'pkcs8', ...encrypted }) }, locked],
      ['an encrypted SEC 1 key', { 'own.key': ec.export({ type: 'sec1', ...encrypted }) }, locked],
      ['a key of another certificate', { 'own.key': otherPem.key }, foreign],
      ['a key of another type', { 'own.key': rsa.export({ type: 'pkcs8', format: 'pem' }) }, foreign],
      ['a chain with the CA first', { 'own.crt': otherPem.cert + pem.cert }, foreign],
      ['no client CA', { 'ca.crt': '' }, 'tls.clientCaFile: the file must contain a PEM certificate'],
      [
        'three unusable files',
        { 'own.crt': '', 'own.key': '', 'ca.crt': 'x' },
        'tls.certFile: the file must contain a PEM certificate',
        noKey,
        'tls.clientCaFile: the file must contain a PEM certificate',
      ],
    ];
    for (const [name, contents, ...problems] of unusable) {
      it(`refuses ${name}`, async () => {
        expect(await problemsOf(withFiles(contents))).to.deep.equal(problems);
      });
    }

    it('refuses a certificate that OpenSSL rejects', async () => {
      const weak = testCertificate({ namedCurve: 'secp112r1' });
      expect(await problemsOf(withFiles({ 'own.crt': weak.cert, 'own.key': weak.key }))).to.deep.equal([
        'tls.certFile: OpenSSL refuses the certificate (ERR_SSL_EE_KEY_TOO_SMALL): its key may be too short or its signature too weak',
      ]);
    });

    it('locates each problem, and checks every file even if another name is missing', async () => {
      writeFixture('own.crt', 'x');
      const text = `tls:\n  certFile: own.crt\n  clientCaFile: nowhere\n${good}`;
      expect(await positionsOf(text)).to.deep.equal(['1:1 tls.keyFile', '2:13 tls.certFile', '3:17 tls.clientCaFile']);
    });

    it('is loaded or refused, and never throws, for any file contents', async () => {
      const texts = fc
        .tuple(
          fc.constantFrom(pem.cert, pem.key),
          fc.nat(),
          fc.constantFrom('', '\0', '-', 'A', '\n', '\n\n', pem.key, '\u00ff'),
          fc.nat(4),
        )
        .map(([text, at, put, cut]) => text.slice(0, at % text.length) + put + text.slice((at % text.length) + cut));
      await fc.assert(
        fc.asyncProperty(texts, texts, texts, async (cert, key, ca) => {
          const loaded = await loadConfig(
            writeFixture('random.yaml', withFiles({ 'own.crt': cert, 'own.key': key, 'ca.crt': ca })),
          );
          secrets.show('command', JSON.stringify(loaded));
          expect(loaded.kind).to.be.oneOf(['config', 'misconfiguration']);
        }),
        runs(30),
      );
    });
  });
});
