// The shipped envoy.yaml: valid on every supported Envoy without a warning, and consistent with docs/ and the code.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createIdentityHeaders } from '../../src/envoy/identity-headers.ts';
import { envoyBinary, envoyVersions, renderedEnvoy } from '../support/envoy.ts';

const file = fileURLToPath(new URL('../../envoy.yaml', import.meta.url));
const exampleFile = fileURLToPath(new URL('../../config.example.yaml', import.meta.url));
const text = await readFile(file, 'utf8');

type Path = readonly (string | number)[];

/** The value at a path of the parsed file; a name in place of an index finds the list item with that name. */
function at(path: Path, within: unknown = parse(text)): unknown {
  return path.reduce<unknown>((value, key) => {
    if (Array.isArray(value) && typeof key === 'string') return value.find(item => item.name === key);
    return typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>)[key] : undefined;
  }, within);
}

const listener = (name: string): Path => ['static_resources', 'listeners', name];
const cluster = (name: string): Path => ['static_resources', 'clusters', name];
const upstreamOptions = (name: string): Path => [
  ...cluster(name),
  'typed_extension_protocol_options',
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
];
const manager: Path = [...listener('public'), 'filter_chains', 0, 'filters', 0, 'typed_config'];
const filter = (name: string): Path => [...manager, 'http_filters', `envoy.filters.http.${name}`, 'typed_config'];
const routes: Path = [...manager, 'route_config', 'virtual_hosts', 0, 'routes'];
const extAuthz = filter('ext_authz');
const retryPolicy: Path = [...extAuthz, 'grpc_service', 'retry_policy'];

interface Validation {
  readonly valid: boolean;
  readonly output: string;
}

/** Runs `envoy --mode validate`. A valid configuration logs nothing above `info`. */
async function validate(version: string, configuration: readonly string[]): Promise<Validation> {
  const binary = await envoyBinary(version);
  const args = ['--mode', 'validate', '--disable-hot-restart', '--log-level', 'warning', ...configuration];
  return new Promise(resolve => {
    execFile(binary, args, (error, stdout, stderr) => resolve({ valid: error === null, output: stdout + stderr }));
  });
}

