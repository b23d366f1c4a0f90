// What the planted mistakes are made of.
import { type Part, type Shipped, typed } from '../shipped.ts';

type Edit = (parts: Shipped) => unknown;

/** Edits of the shipped files by name, under exactly the rules that they break: `rule`, or `rule + rule`. */
export type Mistakes = Readonly<Record<string, Readonly<Record<string, Edit>>>>;

/** Edits that break no rule. */
export type HarmlessEdits = Readonly<Record<string, Edit>>;

export const perRoute = (fields: Part) => ({
  typed_per_filter_config: { 'envoy.filters.http.ext_authz': typed('ext_authz.v3.ExtAuthzPerRoute', fields) },
});
export const disabled = perRoute({ disabled: true });
export const checkSettings = (settings: Part) => perRoute({ check_settings: settings });
/** Of another ext_authz filter, which writes no metadata. */
export const silent = (cluster_name: string) => ({
  grpc_service: { envoy_grpc: { cluster_name } },
  enable_dynamic_metadata_ingestion: false,
});
export const removal = {
  mutations: { request_mutations: [{ remove_on_match: { key_matcher: { prefix: 'X-AUTH-', ignore_case: true } } }] },
};
export const toRemoval = (name: string) => ({ remove: name });
export const notEnforced = (key: string) => ({
  request_headers_to_add_when_not_enforced: [{ header: { key, value: 'globex' } }],
});
export const guardMatcher = (p: Shipped) =>
  p.filters[2].typed_config.rules.policies['allowed-by-account-authz'].permissions[0].sourced_metadata.metadata_matcher;
export const removePattern = (p: Shipped, name: string) => {
  p.check.allowed_headers.patterns = p.check.allowed_headers.patterns.filter((each: Part) => each.exact !== name);
};
export const open = (path: string, ...methods: string[]) => ({
  public: [{ path, methods: methods.length === 0 ? ['GET', 'HEAD'] : methods }],
});
export const hosts = (p: Shipped, ...entries: string[]) =>
  set(p.config, { account: { ...p.config.account, hosts: entries } });
/** As `render` writes it. */
export const publicRoute = (path: Part, methods = 'GET|HEAD'): Part => ({
  match: { ...path, headers: [{ name: ':method', string_match: { safe_regex: { regex: methods } } }] },
  route: { cluster: 'upstream' },
  typed_per_filter_config: {
    ...disabled.typed_per_filter_config,
    'envoy.filters.http.rbac': typed('rbac.v3.RBACPerRoute'),
    'envoy.filters.http.header_mutation': typed('header_mutation.v3.HeaderMutationPerRoute', {
      mutations: {
        request_mutations: [
          { remove_on_match: { key_matcher: { safe_regex: { regex: 'x[^a-z0-9]account[^a-z0-9]id' } } } },
          { remove: 'authorization' },
        ],
      },
    }),
  },
});
export const set = (part: Part, fields: Part) => Object.assign(part, fields);
/** Before the protected route, one like it that asks for a header, and a check after which Envoy chooses again. */
export const shardRoute = (p: Shipped, header: Part = { name: 'x-auth-acc', string_match: { exact: 'acme' } }) => {
  const route = structuredClone(p.routes[0]);
  p.routes.unshift({ ...route, match: { ...route.match, headers: [header] } });
  set(p.check, { clear_route_cache: true });
};
export const remove = (part: Part, name: string) => delete part[name];
export const copyOf = <T>(value: T): T => structuredClone(value);
export const pathsTo = (cluster: string, ...paths: string[]) =>
  paths.map(path => ({ match: { path }, route: { cluster } }));

/** A second listener like the first one, on another port. */
export const secondListener = (parts: Shipped, edit: (listener: Part, manager: Part) => unknown) => {
  const listener = copyOf(parts.listener);
  listener.name = 'second';
  listener.address.socket_address.port_value = 8082;
  edit(listener, listener.filter_chains[0].filters[0].typed_config);
  parts.root.static_resources.listeners.push(listener);
};
export const dropCheck = (manager: Part) => {
  manager.http_filters = manager.http_filters.filter((each: Part) => each.name.endsWith('router'));
};
export const onlyRoutes = (manager: Part, routes: Part[]) => {
  manager.route_config.virtual_hosts[0].routes = routes;
};

export const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
export const upstreamTls = (fields: Part = {}) => ({
  name: 'tls',
  typed_config: typed('envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', {
    common_tls_context: { validation_context: { trusted_ca: { filename: '/ca.crt' } }, ...fields },
  }),
});

export function byTemplate(path_template: string): object {
  const type = 'type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';
  return { path_match_policy: { name: 'template', typed_config: { '@type': type, path_template } } };
}
