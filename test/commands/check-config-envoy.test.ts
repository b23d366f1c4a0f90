// check-config --envoy: a bootstrap that agrees with the configuration, and one that does not.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { configOf, fixtureFolder, writeFixture } from '../../lab/config-file.ts';
import { example, exampleFile, root, run } from '../config/example.ts';

describe('check-config', () => {
  describe('--envoy', () => {
    const envoy = readFileSync(new URL('envoy.yaml', root), 'utf8');
    const lint = (name: string, content: unknown) =>
      run('check-config', '--config', exampleFile, '--envoy', writeFixture(name, content));

    it('prints one line for the shipped envoy.yaml, which has no dangerous setting', async () => {
      const { code, stdout, stderr } = await lint('envoy.yaml', envoy);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect(stdout.split('\n').at(-2)).to.match(
        /^# .*envoy\.yaml: no dangerous setting found: 0 findings, 0 not judged$/,
      );
      expect(await configOf(stdout)).to.deep.equal(await configOf(example));
    });

    it('accepts the bootstrap as JSON indented with tabs', async () => {
      expect(await lint('envoy.json', JSON.stringify(parse(envoy), null, '\t'))).to.include({ code: 0, stderr: '' });
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
        ['false', `${manager}.normalize_path`, 'normalize-path'],
        ['typed_co', `${manager}.http_filters[1].typed_config.status_on_error`, 'status-on-error'],
        [
          broken.match(/failure_mode_allow: (on.{6})/)?.[1],
          `${manager}.http_filters[1].typed_config.failure_mode_allow`,
          'failure-mode-allow',
        ],
      ]);
    });

    it('suggests the command in the first line of a rendered file without repeating it, and envoy-parts for another', async () => {
      const broken = envoy.replace('failure_mode_allow: false', 'failure_mode_allow: true');
      const hint = 'account-authz check-config: to print the settings to use, run';
      const made = await lint('made.yaml', broken.replace('config.example.yaml\n', 'config.yaml; touch pwned\n'));
      expect(made.stderr.split('\n').at(-3)).to.equal(`${hint} the command in the first line of the file again`);
      expect(made.stderr).to.not.contain('pwned');
      const own = await lint('own.yaml', broken.slice(broken.indexOf('\n') + 1));
      expect(own.stderr.split('\n').at(-3)).to.equal(
        `${hint}: account-authz render envoy-parts --config ${exampleFile}`,
      );
    });

    it('reports a missing route at the virtual hosts of the bootstrap', async () => {
      const config = writeFixture('more.yaml', example.replace(/^routes:\n/m, 'routes:\n  - path: /v2/billing/*\n'));
      const bootstrap = writeFixture('less.yaml', envoy);
      const { code, stderr } = await run('check-config', '--config', config, '--envoy', bootstrap);
      expect(code).to.equal(1);
      const [, line] =
        /less\.yaml:(\d+):\d+: \S+virtual_hosts: have no route to the service for "\/v2\/billing\/\*": /.exec(stderr) ??
        [];
      expect(envoy.split('\n')[Number(line) - 1]).to.match(/virtual_hosts:/);
    });

    it('reports a mistake at its YAML anchor, and finds nothing in keys that Envoy ignores', async () => {
      const { code, stderr } = await lint(
        'anchored.yaml',
        `!ignore settings: &open { failure_mode_allow: true }\n${envoy.replace('failure_mode_allow: false', 'filter_metadata: *open')}`,
      );
      expect(code).to.equal(0);
      expect(stderr).to.match(/^not-judged: \S+anchored\.yaml:1:9: settings: [^\n]+\n$/);
      const shared = await lint(
        'shared.yaml',
        envoy
          .replace('merge_slashes: true', 'merge_slashes: &on true')
          .replace('failure_mode_allow: false', 'failure_mode_allow: *on'),
      );
      expect(shared.stderr).to.match(/shared\.yaml:\d+:43: \S+failure_mode_allow: is true: /);
    });

    it('judges a file without what Envoy ignores, and names each such key', async () => {
      for (const [key, rule] of [
        ['rules:', 'guard-missing'],
        ['early_header_mutation_extensions:', 'owned-headers-kept'],
        ['failure_mode_allow:', undefined],
      ] as const) {
        const { code, stderr } = await lint('ignoring.yaml', envoy.replace(` ${key}`, ` !ignore ${key}`));
        expect([code, /\[([a-z-]+)\]$/m.exec(stderr)?.[1]]).to.deep.equal([rule === undefined ? 0 : 1, rule]);
        expect(stderr).to.match(new RegExp(`^not-judged: \\S+ \\S+${key} is ignored by Envoy`, 'm'));
      }
    });

    const unreadable: readonly (readonly [name: string, content: unknown, rule: string])[] = [
      ['an empty file', '', 'unreadable-file'],
      ['broken YAML', 'a: [', 'unreadable-file'],
      ['bytes that are not UTF-8', new Uint8Array([0xff]), 'unreadable-file'],
      ['a list', '[]', 'unreadable-file'],
      ['a number', '1', 'unreadable-file'],
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
      ['a port that Envoy reads as octal', envoy.replace('port_value: 8000', 'port_value: 017500'), 'unreadable-value'],
      ['a port above 65535', envoy.replace('port_value: 8000', 'port_value: 73536'), 'unreadable-value'],
      ['a value with a tag', envoy.replace('port_value: 8000', 'port_value: !!int "017500"'), 'unreadable-value'],
    ];
    for (const [name, content, rule] of unreadable) {
      it(`exits 1 for ${name}`, async () => {
        const { code, stdout, stderr } = await lint('odd.yaml', content);
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
        expect(stderr).to.match(new RegExp(`^\\S+odd\\.yaml:\\d+:\\d+: .* \\[${rule}\\]\\n`));
      });
    }

    it('names what it does not judge, exits 0 for that alone, and 1 with --strict', async () => {
      const text = envoy.replace(
        'merge_slashes: true',
        'merge_slashes: true\n                typed_header_validation_config: { a: b }',
      );
      const { code, stdout, stderr } = await lint('unknown.yaml', text);
      expect(code).to.equal(0);
      expect(stderr).to.match(
        /^not-judged: \S+unknown\.yaml:\d+:\d+: \S+typed_header_validation_config: is not judged: [^\n]+\n$/,
      );
      expect(stdout.split('\n').at(-2)).to.match(/no dangerous setting found: 0 findings, 1 not judged$/);
      const strict = await run(
        'check-config',
        '--strict',
        '--config',
        exampleFile,
        '--envoy',
        writeFixture('unknown.yaml', text),
      );
      expect(strict.code).to.equal(1);
      expect(strict.stderr.split('\n').at(-2)).to.match(/unknown\.yaml: 0 findings, 1 not judged$/);
    });

    it('names places without lines in JSON of more than 200,000 values', async () => {
      const large = {
        ...parse(envoy),
        node: { metadata: { a: Array.from({ length: 200_000 }, () => 1) } },
        unknown: 1,
      };
      const { stderr } = await lint('large.json', JSON.stringify(large));
      expect(stderr).to.match(/^not-judged: \S+large\.json: unknown: is no field of Envoy/);
    });

    const indented = envoy.replace(/^/gm, '    ');
    const foreign: Readonly<Record<string, readonly [content: string, says: RegExp]>> = {
      'a ConfigMap with a bootstrap': [
        `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: envoy }\ndata:\n  envoy.yaml: |\n${indented}`,
        /a bootstrap in the key envoy\.yaml: kubectl get configmap envoy -o jsonpath='\{\.data\.envoy\\\.yaml\}'/,
      ],
      'a manifest without one': ['apiVersion: apps/v1\nkind: Deployment\n', /is a Kubernetes manifest \(Deployment\)/],
      'a file-based LDS': [
        'resources:\n  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener\n',
        /is a list of resources/,
      ],
      '100,001 brackets': ['['.repeat(100_001), /it is no JSON that can be read: nested too deep/],
      'YAML of many lines': [`admin: {}\n${'#\n'.repeat(200_000)}`, /has more than 200000 lines: pass it as JSON/],
      'a list of listeners': ['- name: a\n- name: b\n', /is a list, not a bootstrap/],
      'a single cluster': ['name: a\nload_assignment: { cluster_name: a }\n', /is a single resource/],
      'a compose file': ['services: { envoy: { image: envoy } }\n', /has no member of a bootstrap/],
      'names of version 2': [
        'static_resources:\n  listeners:\n    - filter_chains: [{ filters: [{ name: envoy.http_connection_manager, config: { stat_prefix: a } }] }]\n',
        /has names of version 2/,
      ],
      'placeholders of a template': ['static_resources: {{ .Values.listeners }}\n', /has placeholders of a template/],
    };
    for (const [name, [content, says]] of Object.entries(foreign)) {
      it(`says what a file is that is no bootstrap: ${name}`, async () => {
        const { code, stderr } = await lint('foreign.yaml', content);
        expect(code).to.equal(1);
        expect(stderr).to.match(says);
      });
    }

    it('exits 1 for a bootstrap that does not exist', async () => {
      const file = `${fixtureFolder()}/nowhere.yaml`;
      expect(await run('check-config', '--config', exampleFile, '--envoy', file)).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: `${file}:1:1: the file does not exist [unreadable-file]\n${file}: 1 finding, 0 not judged\n`,
      });
    });

    it('reports problems of the configuration before it reads the bootstrap', async () => {
      const file = writeFixture('bad.yaml', 'issuers: []\nroutes: []\nroles: {}\n');
      const { code, stderr } = await run('check-config', '--config', file, '--envoy', '/nowhere.yaml');
      expect({ code, lines: stderr.split('\n').length }).to.deep.equal({ code: 1, lines: 4 });
    });
  });
});
