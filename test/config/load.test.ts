// Loading a configuration file: YAML forms, places of problems, unreadable files, and the files that it names.
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import type { JWK } from 'jose';
import { loadConfig } from '../../src/config/load.ts';
import { type ConfigProblem, formatProblems } from '../../src/config/problems.ts';
import { changed, configOf, fixtureFolder, problemsOf, smallestConfig, writeFixture } from '../support/config-file.ts';
import { secrets } from '../support/secrets.ts';
import { signingKey } from '../support/signing-key.ts';
import { testCertificate } from '../support/test-certificate.ts';

// Made with `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=test -days 36500`.
const certificate = `-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIULdw151a78zhU7MwxyFp6LEG7DHMwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjExMTU1NDFaGA8yMTI2MTAyODExNTU0
MVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHDr
M8cvXgxEACHNrebg8ZZoysEl3nGOULK9RpNvlWQhsJP/Ey+uC8eKEAz5Rh4cZHp8
Vuebm8eiq1Pnpo8kLO6jUzBRMB0GA1UdDgQWBBTM/DLpnYgxc7sxHMJpa9M/z5bC
9TAfBgNVHSMEGDAWgBTM/DLpnYgxc7sxHMJpa9M/z5bC9TAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIQDLwBlwK04T/wFJpGNoUuK8aloYe71OzT1k
9VBLC5n38gIgZXvq82Hg0M6VeFCTKMXMa4ZC/LKA6VGOMtIbvWdo5jI=
-----END CERTIFICATE-----
`;

/** `line:column place` of each problem of this text. */
async function positionsOf(text: string): Promise<readonly string[]> {
  const loaded = await loadConfig(writeFixture('config.yaml', text));
  return loaded.kind === 'config' ? [] : loaded.problems.map(({ line, column, place }) => `${line}:${column} ${place}`);
}

/** The message of the one problem of this file. */
async function messageOf(file: string): Promise<string> {
  const loaded = await loadConfig(file);
  expect(loaded).to.have.property('kind', 'misconfiguration');
  expect(loaded).to.have.property('problems').with.lengthOf(1);
  return loaded.kind === 'config' ? '' : (loaded.problems[0]?.message ?? '');
}

const good = `issuers:
  - issuer: https://auth.example.com
    audiences: [https://api.example.com]
    jwksUrl: https://auth.example.com/jwks
routes:
  - path: /api/*
roles:
  owner: ['*']
`;

