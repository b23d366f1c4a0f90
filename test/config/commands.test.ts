// The check-config and schema commands: their output and exit codes.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { parse } from 'yaml';
import { changed, configOf, fixtureFolder, smallestConfig, writeFixture } from '../../lab/config-file.ts';
import { isIdentityField } from '../../src/authz/principal.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { example, exampleFile, run } from './example.ts';

interface JsonSchema {
  readonly description?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
}

const jsonSchema = toJsonSchema();

const describedKeys = keysOf(jsonSchema as JsonSchema);

describe('check-config', () => {
  it('prints the effective settings of a valid file', async () => {
    const { code, stdout, stderr } = await run('check-config', '--config', writeFixture('good.yaml', smallestConfig()));
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(parse(stdout)).to.deep.include({ listen: '127.0.0.1:9191', identityHeaders: 'x-auth-' });
  });

  it('prints settings that load as the same configuration', async () => {
    const realms = { issuer: 'https://id.test/{acc}', jwksUrl: 'https://id.test/{acc}/keys', accounts: ['a', 'b'] };
    const ofAccounts = changed({ 'issuers.0': { ...smallestConfig().issuers[0], ...realms } });
    for (const content of [smallestConfig(), changed({ 'account.query': ['a'] }), ofAccounts, example]) {
      const { stdout } = await run('check-config', '--config', writeFixture('first.yaml', content));
      expect(await configOf(stdout)).to.deep.equal(await configOf(content));
    }
  });

  it('L-003 prints control characters as YAML escapes with the same value', async () => {
    const unprintable = 'a\u2067m\u202e\u2028\u{e0041}"\\ü';
    const content = changed({
      'issuers.0.audiences': [unprintable, 'b\u200b'],
      'issuers.0.claims': { uid: unprintable },
      'keys.cacheDirectory': '/tmp/a\nb\u0007\u009b',
    });
    const { code, stdout } = await run('check-config', '--config', writeFixture('unprintable.yaml', content));
    expect(code).to.equal(0);
    expect(stdout).to.match(/^[ -~\nü]+$/);
    expect(await configOf(stdout)).to.deep.equal(await configOf(content));
  });

  it('L-003 escapes and truncates a file name', async () => {
    const { stderr } = await run('check-config', '--config', `\u009b31m\u202e${'/x'.repeat(1500)}`);
    expect(stderr).to.match(/^\\u\{9b\}31m\\u\{202e\}[/x]{100,2100}…:1:1: the file does not exist\n$/);
  });

  it('prints one line per problem and exits 1', async () => {
    const file = writeFixture('bad.yaml', 'issuers: []\nroutes: []\nroles: {}\n');
    expect(await run('check-config', '--config', file)).to.deep.equal({
      code: 1,
      stdout: '',
      stderr:
        `${file}:1:1: issuers: must name at least one issuer\n` +
        `${file}:2:1: routes: must name at least one route\n` +
        `${file}:3:1: roles: must name at least one role\n`,
    });
  });

  it('skips only the files that the configuration names with --without-files', async () => {
    const files = { tls: { certFile: '/nowhere.crt', keyFile: '/nowhere.key' }, revocation: { file: '/nowhere.yaml' } };
    const file = writeFixture('elsewhere.yaml', { ...smallestConfig(), ...files });
    expect((await run('check-config', '--config', file)).code).to.equal(1);
    const { code, stdout } = await run('check-config', '--without-files', '--config', file);
    expect(code).to.equal(0);
    expect(parse(stdout)).to.deep.include(files);
    const bad = writeFixture('bad-elsewhere.yaml', { ...smallestConfig(), ...files, roles: {} });
    expect((await run('check-config', '--without-files', '--config', bad)).stderr).to.match(
      /^\S+: roles: must name at least one role\n$/,
    );
  });

  it('checks a revocation list that is there with --without-files', async () => {
    writeFixture('list-without-files.jsonl', '{"jti":"a"}\n{"uid":1}\n');
    const files = { tls: { certFile: '/nowhere.crt', keyFile: '/nowhere.key' } };
    const revocation = { file: 'list-without-files.jsonl' };
    const file = writeFixture('without-files.yaml', { ...smallestConfig(), ...files, revocation });
    const { code, stderr } = await run('check-config', '--without-files', '--config', file);
    expect(code).to.equal(1);
    expect(stderr).to.match(/^\S+list-without-files\.jsonl:2:1: uid: must be text: put it in quotes\n$/);
  });

  it('prints the problems of the revocation list last, with their place in the list', async () => {
    const list = writeFixture('bad-list.jsonl', '{"jti":"a"}\n{"uid":1,"acc":"a/b"}\n');
    const file = writeFixture('bad-with-list.yaml', `apps: []\nrevocation: { file: bad-list.jsonl }\n`);
    const { code, stderr } = await run('check-config', '--config', file);
    expect(code).to.equal(1);
    expect(stderr.split('\n').slice(3)).to.deep.equal([
      `${file}:1:1: apps: must name at least one app`,
      `${list}:2:1: uid: must be text: put it in quotes`,
      `${list}:2:1: acc: must be 1 to 128 of A-Z a-z 0-9 . _ ~ -, and not . or ..`,
      '',
    ]);
  });

  it('reports a missing revocation list, and prints the absolute name of an existing one', async () => {
    const config = (name: string): unknown => changed({ 'revocation.file': name });
    const { stderr } = await run('check-config', '--config', writeFixture('no-list.yaml', config('nowhere.jsonl')));
    expect(stderr).to.match(/^\S+no-list\.yaml:1:\d+: revocation\.file: the file does not exist\n$/);
    const list = writeFixture('list.jsonl', '');
    const { stdout } = await run('check-config', '--config', writeFixture('with-list.yaml', config('list.jsonl')));
    expect(parse(stdout).revocation).to.deep.equal({ file: list });
  });

  it('exits 1 for a file that does not exist', async () => {
    const file = `${fixtureFolder()}/nowhere.yaml`;
    expect(await run('check-config', '--config', file)).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: `${file}:1:1: the file does not exist\n`,
    });
  });

  it('reads /etc/account-authz/config.yaml by default', async () => {
    expect((await run('check-config')).stderr).to.match(/^\/etc\/account-authz\/config\.yaml:1:1: /);
  });

  const usage: readonly (readonly [args: readonly string[], problem: string])[] = [
    [['--envoy'], '--envoy must have a value'],
    [['--token=eyJhbGciOiJub25lIn0'], 'unknown option --token'],
    [['-x'], 'unknown option -x'],
    [['eyJhbGciOiJub25lIn0'], 'unexpected argument'],
    [['--config'], '--config must have a value'],
    [['--help=1'], '--help must have no value'],
  ];
  for (const [args, problem] of usage) {
    it(`exits 1 with "${problem}" for ${args.join(' ')}`, async () => {
      expect(await run('check-config', ...args)).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: `account-authz check-config: ${problem}: account-authz check-config --help lists the options\n`,
      });
    });
  }

  for (const name of ['check-config', 'schema'] as const) {
    it(`prints the usage of ${name} for --help`, async () => {
      const { code, stdout, stderr } = await run(name, '--help');
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect(stdout).to.match(new RegExp(`^account-authz ${name}`));
    });
  }
});