describe('envoy.yaml', function () {
  this.timeout(120_000);

  for (const version of envoyVersions) {
    it(`is valid on Envoy ${version} without a warning`, async () => {
      const { valid, output } = await validate(version, ['--config-path', file]);
      expect({ valid, output: output.trim() }).to.deep.equal({ valid: true, output: `configuration '${file}' OK` });
    });
  }

  // `# setting: value # needs 1.37 …`
  const optional = Array.from(
    text.matchAll(/^( *)# (\w+: .+) # needs (1\.\d+).*$/gm),
    ([line, indent, setting, needs]) => ({
      line,
      setting: `${indent}${setting}`,
      needs: Number(needs?.slice(2)),
    }),
  );
  const minorOf = (version: string): number => Number(version.split('.')[1]);

  it('has comments with optional settings for newer Envoy versions', () => {
    expect(optional.map(({ setting }) => setting.trim().split(':')[0])).to.deep.equal(['allow_paths', 'shadow_mode']);
  });

  for (const { line, setting, needs } of optional) {
    for (const version of envoyVersions) {
      const known = minorOf(version) >= needs;
      it(`has the optional ${setting.trim().split(':')[0]}, which Envoy ${version} ${known ? 'accepts' : 'rejects'}`, async () => {
        const { valid, output } = await validate(version, ['--config-yaml', text.replace(line, setting)]);
        expect({ valid, unknownField: /no\s+such\s+field/.test(output) }).to.deep.equal({
          valid: known,
          unknownField: !known,
        });
      });
    }
  }

  describe('addresses', () => {
    const addresses: readonly {
      readonly name: string;
      readonly path: Path;
      readonly address: string;
      readonly port: number;
    }[] = [
      { name: 'the listener', path: [...listener('public'), 'address'], address: '0.0.0.0', port: 8080 },
      { name: 'readiness', path: [...listener('readiness'), 'address'], address: '0.0.0.0', port: 8081 },
      { name: 'the admin interface, on loopback', path: ['admin', 'address'], address: '127.0.0.1', port: 9901 },
      ...[
        { name: 'account-authz', port: 9191 },
        { name: 'upstream', port: 8000 },
      ].map(({ name, port }) => ({
        name,
        path: [...cluster(name), 'load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint', 'address'],
        address: '127.0.0.1',
        port,
      })),
    ];
    for (const { name, path, address, port } of addresses) {
      it(`has ${name} at ${address}:${port}`, () => {
        expect(at(path)).to.deep.equal({ socket_address: { address, port_value: port } });
      });
    }

    it('connects to account-authz at the listen address of the example configuration', async () => {
      expect(at(['listen'], parse(await readFile(exampleFile, 'utf8')))).to.equal('127.0.0.1:9191');
    });
  });

  describe('ext_authz filter', () => {
    const settings: readonly (readonly [name: string, path: Path, value: unknown])[] = [
      ['uses version 3 of the protocol', [...extAuthz, 'transport_api_version'], 'V3'],
      ['never fails open', [...extAuthz, 'failure_mode_allow'], false],
      ['answers a failure with 503', [...extAuthz, 'status_on_error'], { code: 'ServiceUnavailable' }],
      ['does not clear the route cache', [...extAuthz, 'clear_route_cache'], false],
      ['validates the header mutations of account-authz', [...extAuthz, 'validate_mutations'], true],
      ['sends raw header bytes', [...extAuthz, 'encode_raw_headers'], true],
      ['times out after 0.5 s', [...extAuthz, 'grpc_service', 'timeout'], '0.5s'],
      ['calls the cluster account-authz', [...extAuthz, 'grpc_service', 'envoy_grpc', 'cluster_name'], 'account-authz'],
      [
        'accepts responses of at most 64 KiB',
        [...extAuthz, 'grpc_service', 'envoy_grpc', 'max_receive_message_length'],
        65536,
      ],
      ['does not charge refusals to the upstream statistics', [...extAuthz, 'charge_cluster_response_stats'], false],
      ['records its latency in the filter state', [...extAuthz, 'emit_filter_state_stats'], true],
      [
        'retries when the connection or the stream fails',
        [...retryPolicy, 'retry_on'],
        'connect-failure,refused-stream,reset,unavailable',
      ],
      ['retries at most twice', [...retryPolicy, 'num_retries'], 2],
      [
        'backs off between 10 ms and 250 ms before a retry',
        [...retryPolicy, 'retry_back_off'],
        { base_interval: '0.01s', max_interval: '0.25s' },
      ],
      [
        'retries on another host',
        [...retryPolicy, 'retry_host_predicate', 0, 'name'],
        'envoy.retry_host_predicates.previous_hosts',
      ],
      ['tries up to 5 times to select another host', [...retryPolicy, 'host_selection_retry_max_attempts'], 5],
      [
        'allows 1024 concurrent retries',
        [...cluster('account-authz'), 'circuit_breakers', 'thresholds', 0, 'max_retries'],
        1024,
      ],
      ['times out a connection attempt after 0.1 s', [...cluster('account-authz'), 'connect_timeout'], '0.1s'],
    ];
    for (const [name, path, value] of settings) {
      it(name, () => {
        expect(at(path)).to.deep.equal(value);
      });
    }

    it('uses HTTP/2 to account-authz', () => {
      const options = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
      const path = [...cluster('account-authz'), 'typed_extension_protocol_options', options, 'explicit_http_config'];
      expect(at(path)).to.have.property('http2_protocol_options');
    });

    it('runs after header_mutation and before rbac and router', () => {
      const names = (at([...manager, 'http_filters']) as { name: string }[]).map(({ name }) => name);
      expect(names).to.deep.equal([
        'envoy.filters.http.header_mutation',
        'envoy.filters.http.ext_authz',
        'envoy.filters.http.rbac',
        'envoy.filters.http.router',
      ]);
    });

    it('sends account-authz every account header of the example configuration', async () => {
      const accountHeaders = at(['account', 'headers'], parse(await readFile(exampleFile, 'utf8'))) as string[];
      const shown = at([...extAuthz, 'allowed_headers', 'patterns']) as { exact?: string }[];
      const names = shown.flatMap(({ exact }) => exact ?? []);
      expect(names).to.include.members([
        'authorization',
        'x-request-id',
        'traceparent',
        'tracestate',
        ...accountHeaders,
      ]);
    });
  });

  describe('connection manager', () => {
    const settings: readonly (readonly [name: string, path: Path, value: unknown])[] = [
      ['resolves dot segments', ['normalize_path'], true],
      ['merges slashes', ['merge_slashes'], true],
      ['rejects escaped slashes', ['path_with_escaped_slashes_action'], 'REJECT_REQUEST'],
      [
        'rejects header names with underscores',
        ['common_http_protocol_options', 'headers_with_underscores_action'],
        'REJECT_REQUEST',
      ],
      ['accepts at most 100 headers', ['common_http_protocol_options', 'max_headers_count'], 100],
      ['accepts at most 32 KiB of headers', ['max_request_headers_kb'], 32],
      ['uses the remote address instead of forwarded headers', ['use_remote_address'], true],
      // The empty default would trust loopback and RFC 1918 addresses.
      ['has no empty internal_address_config', ['internal_address_config'], undefined],
      ["replaces the client's request id", ['preserve_external_request_id'], false],
      ['returns the request id in the response', ['always_set_request_id_in_response'], true],
      ['limits the time for request headers to 10 s', ['request_headers_timeout'], '10s'],
      ['limits the time for a request to 60 s', ['request_timeout'], '60s'],
      ['closes a stream that is idle for 60 s', ['stream_idle_timeout'], '60s'],
      ['limits a connection to 100 concurrent streams', ['http2_protocol_options', 'max_concurrent_streams'], 100],
      ['allows no upgrades', ['upgrade_configs'], undefined],
      ['does not rewrite refusals', ['local_reply_config'], undefined],
    ];
    for (const [name, path, value] of settings) {
      it(name, () => {
        expect(at([...manager, ...path])).to.deep.equal(value);
      });
    }

    it('matches whole path segments, and answers all other paths with 404', () => {
      const matches = (at(routes) as { match: unknown }[]).map(({ match }) => match);
      expect(matches).to.deep.equal([{ path_separated_prefix: '/api/subscriptions' }, { prefix: '/' }]);
      expect(at([...routes, 'nothing-else', 'direct_response'])).to.deep.equal({ status: 404 });
    });

    it('forwards to the upstream over HTTP/1.1, whatever protocol the client uses', () => {
      const route = at([...routes, '/api/subscriptions', 'route']);
      expect(route).to.deep.equal({ cluster: 'upstream', timeout: '15s' });
      expect(at([...upstreamOptions('upstream'), 'explicit_http_config'])).to.deep.equal({ http_protocol_options: {} });
    });

    it('forwards gRPC over HTTP/2 when rendered with --upstream-protocol auto', async () => {
      const rendered: unknown = parse(await renderedEnvoy('--upstream-protocol', 'auto'));
      const [first, ...rest] = at(routes, rendered) as unknown[];
      expect(rest).to.deep.equal(at(routes));
      expect(first).to.deep.equal({
        name: '/api/subscriptions gRPC',
        match: { path_separated_prefix: '/api/subscriptions', grpc: {} },
        route: { cluster: 'upstream-grpc', timeout: '0s', max_stream_duration: { grpc_timeout_header_max: '0s' } },
      });
      const assignments = ['upstream', 'upstream-grpc'].map(name =>
        at([...cluster(name), 'load_assignment', 'endpoints'], rendered),
      );
      expect(assignments[0]).to.deep.equal(assignments[1]);
      const options = at([...upstreamOptions('upstream-grpc'), 'explicit_http_config'], rendered);
      expect(options).to.deep.equal({ http2_protocol_options: {} });
    });

    it('turns the check off on no route to a cluster', () => {
      const unchecked = (at(routes) as { name: string; route?: unknown; typed_per_filter_config?: unknown }[]).filter(
        ({ route, typed_per_filter_config }) => route !== undefined && typed_per_filter_config !== undefined,
      );
      expect(unchecked).to.deep.equal([]);
    });
  });

  describe('header mutations', () => {
    const { names, lookAlikes } = createIdentityHeaders('x-auth-');
    const ours = [...names.values()];
    const foreign = [
      ':path',
      ':method',
      ':authority',
      'host',
      'content-length',
      'transfer-encoding',
      'connection',
      'te',
      'cookie',
      'x-account-id',
      'x-forwarded-for',
      'x-envoy-original-path',
      'x-auth',
      'x-author-id',
      'x-authority',
      'proxy-authorization',
      'x-authorization',
      '',
    ];
    const wholly = (expression: unknown): RegExp => new RegExp(`^(?:${expression})$`);
    const mutations = (path: Path): unknown =>
      at([...path, 0, 'remove_on_match', 'key_matcher', 'safe_regex', 'regex']);
    const removals = (path: Path): unknown[] =>
      (at(path) as unknown[]).map(
        each => at(['remove_on_match', 'key_matcher', 'safe_regex', 'regex'], each) ?? '(?!)',
      );
    const trailers: Path = [...filter('header_mutation'), 'mutations', 'request_trailers_mutations'];
    const early: Path = [...manager, 'early_header_mutation_extensions', 0, 'typed_config', 'mutations'];

    it('allow account-authz to change only the identity headers, their look-alikes and authorization', () => {
      const rules = [...extAuthz, 'decoder_header_mutation_rules'];
      expect(at(rules)).to.include({ disallow_all: true, disallow_system: true, disallow_is_error: true });
      const expression = wholly(at([...rules, 'allow_expression', 'regex']));
      const others = ['x-auth-', 'x-auth-email', 'x_auth_email', "x-auth-a.b!#$%&'*+^`|~"];
      const shown = createIdentityHeaders('x-auth-').shownToRemove(others);
      for (const name of [...ours, ...lookAlikes, ...shown, 'authorization']) expect(name).to.match(expression);
      for (const name of foreign) expect(name).not.to.match(expression);
    });

    it('remove identity names from client headers and trailers, whatever separates their words', () => {
      const expression = mutations(early);
      expect(mutations(trailers)).to.equal(expression);
      for (const name of [...ours, ...lookAlikes, 'x-auth-email', 'x_auth_email', 'x.auth.uid', 'x-auth-']) {
        expect(name).to.match(wholly(expression));
      }
      for (const name of [...foreign, 'authorization']) expect(name).not.to.match(wholly(expression));
    });

    it('remove every spelling of path and method override names from headers and trailers', () => {
      const names = ['x-original-url', 'x-rewrite-url', 'x-http-method-override', 'x-http-method', 'x-method-override'];
      const kept = ['x-method', 'x-http-methods', 'x-original-host', 'x-http', ...foreign];
      for (const path of [early, trailers]) {
        const expressions = removals(path);
        const isRemoved = (name: string): boolean => expressions.some(expression => wholly(expression).test(name));
        for (const name of names) {
          for (const sign of "-!#$%&'*+.^_`|~") expect(name.replaceAll('-', sign)).to.satisfy(isRemoved);
        }
        for (const name of kept.filter(each => path === early || each !== 'x-account-id')) {
          expect(name).not.to.satisfy(isRemoved);
        }
      }
    });

    it('remove the account headers of the example and authorization from trailers', async () => {
      const names = at(['account', 'headers'], parse(await readFile(exampleFile, 'utf8'))) as string[];
      const shown = at([...extAuthz, 'allowed_headers', 'patterns']) as { safe_regex?: { regex: string } }[];
      const isShown = (name: string) => shown.some(each => wholly(each.safe_regex?.regex).test(name));
      const isRemoved = (name: string) => removals(trailers).some(expression => wholly(expression).test(name));
      for (const name of names) {
        for (const sign of "-!#$%&'*+.^_`|~") {
          expect(name.replaceAll('-', sign)).to.satisfy(isRemoved);
          expect(name.replaceAll('-', sign)).to.satisfy(isShown);
        }
      }
      expect(at(trailers)).to.deep.include({ remove: 'authorization' });
    });

    it('remove the headers that ext_authz itself sets', () => {
      const removed = (at(early) as { remove?: string }[]).flatMap(({ remove }) => remove ?? []);
      expect(removed).to.include.members(['x-envoy-auth-partial-body', 'x-envoy-auth-failure-mode-allowed']);
    });
  });

  it('logs no query and no header except the request id', () => {
    const log = at([
      ...manager,
      'access_log',
      'envoy.access_loggers.stdout',
      'typed_config',
      'log_format',
      'json_format',
    ]);
    const formats = Object.values(log as Record<string, string>);
    expect(formats).to.include('%PATH(NQ)%');
    const headers = formats.filter(format => /%(REQ|RESP|TRAILER|REQUEST_HEADER)\b/.test(format));
    expect(headers).to.deep.equal(['%REQ(X-REQUEST-ID)%', '%REQ(:METHOD)%']);
  });
});