describe('configuration file', () => {
  it('is loaded into the effective settings', async () => {
    const config = await configOf(good);
    expect(config.issuers[0]?.audiences).to.deep.equal(['https://api.example.com']);
    expect([...config.roles]).to.deep.equal([['owner', ['*']]]);
  });

  it('keeps the order of roles and scopes, also where names are whole numbers', async () => {
    const tables = 'roles: &names { owner: [GET], 10: [GET], 9: [POST] }\nscopes: *names\n';
    const { roles, scopes } = await configOf(good.replace(/roles:.*/s, tables));
    expect([...roles.keys()]).to.deep.equal(['owner', '10', '9']);
    expect(roles.get('9')).to.deep.equal(['POST']);
    expect([...(scopes?.keys() ?? [])]).to.deep.equal(['owner', '10', '9']);
  });

  const sameAsGood: Readonly<Record<string, string | Uint8Array>> = {
    'with a byte order mark': `\ufeff${good}`,
    'with CRLF line ends': good.replaceAll('\n', '\r\n'),
    'with a document start and end': `%YAML 1.2\n---\n${good}...\n# end\n`,
    'with an anchor and an alias': good
      .replace('[https://api.example.com]', '&a [&b https://api.example.com]')
      .concat('apps: *a\n'),
    'as JSON': JSON.stringify(smallestConfig()),
  };
  for (const [name, text] of Object.entries(sameAsGood)) {
    it(`is loaded ${name}`, async () => {
      expect(await problemsOf(text)).to.deep.equal([]);
    });
  }

  it('has YAML 1.2 values even if it declares another version', async () => {
    const text = `%YAML 1.1\n---\n${good}listenInsecure: yes\n`;
    expect(await problemsOf(text)).to.deep.equal(['listenInsecure: must be true or false, not text']);
  });

  it('reports all problems at once, in file order', async () => {
    const text = `listen: 0.0.0.0:9191
admin: localhost
issuers:
  - issuer: https://auth.example.com
    audiences: []
    algorithms: [HS256]
    audience: x
  - issuer: https://auth.example.com
    audiences: [a, a]
    jwksUrl: http://auth.example.com/jwks
    jwksFile: nowhere.json
token: { maxBytes: 1.5 }
keys: { refreshSeconds: 7200 }
routes:
  - path: /*
    roles: [boss]
account: { headers: [x-auth-acc, x_acc] }
roles: { owner: ['*'] }
identityHeaders: x-auth-
log:
listen: 0.0.0.0:9191
`;
    expect(await positionsOf(text)).to.deep.equal([
      '2:8 admin',
      '4:5 issuers[0]',
      '5:5 issuers[0].audiences',
      '6:18 issuers[0].algorithms[0]',
      '7:5 issuers[0].audience',
      '8:5 issuers[1]',
      '8:13 issuers[1].issuer',
      '9:20 issuers[1].audiences[1]',
      '10:14 issuers[1].jwksUrl',
      '11:15 issuers[1].jwksFile',
      '12:20 token.maxBytes',
      '13:1 keys.maxAgeSeconds',
      '15:11 routes[0].path',
      '16:13 routes[0].roles[0]',
      '17:22 account.headers[0]',
      '17:34 account.headers[1]',
      '20:1 log',
      '21:1 listen',
      '21:9 listen',
    ]);
  });

  const positions: readonly (readonly [name: string, text: string, position: string])[] = [
    ['a scalar at the scalar', `${good}listen:   nowhere\n`, '9:11 listen'],
    ['a scalar below its key at the scalar', `${good}listen:\n  nowhere\n`, '10:3 listen'],
    ['an empty value at its key', `${good}cache:\n`, '9:1 cache'],
    ['a key without a colon at the key', `${good}log: { level }\n`, '9:8 log.level'],
    ['a list at its key', `${good}apps:\n  []\n`, '9:1 apps'],
    ['a list item at the item', `${good}apps:\n  - web\n  - web\n`, '11:5 apps[1]'],
    ['a missing key at the enclosing mapping', good.replace('  - path: /api/*', '  - {}'), '6:5 routes[0].path'],
    ['an unknown key at the key', `${good}token: { maxByte: 1 }\n`, '9:10 token.maxByte'],
    ['a quoted key', `${good}"to ken": 1\n`, '9:1 ["to ken"]'],
    ['a key with a control character', `${good}"a\\nb\\e[1m": 1\n`, '9:1 ["a\\u{a}b\\u{1b}[1m"]'],
    ['a key with a directional mark', `${good}"\\u202Ea": 1\n`, '9:1 ["\\u{202e}a"]'],
    ['a role name', `${good}  a,b: [GET]\n`, '9:3 roles["a,b"]'],
    ['a duplicate key at the second one', `${good}roles: { owner: [GET] }\n`, '9:1 roles'],
    ['a duplicate key inside a mapping', `${good}  owner: [GET]\n`, '9:3 roles.owner'],
    ['an alias at the alias', `${good}apps: &a [web]\nlog: { level: *a }\n`, '10:15 log.level'],
    ['a value inside an alias at its anchor', `${good}token: &t { maxBytes: 1 }\ncache: *t\n`, '9:13 cache.maxBytes'],
    [
      'a merge key, which is an ordinary key',
      `${good}log: &l { level: info }\ntoken: { <<: *l }\n`,
      '10:10 token["<<"]',
    ],
    ['a tag', `${good}listen: !secret x\n`, '9:9 '],
    ['a YAML 1.1 tag', `${good}apps: !!set { web }\n`, '9:7 '],
    ['the key __proto__', `${good}__proto__: { listen: x }\n`, '9:1 __proto__'],
    ['the role __proto__', `${good}  __proto__: [GET]\n`, '9:3 roles.__proto__'],
    ['a document of the wrong type', '- a\n', '1:1 '],
    ['a scalar document', '\n\n  x\n', '3:3 '],
  ];
  for (const [name, text, position] of positions) {
    it(`locates ${name}`, async () => {
      expect(await positionsOf(text)).to.include(position);
    });
  }

  it('locates missing sections at the start of the mapping', async () => {
    expect(await positionsOf('# nothing\n\nlisten: 127.0.0.1:1\n')).to.deep.equal([
      '3:1 issuers',
      '3:1 routes',
      '3:1 roles',
    ]);
  });

  const broken: readonly (readonly [name: string, text: string, problems: readonly string[]])[] = [
    ['two mistakes', 'a: [1\nb: "x\n', ['2:1 ', '3:1 ']],
    ['an unquoted *', 'roles:\n  owner: [*]\n', ['2:11 ']],
    ['an alias without an anchor', `${good}apps: *web\n`, ['9:7 apps']],
    ['an alias inside its own anchor', `${good}apps: &a [*a]\n`, ['9:11 apps[0]']],
    ['a tab', 'roles:\n\towner: 1\n', ['2:1 ']],
    ['a second document', `${good}---\n${good}`, ['9:1 ']],
    ['a key that is a list', '? [a]\n: b\n', ['1:3 ']],
    ['an unclosed bracket', 'apps: [a, b\n', ['2:1 ']],
  ];
  for (const [name, text, expected] of broken) {
    it(`locates YAML errors caused by ${name}`, async () => {
      expect(await positionsOf(text)).to.deep.equal(expected);
    });
  }

  it('is refused when its aliases expand to too many values (billion laughs)', async () => {
    const levels = Array.from(
      { length: 8 },
      (_, i) => `a${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`).join(', ')}]`,
    );
    const file = writeFixture('bomb.yaml', `a0: &a0 [x]\n${levels.join('\n')}\n`);
    expect(await messageOf(file)).to.equal(
      'the file has too many values once its aliases are expanded: write fewer aliases',
    );
  });

  for (const [name, text] of Object.entries({ brackets: '[', braces: '{', keys: '? ', items: '- ' })) {
    it(`is refused with 64 KiB of nested ${name}`, async () => {
      const file = writeFixture('deep.yaml', text.repeat(64 * 1024).slice(0, 64 * 1024));
      expect(await messageOf(file)).to.equal('the file must not be nested deeper than 32 levels');
    });
  }

  it('is validated within 10 s of processor time with 90,000 unknown keys', async () => {
    const started = process.cpuUsage();
    const keys = Array.from({ length: 90_000 }, (_, i) => `k${i}: 1\n`).join('');
    const loaded = await loadConfig(writeFixture('wide.yaml', keys));
    expect(loaded).to.have.property('kind', 'misconfiguration');
    expect(process.cpuUsage(started).user).to.be.below(10_000_000);
  });

  describe('that is unreadable', () => {
    const files: Readonly<Record<string, readonly [content: string | Uint8Array, message: string]>> = {
      'an empty file': ['', 'the file is empty'],
      'a file of comments': ['# nothing\n', 'the file is empty'],
      'an empty document': ['---\n', 'the file is empty'],
      'a null': ['~\n', 'the file is empty'],
      'Latin-1': [Buffer.from('listen: caf\xe9\n', 'latin1'), 'the file must be text in UTF-8'],
      'UTF-16': [Buffer.from(`\ufeff${good}`, 'utf16le'), 'the file must be text in UTF-8'],
      'more than 1 MiB': ['#'.repeat(1024 * 1024 + 1), 'the file is larger than 1048576 bytes'],
      '1 MiB': ['#'.repeat(1024 * 1024), 'the file is empty'],
    };
    for (const [name, [content, message]] of Object.entries(files)) {
      it(`is refused as ${name}: ${message}`, async () => {
        expect(await messageOf(writeFixture('unreadable.yaml', content))).to.equal(message);
      });
    }

    it('is refused when it does not exist', async () => {
      expect(await messageOf(join(fixtureFolder(), 'nowhere', 'config.yaml'))).to.equal('the file does not exist');
    });

    it('is refused when it is a directory', async () => {
      expect(await messageOf(fixtureFolder())).to.equal('the file is a directory');
    });

    it('is refused when its name contains NUL', async () => {
      expect(await messageOf('a\0b')).to.equal('the file does not exist');
    });

    it('is refused when it is a loop of symbolic links', async () => {
      const loop = join(fixtureFolder(), 'loop.yaml');
      symlinkSync(loop, loop);
      expect(await messageOf(loop)).to.equal('the file cannot be read (ELOOP)');
    });
  });

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
      ['jwksFile', 'a list', '[]', 'the file is not a key set: it must be a JSON object with an array "keys"'],
      [
        'jwksFile',
        'one key',
        '{"kty":"RSA"}',
        'the file is not a key set: it must be a JSON object with an array "keys"',
      ],
      [
        'jwksFile',
        'an object for keys',
        '{"keys":{}}',
        'the file is not a key set: it must be a JSON object with an array "keys"',
      ],
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

    const sets: readonly (readonly [name: string, keys: () => unknown, algorithms: unknown, message?: string])[] = [
      ['one key', () => [key], undefined],
      ['one key while algorithms is not a list', () => [key], 'ES256'],
      ['one key among others', () => [{ kty: 'oct', k: 'AA' }, key, 1], undefined],
      ['no key', () => [], undefined, '"keys" is empty'],
      ['a key for other algorithms', () => [key], ['RS256'], 'algorithm not allowed'],
      ['a key for encryption', () => [{ ...key, use: 'enc' }], undefined, 'for another use'],
      ['a key without a kid', () => [{ ...key, kid: '' }], undefined, 'no kid'],
      [
        'only unusable keys',
        () => [
          { kty: 'oct', k: 'AA' },
          { ...key, crv: 'P-257' },
          { kty: 'oct', k: 'AA', kid: 'a' },
        ],
        undefined,
        'symmetric key, curve not supported',
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

    it('refuses the certificate together with a jwksFile', async () => {
      writeFixture('jwks.json', { keys: [(await signingKey('k1')).publicJwk] });
      const changes = { 'issuers.0.jwksUrl': undefined, 'issuers.0.jwksFile': 'jwks.json' };
      const rule = 'must not be set together with jwksFile: a file is read without a connection';
      expect(await problemsOf(withFiles({}, changes))).to.have.members([
        `issuers[0].clientCertFile: ${rule}`,
        `issuers[0].clientKeyFile: ${rule}`,
      ]);
    });
  });

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
        { numRuns: 300 },
      );
    });
  });

  it('is loaded without network access', async () => {
    let connections = 0;
    const server = createServer((_, response) => response.end('{"keys":[]}')).on('connection', () => {
      connections += 1;
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    expect(await problemsOf(changed({ 'issuers.0.jwksUrl': `http://127.0.0.1:${port}/jwks` }))).to.deep.equal([]);
    await fetch(`http://127.0.0.1:${port}/jwks`);
    await new Promise(resolve => server.close(resolve).closeAllConnections());
    expect(connections).to.equal(1);
  });

  it('has no value repeated in a problem', async () => {
    const secret = 'hunter2secret';
    const text = JSON.stringify(
      changed({
        'issuers.0.jwksUrl': `https://user:${secret}@auth.example.com/`,
        'issuers.0.issuer': ` ${secret}`,
        listen: secret,
        'token.maxBytes': secret,
        apps: [`${secret} ${secret}`],
        'log.level': secret,
        identityHeaders: secret,
        'account.headers': [`${secret}_`],
        'routes.0.path': secret,
      }),
    );
    const problems = await problemsOf(text);
    expect(problems).to.have.lengthOf(9);
    expect(problems.join('\n')).not.to.include(secret);
  });

  it('is loaded or refused, and never throws, for any text', async () => {
    const texts = fc.oneof(
      fc.uint8Array({ maxLength: 200, size: 'max' }),
      fc.string({ unit: fc.constantFrom(...'{}[],:-?&*!|>\'"%@`#\n\t ab0~.<=\u{1F600}'), maxLength: 80, size: 'max' }),
      fc
        .array(fc.constantFrom(...good.split(/(?<=\n)/), '- a\n', '  x: &a [*a]\n', 'roles: *a\n', '? !!set\n'), {
          maxLength: 12,
        })
        .map(lines => lines.join('')),
      fc.json({ maxDepth: 4 }),
    );
    await fc.assert(
      fc.asyncProperty(texts, async text => {
        const loaded = await loadConfig(
          writeFixture('random.yaml', typeof text === 'string' ? text : Buffer.from(text)),
        );
        const problems: readonly ConfigProblem[] = loaded.kind === 'misconfiguration' ? loaded.problems : [];
        expect(loaded.kind === 'config' || problems.length > 0).to.equal(true);
        for (const line of formatProblems('f', problems).trimEnd().split('\n')) {
          expect(line).to.match(problems.length > 0 ? /^f:[1-9][0-9]*:[1-9][0-9]*: [^\p{C}]+$/u : /^$/);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('is loaded or refused, and never throws, for any value of a key', async () => {
    const keys = [
      'listen',
      'tls',
      'admin',
      'issuers',
      'token',
      'keys',
      'routes',
      'account',
      'roles',
      'apps',
      'identityHeaders',
      'log',
    ];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 3 }), async (key, value) => {
        const loaded = await loadConfig(writeFixture('random.yaml', { ...smallestConfig(), [key]: value }));
        expect(loaded.kind).to.be.oneOf(['config', 'misconfiguration']);
      }),
      { numRuns: 300 },
    );
  });
});

describe('formatProblems', () => {
  it('prints one line per problem with file, line, column and place', () => {
    const problems: readonly ConfigProblem[] = [
      { place: '', line: 1, column: 1, message: 'the file is empty' },
      { place: 'issuers[0].audiences', line: 12, column: 5, message: 'must name at least one audience' },
    ];
    expect(formatProblems('config.yaml', problems)).to.equal(
      'config.yaml:1:1: the file is empty\nconfig.yaml:12:5: issuers[0].audiences: must name at least one audience\n',
    );
  });

  it('escapes control characters in a file name', () => {
    const problem = { place: '', line: 1, column: 1, message: 'the file does not exist' };
    expect(formatProblems('a\nb\u001b', [problem])).to.equal('a\\u{a}b\\u{1b}:1:1: the file does not exist\n');
  });
});