describe('JSON Schema of the configuration', () => {
  it('equals the output of the schema command', async () => {
    const { code, stdout, stderr } = await run('schema');
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).to.deep.equal(JSON.parse(JSON.stringify(jsonSchema)));
  });

  it('uses draft 2020-12 and requires every key without a default', () => {
    expect(jsonSchema).to.deep.include({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      required: ['issuers', 'routes', 'roles'],
      additionalProperties: false,
    });
  });

  it('requires exactly one key source per issuer', () => {
    expect(jsonSchema.properties?.issuers)
      .to.have.nested.property('items.oneOf')
      .that.deep.equals([{ required: ['jwksUrl'] }, { required: ['discoveryUrl'] }, { required: ['jwksFile'] }]);
  });

  for (const [key, part] of describedKeys) {
    it(`describes ${key}`, () => {
      expect(part.description).to.match(/^[A-Z].+\.$/);
    });
  }

  const units: Readonly<Record<string, RegExp>> = { Seconds: /in seconds/, Bytes: /in bytes/ };
  for (const [suffix, unit] of Object.entries(units)) {
    for (const [key, part] of describedKeys.filter(([key]) => key.endsWith(suffix))) {
      it(`states the unit of ${key}`, () => {
        expect(part.description).to.match(unit);
        expect(part.type).to.equal('integer');
      });
    }
  }

  it('has the grammar of identity fields', () => {
    const { properties } = jsonSchema as unknown as { properties: { apps: { items: { pattern: string } } } };
    const pattern = new RegExp(properties.apps.items.pattern);
    const characters = Array.from({ length: 0x100 }, (_, code) => String.fromCharCode(code));
    expect(characters.filter(each => pattern.test(each))).to.deep.equal(characters.filter(isIdentityField));
  });

  it('accepts the example and rejects an unknown key', () => {
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(jsonSchema);
    expect(validate(parse(example)), JSON.stringify(validate.errors)).to.equal(true);
    expect(validate({ ...parse(example), nope: 1 })).to.equal(false);
  });
});

describe('config.example.yaml', () => {
  it('is a valid configuration', async () => {
    expect(await run('check-config', '--config', exampleFile)).to.deep.include({ code: 0, stderr: '' });
  });

  it('shows the defaults', async () => {
    const { issuers, routes, roles, account, ...shown } = await configOf(example);
    const { issuers: own, routes: _, roles: __, account: ___, ...defaults } = await configOf(smallestConfig());
    expect(shown).to.deep.equal(defaults);
    expect(issuers).to.deep.equal(own);
    const parameter = 'account_id';
    expect({ routes, roles, account }).to.deep.equal({
      routes: [
        { path: '/api/subscriptions/*', characters: 'strict' },
        { path: '/api/subscriptions/accounts/:account_id/*', roles: ['owner', 'admin'], characters: 'strict' },
      ],
      roles: new Map([
        ['owner', ['*']],
        ['admin', ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']],
        ['member', ['GET', 'HEAD']],
      ]),
      account: { headers: ['x-account-id'], query: [parameter], parameter, dots: false, case: 'exact' },
    });
  });

  for (const [key] of describedKeys) {
    it(`shows ${key}`, () => {
      expect(example).to.match(new RegExp(`(?:^|[\\s{])${key.split('.').at(-1)}: ?`, 'm'));
    });
  }
});

/** Each key with its schema, at any depth, by its path such as `issuers.claims.uid`. */
function keysOf(part: JsonSchema, parent = ''): (readonly [key: string, schema: JsonSchema])[] {
  const own = Object.entries(part.properties ?? {}).map(([name, inner]) => [`${parent}${name}`, inner] as const);
  return [
    ...own,
    ...own.flatMap(([key, inner]) => keysOf(inner, `${key}.`)),
    ...(part.items ? keysOf(part.items, parent) : []),
  ];
}
