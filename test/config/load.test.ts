import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { changed, configOf, fixtureFolder, problemsOf, smallestConfig, writeFixture } from '../../lab/config-file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { good, positionsOf } from './load-lab.ts';

const tooManyValues = 'the file must not have more than 40000 values, those that its aliases repeat among them';

/** The message of the one problem of this file. */
async function messageOf(file: string): Promise<string> {
  const loaded = await loadConfig(file);
  expect(loaded).to.have.property('kind', 'misconfiguration');
  expect(loaded).to.have.property('problems').with.lengthOf(1);
  return loaded.kind === 'config' ? '' : (loaded.problems[0]?.message ?? '');
}

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
    ['a merge key, an ordinary key', `${good}log: &l { level: info }\ntoken: { <<: *l }\n`, '10:10 token["<<"]'],
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
    const level = (i: number) => `a${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`).join(', ')}]`;
    const levels = Array.from({ length: 8 }, (_, i) => level(i));
    const file = writeFixture('bomb.yaml', `a0: &a0 [x]\n${levels.join('\n')}\n`);
    expect(await messageOf(file)).to.equal(tooManyValues);
  });

  /** A file of 256 KiB: the beginning, then the text again and again. */
  const filled = (beginning: string, text: string): string => {
    const count = Math.floor((256 * 1024 - beginning.length) / text.length);
    return beginning + text.repeat(count);
  };
  const large: Readonly<Record<string, readonly [text: string, problems: number]>> = {
    'of problems with each value': [filled('account: { headers: [', 'x-a,'), 1],
    'of empty lists and aliases of them': [`a: &a [${'[],'.repeat(30_000)}]\nb: [${'*a,'.repeat(50_000)}]\n`, 1],
    'of aliases of a long text': [filled(`apps: [&a ${'x'.repeat(100_000)},`, '*a,'), 1],
    'of aliases without an anchor': [`apps: [${'*a, '.repeat(30_000)}]`, 1001],
    'of flow mistakes': [filled('apps: [', '-,'), 1],
    'of unknown keys': [Array.from({ length: 30_000 }, (_, i) => `k${i}:\n`).join(''), 1001],
  };
  for (const [name, [text, count]] of Object.entries(large)) {
    it(`is refused with at most 1,001 problems as 256 KiB ${name}`, async () => {
      const loaded = await loadConfig(writeFixture('large.yaml', text));
      expect(loaded.kind === 'config' ? 0 : loaded.problems.length).to.equal(count);
    });
  }

  for (const [key, max, noun] of [
    ['issuers', 200, 'issuers'],
    ['routes', 2000, 'routes'],
    ['public', 2000, 'public routes'],
    ['roles', 200, 'roles'],
    ['scopes', 200, 'scopes'],
  ] as const) {
    it(`has at most ${max} ${noun}`, async () => {
      const entries = Array.from({ length: max + 1 }, (_, i) => [`r${i}`, []]);
      const value = key === 'roles' || key === 'scopes' ? Object.fromEntries(entries) : entries;
      const expected = [`${key}: must name at most ${max} ${noun}`];
      expect(await problemsOf({ ...smallestConfig(), [key]: value })).to.deep.equal(expected);
    });
  }

  for (const [name, text] of Object.entries({ brackets: '[', braces: '{', keys: '? ', items: '- ' })) {
    it(`is refused with 16 KiB of nested ${name}`, async () => {
      const file = writeFixture('deep.yaml', text.repeat(16 * 1024).slice(0, 16 * 1024));
      expect(await messageOf(file)).to.equal('the file must not be nested deeper than 32 levels');
    });
  }

  it('is validated within 10 s of processor time with 2,000 routes beside 2,000 public ones', async () => {
    const started = process.cpuUsage();
    const paths = (start: string, end: string) =>
      Array.from({ length: 2000 }, (_, i) => `- path: ${start}${i}${end}\n`);
    const open = ['public:\n', ...paths('/a/b/c/p', '')];
    const text = good.replace('  - path: /api/*\n', paths('/a/:account_id/:x/r', '/*').join('')) + open.join('');
    expect(await problemsOf(text)).to.deep.equal([]);
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
      'more than 256 KiB': ['#'.repeat(256 * 1024 + 1), 'the file is larger than 262144 bytes'],
      'a key that is indented otherwise': [
        'a:\n  - b: c\n   d: e\n',
        'a closing quote, a comma, a colon or a space is missing, or a line above is indented otherwise',
      ],
      'a key without a space': ['a:\n  b:c\n  d: e\n', 'a key must be on one line and end in a colon and a space'],
      '256 KiB': ['#'.repeat(256 * 1024), 'the file is empty'],
    };
    for (const [name, [content, message]] of Object.entries(files)) {
      it(`is refused as ${name}: ${message}`, async () => {
        expect(await messageOf(writeFixture('unreadable.yaml', content))).to.equal(message);
      });
    }

    it('is refused when it does not exist', async () => {
      expect(await messageOf(join(fixtureFolder(), 'nowhere', 'config.yaml'))).to.equal('the file does not exist');
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
});
