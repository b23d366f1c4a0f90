// The commands check-config and schema, the JSON Schema, and config.example.yaml.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { isIdentityField } from '../../src/authz/principal.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { type CommandName, type Outcome, runCommand } from '../support/command.ts';
import { changed, configOf, fixtureFolder, smallestConfig, writeFixture } from '../support/config-file.ts';

const root = new URL('../../', import.meta.url);
const exampleFile = new URL('config.example.yaml', root).pathname;
const example = readFileSync(exampleFile, 'utf8');

const run = (command: CommandName, ...args: readonly string[]): Promise<Outcome> => runCommand(command, args);

describe('check-config', () => {
  it('prints the effective settings of a valid file', async () => {
    const { code, stdout, stderr } = await run('check-config', '--config', writeFixture('good.yaml', smallestConfig()));
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(parse(stdout)).to.deep.include({ listen: '127.0.0.1:9191', identityHeaders: 'x-auth-' });
  });

  it('prints settings that load as the same configuration', async () => {
    for (const content of [smallestConfig(), changed({ 'account.query': ['a'] }), example]) {
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

  describe('--envoy', () => {
    const envoy = readFileSync(new URL('envoy.yaml', root), 'utf8');
    const lint = (name: string, content: unknown) =>
      run('check-config', '--config', exampleFile, '--envoy', writeFixture(name, content));

    it('prints one line for the shipped envoy.yaml, which has no dangerous setting', async () => {
      const { code, stdout, stderr } = await lint('envoy.yaml', envoy);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect(stdout.split('\n').at(-2)).to.match(/^# .*envoy\.yaml: no dangerous setting found$/);
      expect(await configOf(stdout)).to.deep.equal(await configOf(example));
    });

    it('accepts the bootstrap as JSON indented with tabs', async () => {
      expect(await lint('envoy.json', JSON.stringify(parse(envoy), undefined, '\t'))).to.include({
        code: 0,
        stderr: '',
      });
    });

    it('reports each dangerous setting with line, column and place, and exits 1', async () => {
      const broken = envoy
        .replace('failure_mode_allow: false', 'failure_mode_allow: on')
        .replace(/^ *status_on_error: .*\n/m, '')
        .replace('normalize_path: true', 'normalize_path: false');
      const { code, stdout, stderr } = await lint('broken.yaml', broken);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      const lines = broken.split('\n');
      const manager = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config';
      const found = stderr.split('\n').flatMap(line => {
        const [, ...parts] = /broken\.yaml:(\d+):(\d+): (\S+): .* \[(.+)\]$/.exec(line) ?? [];
        return parts.length === 0 ? [] : [parts];
      });
      expect(
        found.map(([line, column, place, rule]) => [
          lines[Number(line) - 1]?.slice(Number(column) - 1, Number(column) + 7),
          place,
          rule,
        ]),
      ).to.deep.equal([
        [broken.match(/normalize_path: (false.{3})/)?.[1], `${manager}.normalize_path`, 'normalize-path'],
        ['typed_co', `${manager}.http_filters[1].typed_config.status_on_error`, 'status-on-error'],
        [
          broken.match(/failure_mode_allow: (on.{6})/)?.[1],
          `${manager}.http_filters[1].typed_config.failure_mode_allow`,
          'failure-mode-allow',
        ],
      ]);
    });

    it('suggests the render command that made the file, or envoy-parts for another file', async () => {
      const broken = envoy.replace('failure_mode_allow: false', 'failure_mode_allow: true');
      const hint = 'account-authz check-config: to print the settings to use, run: account-authz render';
      const made = await lint('made.yaml', broken.replace('config.example.yaml\n', 'other.yaml --trusted-hops 1\n'));
      expect(made.stderr.split('\n').at(-2)).to.equal(`${hint} envoy --trusted-hops 1 --config ${exampleFile}`);
      const own = await lint('own.yaml', broken.slice(broken.indexOf('\n') + 1));
      expect(own.stderr.split('\n').at(-2)).to.equal(`${hint} envoy-parts --config ${exampleFile}`);
    });

    it('reports a missing route at the virtual hosts of the bootstrap', async () => {
      const config = writeFixture(
        'more.yaml',
        `${example.replace(/^routes:\n/m, 'routes:\n  - path: /v2/billing/*\n')}`,
      );
      const { code, stderr } = await run(
        'check-config',
        '--config',
        config,
        '--envoy',
        writeFixture('less.yaml', envoy),
      );
      expect(code).to.equal(1);
      const [, line] =
        /less\.yaml:(\d+):\d+: \S+virtual_hosts: have no route to the service for "\/v2\/billing\/\*": /.exec(stderr) ??
        [];
      expect(envoy.split('\n')[Number(line) - 1]).to.match(/virtual_hosts:/);
    });

    it('reports a mistake at its YAML anchor, and accepts keys that Envoy ignores', async () => {
      const { stderr } = await lint(
        'anchored.yaml',
        `!ignore settings: &open { failure_mode_allow: true }\n${envoy.replace('failure_mode_allow: false', 'filter_metadata: *open')}`,
      );
      expect(stderr).to.equal('');
      const shared = await lint(
        'shared.yaml',
        envoy
          .replace('merge_slashes: true', 'merge_slashes: &on true')
          .replace('failure_mode_allow: false', 'failure_mode_allow: *on'),
      );
      expect(shared.stderr).to.match(/shared\.yaml:\d+:43: \S+failure_mode_allow: is true: /);
    });

    const unreadable: readonly (readonly [name: string, content: unknown, rule: string])[] = [
      ['an empty file', '', 'unreadable-file'],
      ['broken YAML', 'a: [', 'unreadable-file'],
      ['bytes that are not UTF-8', new Uint8Array([0xff]), 'unreadable-file'],
      ['a list', '[]', 'unreadable-value'],
      ['a number', '1', 'unreadable-value'],
      ['deep nesting', `a: ${'['.repeat(5000)}${']'.repeat(5000)}`, 'unreadable-file'],
      [
        'aliases of aliases',
        `a: &a [x]\n${Array.from({ length: 40 }, (_, i) => `b${i}: &b${i} [${i ? `*b${i - 1}, *b${i - 1}` : '*a'}]`).join('\n')}`,
        'unreadable-file',
      ],
      [
        'a key given twice',
        envoy.replace('merge_slashes: true', 'merge_slashes: true\n                merge_slashes: true'),
        'unreadable-file',
      ],
    ];
    for (const [name, content, rule] of unreadable) {
      it(`exits 1 for ${name}`, async () => {
        const { code, stdout, stderr } = await lint('odd.yaml', content);
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr).to.match(new RegExp(`^\\S+odd\\.yaml:\\d+:\\d+: .* \\[${rule}\\]\\n`));
      });
    }

    it('exits 1 for a bootstrap that does not exist', async () => {
      const file = `${fixtureFolder()}/nowhere.yaml`;
      expect(await run('check-config', '--config', exampleFile, '--envoy', file)).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: `${file}:1:1: the file does not exist [unreadable-file]\n`,
      });
    });

    it('reports problems of the configuration before it reads the bootstrap', async () => {
      const file = writeFixture('bad.yaml', 'issuers: []\nroutes: []\nroles: {}\n');
      const { code, stderr } = await run('check-config', '--config', file, '--envoy', '/nowhere.yaml');
      expect({ code, lines: stderr.split('\n').length }).to.deep.equal({ code: 1, lines: 4 });
    });
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

interface JsonSchema {
  readonly description?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
}

/** Each key with its schema, at any depth, by its path such as `issuers.claims.uid`. */
function keysOf(part: JsonSchema, parent = ''): (readonly [key: string, schema: JsonSchema])[] {
  const own = Object.entries(part.properties ?? {}).map(([name, inner]) => [`${parent}${name}`, inner] as const);
  return [
    ...own,
    ...own.flatMap(([key, inner]) => keysOf(inner, `${key}.`)),
    ...(part.items ? keysOf(part.items, parent) : []),
  ];
}

const jsonSchema = toJsonSchema();
const describedKeys = keysOf(jsonSchema as JsonSchema);

describe('JSON Schema of the configuration', () => {
  it('equals the output of the schema command', async () => {
    const { code, stdout, stderr } = await run('schema');
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).to.deep.equal(JSON.parse(JSON.stringify(jsonSchema)));
  });

  it('exits 1 for an argument', async () => {
    expect((await run('schema', 'x')).code).to.equal(1);
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

  it('includes keys of every depth', () => {
    expect(describedKeys.map(([key]) => key)).to.include.members([
      'tls',
      'tls.clientCaFile',
      'keys.cacheDirectory',
      'shutdown.graceSeconds',
    ]);
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
    const reader = z.fromJSONSchema(
      JSON.parse(JSON.stringify(jsonSchema, (key, value) => (key === 'oneOf' ? undefined : value))),
    );
    expect(reader.safeParse(parse(example)).error?.issues).to.equal(undefined);
    expect(reader.safeParse({ ...parse(example), nope: 1 }).success).to.equal(false);
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
      account: { headers: ['x-account-id'], query: ['account_id'], parameter: 'account_id', dots: false },
    });
  });

  for (const [key] of describedKeys) {
    it(`shows ${key}`, () => {
      expect(example).to.match(new RegExp(`(?:^|[\\s{])${key.split('.').at(-1)}: ?`, 'm'));
    });
  }
});
