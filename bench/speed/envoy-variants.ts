// Variants behind a real Envoy: the shipped envoy.yaml with another service instead of account-authz, or with Envoy's own filters.
import { type Document, isMap, isSeq } from 'yaml';
import { connectionManagerPath, httpFilterPath } from '../../lab/envoy-bootstrap.ts';
import { audience, issuer, type Tokens } from './tokens.ts';

export interface EnvoyVariant {
  readonly name: string;
  /** The contender that replaces account-authz; undefined if Envoy calls no authorizer. */
  readonly contender: string | undefined;
  /** Whether it refuses any request. */
  readonly decides: boolean;
  edit(bootstrap: Document): void;
}

/** By name, in the order of the tables. */
export const envoyTitles: ReadonlyMap<string, string> = new Map([
  ['envoy-alone', 'Envoy, no check'],
  ['envoy-known', 'account-authz'],
  ['envoy-jwt-authn', "Envoy's own jwt_authn and rbac filters"],
  ['envoy-opa', 'opa-envoy-plugin'],
]);

export function envoyVariants(tokens: Tokens): readonly EnvoyVariant[] {
  const withContender = (contender: string, edit: EnvoyVariant['edit']): EnvoyVariant => ({
    name: `envoy-${contender}`,
    contender,
    decides: true,
    edit,
  });
  const own = (name: string, decides: boolean, filters: readonly object[]): EnvoyVariant => ({
    name,
    contender: undefined,
    decides,
    edit: bootstrap => replaceCheck(bootstrap, filters),
  });
  return [
    own('envoy-alone', false, []),
    withContender('known', () => undefined),
    own('envoy-jwt-authn', true, ownFilters(tokens)),
    withContender('opa', bootstrap => {
      // It reads the header map, which is Envoy's default.
      bootstrap.setIn([...httpFilterPath(bootstrap, extAuthz), 'encode_raw_headers'], false);
    }),
  ];
}

const extAuthz = 'envoy.filters.http.ext_authz';
const rbac = 'envoy.filters.http.rbac';
const jwtAuthn = 'envoy.filters.http.jwt_authn';
const types = 'type.googleapis.com/envoy.extensions.filters';

/** An upstream within the same Envoy, which needs no other process; and no access log, which this process would have to read. */
export function addUpstream(bootstrap: Document, port: number): void {
  bootstrap.deleteIn([...connectionManagerPath(bootstrap), 'access_log']);
  bootstrap.addIn(
    ['static_resources', 'listeners'],
    bootstrap.createNode({
      name: 'bench-upstream',
      address: { socket_address: { address: '127.0.0.1', port_value: port } },
      filter_chains: [
        {
          filters: [
            {
              name: 'envoy.filters.network.http_connection_manager',
              typed_config: {
                '@type': `${types}.network.http_connection_manager.v3.HttpConnectionManager`,
                stat_prefix: 'bench_upstream',
                route_config: {
                  virtual_hosts: [
                    {
                      name: 'any',
                      domains: ['*'],
                      routes: [
                        {
                          match: { prefix: '/' },
                          direct_response: { status: 200, body: { inline_string: '{"ok":true}\n' } },
                        },
                      ],
                    },
                  ],
                },
                http_filters: [
                  { name: 'envoy.filters.http.router', typed_config: { '@type': `${types}.http.router.v3.Router` } },
                ],
              },
            },
          ],
        },
      ],
    }),
  );
}

/** Replaces ext_authz and the rbac filter behind it by these filters. */
function replaceCheck(bootstrap: Document, filters: readonly object[]): void {
  const path = [...connectionManagerPath(bootstrap), 'http_filters'];
  const list = bootstrap.getIn(path);
  if (!isSeq(list)) throw new Error('envoy.yaml has no http_filters');
  const nameOf = (item: unknown): unknown => (isMap(item) ? item.get('name') : undefined);
  const at = list.items.findIndex(item => nameOf(item) === extAuthz);
  list.items = list.items.filter(item => nameOf(item) !== extAuthz && nameOf(item) !== rbac);
  list.items.splice(at, 0, ...filters.map(filter => bootstrap.createNode(filter)));
  // Route settings for a removed filter would be an error.
  const routes = [...connectionManagerPath(bootstrap), 'route_config', 'virtual_hosts', 0, 'routes'];
  const all = bootstrap.getIn(routes);
  if (isSeq(all))
    for (const index of all.items.keys()) bootstrap.deleteIn([...routes, index, 'typed_per_filter_config']);
}

/** Verifies the token and its claims, with its token cache enabled; then role and account, as far as rbac and CEL can express it. */
function ownFilters(tokens: Tokens): readonly object[] {
  const roles: Readonly<Record<string, string>> = {
    owner: '^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$',
    admin: '^(GET|HEAD|POST|PUT|PATCH|DELETE)$',
    member: '^(GET|HEAD)$',
  };
  return [
    {
      name: jwtAuthn,
      typed_config: {
        '@type': `${types}.http.jwt_authn.v3.JwtAuthentication`,
        providers: {
          bench: {
            issuer,
            audiences: [audience],
            local_jwks: { inline_string: JSON.stringify({ keys: [tokens.publicJwk] }) },
            from_headers: [{ name: 'authorization', value_prefix: 'Bearer ' }],
            payload_in_metadata: 'payload',
            require_expiration: true,
            clock_skew_seconds: 30,
            jwt_cache_config: { jwt_cache_size: 10_000 },
            claim_to_headers: ['uid', 'app', 'acc', 'role', 'iss'].map(claim => ({
              header_name: `x-auth-${claim}`,
              claim_name: claim,
            })),
          },
        },
        rules: [{ match: { prefix: '/' }, requires: { provider_name: 'bench' } }],
      },
    },
    {
      name: rbac,
      typed_config: {
        '@type': `${types}.http.rbac.v3.RBAC`,
        rules: {
          action: 'ALLOW',
          policies: Object.fromEntries(
            Object.entries(roles).map(([role, methods]) => [
              role,
              {
                principals: [{ any: true }],
                permissions: [
                  {
                    and_rules: {
                      rules: [
                        { header: { name: ':method', string_match: { safe_regex: { regex: methods } } } },
                        {
                          sourced_metadata: {
                            metadata_source: 'DYNAMIC',
                            metadata_matcher: {
                              filter: jwtAuthn,
                              path: [{ key: 'payload' }, { key: 'role' }],
                              value: { string_match: { exact: role } },
                            },
                          },
                        },
                      ],
                    },
                  },
                ],
                condition: accountOfPath,
                cel_config: { enable_string_functions: true },
              },
            ]),
          ),
        },
      },
    },
  ];
}

const text = (value: string): object => ({ const_expr: { string_value: value } });
const member = (operand: object, field: string): object => ({ select_expr: { operand, field } });
const at = (list: object, index: object): object => ({ call_expr: { function: '_[_]', args: [list, index] } });
const variable = (name: string): object => ({ ident_expr: { name } });

/** metadata.filter_metadata['envoy.filters.http.jwt_authn']['payload']['acc'] == request.path.split('/')[4], as a CEL syntax tree for Envoy. */
const accountOfPath = {
  call_expr: {
    function: '_==_',
    args: [
      at(at(at(member(variable('metadata'), 'filter_metadata'), text(jwtAuthn)), text('payload')), text('acc')),
      at(
        { call_expr: { target: member(variable('request'), 'path'), function: 'split', args: [text('/')] } },
        { const_expr: { int64_value: 4 } },
      ),
    ],
  },
};
