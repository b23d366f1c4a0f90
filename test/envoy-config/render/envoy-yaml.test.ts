// The shipped envoy.yaml: its timeouts, routes and header mutations agree with the code and with the example configuration.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { renderedEnvoy } from '../../../lab/envoy-bootstrap.ts';
import { createIdentityHeaders } from '../../../src/envoy-config/headers.ts';

const file = fileURLToPath(new URL('../../../envoy.yaml', import.meta.url));
const exampleFile = fileURLToPath(new URL('../../../config.example.yaml', import.meta.url));
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

describe('envoy.yaml', () => {
  // A timeout that is missing changes no answer of any other test.
  describe('timeouts', () => {
    const timeouts: readonly (readonly [name: string, path: Path, value: string])[] = [
      ['a check has 0.5 s', [...extAuthz, 'grpc_service', 'timeout'], '0.5s'],
      ['a connection attempt to account-authz has 0.1 s', [...cluster('account-authz'), 'connect_timeout'], '0.1s'],
      ['request headers have 10 s', [...manager, 'request_headers_timeout'], '10s'],
      ['an idle stream has 300 s', [...manager, 'stream_idle_timeout'], '300s'],
    ];
    for (const [name, path, value] of timeouts) {
      it(name, () => {
        expect(at(path)).to.equal(value);
      });
    }
  });

  describe('ext_authz filter', () => {
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
    it('matches whole path segments, and answers all other paths with 404', () => {
      const matches = (at(routes) as { match: unknown }[]).map(({ match }) => match);
      expect(matches).to.deep.equal([{ path_separated_prefix: '/api/subscriptions' }, { prefix: '/' }]);
      expect(at([...routes, 'nothing-else', 'direct_response'])).to.deep.equal({ status: 404 });
    });

    it('forwards to the upstream over HTTP/1.1, whatever protocol the client uses', () => {
      const route = at([...routes, '/api/subscriptions', 'route']);
      expect(route).to.deep.equal({ cluster: 'upstream', timeout: '0s' });
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
      ...':path :method :authority host content-length transfer-encoding connection te cookie x-account-id x-forwarded-for x-envoy-original-path x-auth x-author-id x-authority proxy-authorization x-authorization'.split(
        ' ',
      ),
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
      const shown = createIdentityHeaders('x-auth-').strayNames(others);
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
      const names =
        'x-original-url x-rewrite-url x-script-name script-name x-forwarded-prefix x-http-method-override x-http-method x-method-override'.split(
          ' ',
        );
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
      for (const name of ['x-envoy-auth-partial-body', 'x-envoy-auth-failure-mode-allowed']) {
        expect(removals(early).some(expression => wholly(expression).test(name))).to.equal(true);
      }
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
