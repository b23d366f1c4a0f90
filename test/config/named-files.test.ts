// The files that a configuration names for an issuer: key sets, authorities, client certificates.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { JWK } from 'jose';
import { changed, configOf, fixtureFolder, problemsOf, writeFixture } from '../../lab/config-file.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';

const certificate = testCertificate({ name: 'authority' }).cert;

describe('files that a configuration names', () => {
  describe('with key set and CA files', () => {
    let keySet = '';
    let key: JWK;
    before(async () => {
      key = (await signingKey('k1')).publicJwk;
      keySet = JSON.stringify({ keys: [key] });
    });
    const withFile = (key: string, name: string) =>
      changed({ [`issuers.0.${key}`]: name, ...(key === 'jwksFile' ? { 'issuers.0.jwksUrl': undefined } : {}) });

    it('resolves relative names against its own folder', async () => {
      writeFixture('ca.pem', certificate);
      writeFixture('jwks.json', keySet);
      const config = await configOf(
        changed({ 'issuers.0.jwksUrl': undefined, 'issuers.0.jwksFile': './jwks.json', 'issuers.0.caFile': 'ca.pem' }),
      );
      expect(config.issuers[0]?.jwksFile).to.equal(join(fixtureFolder(), 'jwks.json'));
      expect(config.issuers[0]?.caFile).to.equal(join(fixtureFolder(), 'ca.pem'));
    });

    it('keeps an absolute name', async () => {
      const file = writeFixture('jwks.json', keySet);
      const config = await configOf(withFile('jwksFile', file));
      expect(config.issuers[0]?.jwksFile).to.equal(file);
    });

    const brokenCertificate = certificate.replace(/\nMII/, '\nMIJ');
    const contents: readonly (readonly [key: string, name: string, content: string, message: string | undefined])[] = [
      ['caFile', 'one certificate', certificate, undefined],
      ['caFile', 'two certificates with text around them', `# CA\n${certificate}\nold\n${certificate}`, undefined],
      ['caFile', 'no content', '', 'the file must contain a PEM certificate'],
      ['caFile', 'a key set', '{"keys":[]}', 'the file must contain a PEM certificate'],
      ['caFile', 'a broken certificate', brokenCertificate, 'the file must not contain a broken certificate'],
      [
        'caFile',
        'a valid and a broken certificate',
        certificate + brokenCertificate,
        'the file must not contain a broken certificate',
      ],
      [
        'caFile',
        'a truncated certificate',
        certificate + certificate.slice(0, 200),
        'the file must not contain a broken certificate',
      ],
      ['jwksFile', 'no content', '', 'the file is not a key set: not JSON'],
      ['jwksFile', 'a duplicate member', '{"keys":[],"keys":[]}', 'the file is not a key set: a member twice'],
    ];
    for (const [key, name, content, message] of contents) {
      it(
        message === undefined ? `accepts a ${key} with ${name}` : `refuses a ${key} with ${name}: ${message}`,
        async () => {
          writeFixture('named', content);
          const expected = message === undefined ? [] : [`issuers[0].${key}: ${message}`];
          expect(await problemsOf(withFile(key, 'named'))).to.deep.equal(expected);
        },
      );
    }

    const unusable = 'keys[0] (kty oct: a shared secret), k1 (crv P-257)';
    const sets: readonly (readonly [name: string, keys: () => unknown, algorithms: unknown, message?: string])[] = [
      ['one key', () => [key], undefined],
      ['one key while algorithms is not a list', () => [key], 'ES256'],
      ['one key among others', () => [{ kty: 'oct', k: 'AA' }, key, 1], undefined],
      ['no key', () => [], undefined, 'the list is empty'],
      ['a key for other algorithms', () => [key], ['RS256'], 'k1 (alg ES256 is not one of algorithms)'],
      [
        'only unusable keys',
        () => [
          { kty: 'oct', k: 'AA' },
          { ...key, crv: 'P-257' },
        ],
        undefined,
        unusable,
      ],
    ];
    for (const [name, keys, algorithms, message] of sets) {
      it(
        message === undefined ? `accepts a jwksFile with ${name}` : `refuses a jwksFile with ${name}: ${message}`,
        async () => {
          writeFixture('named', { keys: keys() });
          const config = changed({
            'issuers.0.jwksUrl': undefined,
            'issuers.0.jwksFile': 'named',
            'issuers.0.algorithms': algorithms,
          });
          const found = (await problemsOf(config)).filter(problem => problem.includes('jwksFile'));
          const expected = message === undefined ? [] : [`issuers[0].jwksFile: the file has no usable key: ${message}`];
          expect(found).to.deep.equal(expected);
        },
      );
    }

    for (const key of ['caFile', 'jwksFile']) {
      it(`refuses a ${key} that does not exist`, async () => {
        expect(await problemsOf(withFile(key, 'nowhere'))).to.deep.equal([
          `issuers[0].${key}: the file does not exist`,
        ]);
      });

      it(`refuses a ${key} that is a directory`, async () => {
        mkdirSync(join(fixtureFolder(), 'folder'), { recursive: true });
        expect(await problemsOf(withFile(key, 'folder'))).to.deep.equal([
          `issuers[0].${key}: the file is not a regular file`,
        ]);
      });
    }
  });

  describe('with a client certificate for an issuer', () => {
    const pair = testCertificate({ name: 'client' });
    const other = testCertificate({ name: 'other' });
    type Contents = Readonly<Partial<Record<'client.crt' | 'client.key', string>>>;
    const withFiles = (contents: Contents, changes: Readonly<Record<string, unknown>> = {}) => {
      const files = { 'client.crt': pair.cert, 'client.key': pair.key, ...contents };
      for (const [name, content] of Object.entries(files)) writeFixture(name, content);
      return changed({
        'issuers.0.clientCertFile': 'client.crt',
        'issuers.0.clientKeyFile': './client.key',
        ...changes,
      });
    };

    it('resolves relative names against its own folder', async () => {
      expect((await configOf(withFiles({}))).issuers[0]).to.include({
        clientCertFile: join(fixtureFolder(), 'client.crt'),
        clientKeyFile: join(fixtureFolder(), 'client.key'),
      });
    });

    const rows: readonly (readonly [string, Contents, Readonly<Record<string, unknown>>, readonly string[]])[] = [
      ['an http URL on loopback', {}, { 'issuers.0.jwksUrl': 'http://127.0.0.1:1/' }, []],
      [
        'a key of another certificate',
        { 'client.key': other.key },
        {},
        ['issuers[0].clientKeyFile: the private key must belong to the first certificate of the certificate file'],
      ],
      [
        'no PEM in either',
        { 'client.crt': '', 'client.key': '' },
        {},
        [
          'issuers[0].clientCertFile: the file must contain a PEM certificate',
          'issuers[0].clientKeyFile: the file must contain a PEM private key',
        ],
      ],
      [
        'a file that does not exist',
        {},
        { 'issuers.0.clientKeyFile': 'nowhere' },
        ['issuers[0].clientKeyFile: the file does not exist'],
      ],
      [
        'no key',
        {},
        { 'issuers.0.clientKeyFile': undefined },
        ['issuers[0].clientCertFile: must be set together with clientKeyFile'],
      ],
      [
        'no certificate',
        {},
        { 'issuers.0.clientCertFile': undefined },
        ['issuers[0].clientKeyFile: must be set together with clientCertFile'],
      ],
    ];
    for (const [name, contents, changes, problems] of rows) {
      it(`${problems.length === 0 ? 'accepts' : 'refuses'} ${name}`, async () => {
        expect(await problemsOf(withFiles(contents, changes))).to.have.members(problems);
      });
    }

    it('resolves the name of a bearer token file, which need not exist', async () => {
      const { issuers } = await configOf(withFiles({}, { 'issuers.0.bearerTokenFile': 'none/token' }));
      expect(issuers[0]?.bearerTokenFile).to.equal(join(fixtureFolder(), 'none/token'));
    });

    it('refuses a certificate and a bearer token together with a jwksFile', async () => {
      writeFixture('jwks.json', { keys: [(await signingKey('k1')).publicJwk] });
      const source = { 'issuers.0.jwksUrl': undefined, 'issuers.0.jwksFile': 'jwks.json' };
      const changes = { ...source, 'issuers.0.bearerTokenFile': 'token' };
      const rule = 'must not be set together with jwksFile: a file is read without a connection';
      expect(await problemsOf(withFiles({}, changes))).to.have.members([
        `issuers[0].clientCertFile: ${rule}`,
        `issuers[0].clientKeyFile: ${rule}`,
        `issuers[0].bearerTokenFile: ${rule}`,
      ]);
    });
  });
});
