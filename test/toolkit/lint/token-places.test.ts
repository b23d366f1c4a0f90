// The lint where a token may be in a header or a cookie and hosts name accounts: what Envoy must show, remove and leave alone.
import { expect } from 'chai';
import {
  defaultOptions,
  type EnvoyRelevantConfig,
  toEnvoySettings,
} from '../../../src/toolkit/envoy-settings/settings.ts';
import { type Tree, toPlain } from '../../../src/toolkit/envoy-settings/tree.ts';
import { lintEnvoy } from '../../../src/toolkit/lint/lint.ts';
import { bootstrapFile } from '../../../src/toolkit/render/bootstrap.ts';
import { perRoute, set } from './mistakes/planting.ts';
import { filter, type Part, shipped, typed } from './shipped.ts';

const { config } = shipped();
set(config, {
  token: {
    ...config.token,
    from: ['authorization', { header: 'x-token' }, { cookie: 'session' }],
    origins: ['https://app.example.com'],
  },
  account: { ...config.account, hosts: [':account_id.api.example.com'] },
  public: [{ path: '/static/*', methods: ['GET'], characters: 'strict' }],
});
const options = { ...defaultOptions, corsOrigins: ['https://app.example.com'] };
const { content } = bootstrapFile(toEnvoySettings(config as EnvoyRelevantConfig, options));

interface Parts {
  readonly root: Part;
  readonly manager: Part;
  readonly host: Part;
  readonly check: Part;
  readonly protectedRoute: Part;
  readonly publicRoute: Part;
}

function rulesAfter(bend: (parts: Parts) => unknown): readonly string[] {
  const [root = {}] = [content].flat().map(each => structuredClone(toPlain(each as Tree))) as Part[];
  const manager = root.static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
  const [host] = manager.route_config.virtual_hosts;
  const { typed_config: check } = manager.http_filters.find((each: Part) => each.name.endsWith('ext_authz'));
  const routes: Part[] = host.routes.filter((each: Part) => each.route !== undefined);
  const isPublic = (each: Part) => JSON.stringify(each).includes('"disabled":true');
  const [protectedRoute, publicRoute] = [routes.find(each => !isPublic(each)), routes.find(isPublic)];
  bend({ root, manager, host, check, protectedRoute, publicRoute });
  const { problems, notJudged } = lintEnvoy(root, config as EnvoyRelevantConfig);
  return [...new Set(problems.map(({ rule }) => rule)), ...notJudged.map(() => 'not judged')];
}

const hide = (name: RegExp) => (p: Parts) => {
  p.check.allowed_headers.patterns = p.check.allowed_headers.patterns.filter(
    (each: Part) => !name.test(JSON.stringify(each)),
  );
};
const early = (key: string) => (p: Parts) =>
  p.manager.early_header_mutation_extensions[0].typed_config.mutations.push({
    append: { header: { key, value: 'x' } },
  });
const cors = (policy: Part) => (p: Parts) => {
  const [name] = Object.keys(p.host.typed_per_filter_config).filter(each => each.includes('cors'));
  set(p.host.typed_per_filter_config[name ?? ''], policy);
};

const bends: Readonly<Record<string, readonly [string, (parts: Parts) => unknown]>> = {
  'a fixed host': ['host-rewrite', p => set(p.protectedRoute.route, { host_rewrite_literal: 'b.api.example.com' })],
  'the host of the endpoint': ['host-rewrite', p => set(p.protectedRoute.route, { auto_host_rewrite: true })],
  'CORS for every origin': ['cookie-origin', cors({ allow_origin_string_match: [{ safe_regex: { regex: '.*' } }] })],
  'CORS for another origin': ['cookie-origin', cors({ allow_origin_string_match: [{ exact: 'https://b.example' }] })],
  'CORS for another origin on a route, with the credentials of its virtual host': [
    'cookie-origin',
    p => {
      const own = typed('cors.v3.CorsPolicy', { allow_origin_string_match: [{ suffix: '.test' }] });
      set(p.protectedRoute, { typed_per_filter_config: { 'envoy.filters.http.cors': own } });
    },
  ],
  'a hidden cookie': ['header-hidden', hide(/cookie/)],
  'a hidden origin': ['header-hidden', hide(/origin/)],
  'a hidden token header': ['header-hidden', hide(/token/)],
  'a cookie set early': ['owned-header-set', early('cookie')],
  'an origin set early': ['owned-header-set', early('origin')],
  'a token header set early': ['owned-header-set', early('x-token')],
  'a public route that keeps the tokens': ['owned-headers-kept', p => set(p.publicRoute, perRoute({ disabled: true }))],
  'a log of a cookie': [
    'shown-token',
    p =>
      p.manager.access_log.push({
        name: 'a',
        typed_config: typed('envoy.extensions.access_loggers.stream.v3.StdoutAccessLog', {
          log_format: { json_format: { a: '%REQ(X-A?COOKIE)%' } },
        }),
      }),
  ],
  'a log of the cookie that an answer sets': [
    'shown-token',
    p => set(p.host, { response_headers_to_add: [{ header: { key: 'a', value: '%RESP(Set-Cookie):40%' } }] }),
  ],
  'a cookie removed early': [
    'owned-header-removed',
    p => p.manager.early_header_mutation_extensions[0].typed_config.mutations.push({ remove: 'cookie' }),
  ],
  'credentials for every page, without the filter for CORS': [
    'not judged',
    p =>
      set(p.host, {
        response_headers_to_add: [{ header: { key: 'access-control-allow-credentials', value: 'true' } }],
      }),
  ],
  'a cookie set for the client': [
    'not judged',
    p => set(p.host, { response_headers_to_add: [{ header: { key: 'set-cookie', value: 'session=%REQ(x)%' } }] }),
  ],
  'trailers that keep the token': [
    'trailers-kept',
    p => {
      for (const each of p.manager.http_filters)
        if (each.typed_config.mutations?.request_trailers_mutations)
          each.typed_config.mutations.request_trailers_mutations = [];
    },
  ],
  'a removal that another filter undoes': [
    'owned-header-set',
    p => {
      const mutations = {
        request_mutations: [
          { remove: 'x-original-url' },
          { append: { header: { key: 'x-original-url', value: '/a' } } },
        ],
      };
      p.manager.http_filters.unshift(filter('header_mutation.v3.HeaderMutation', { mutations }));
    },
  ],
};

describe('lintEnvoy where a cookie may have the token and a host the account', () => {
  it('finds nothing in what render writes, and judges all of it', () => {
    expect(rulesAfter(() => undefined)).to.deep.equal([]);
  });

  for (const [name, [rule, bend]] of Object.entries(bends)) {
    it(`finds ${name} [${rule}]`, () => {
      expect(rulesAfter(bend)).to.include(rule);
    });
  }

  it('accepts CORS for every origin without credentials', () => {
    const policy = { allow_origin_string_match: [{ safe_regex: { regex: '.*' } }], allow_credentials: false };
    expect(rulesAfter(cors(policy))).to.deep.equal([]);
  });
});
