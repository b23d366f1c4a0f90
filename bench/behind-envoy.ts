// Client requests through a real Envoy, which shares the servers' core with the service: the shipped envoy.yaml with one service or another, or with Envoy's own filters.
import { readFile } from 'node:fs/promises';
import { type Document, isMap, isSeq, parse } from 'yaml';
import { startEnvoy } from '../lab/envoy.ts';
import { connectionManagerPath, httpFilterPath } from '../lab/envoy-bootstrap.ts';
import { freePorts } from '../lab/free-ports.ts';
import { ask, type Request } from './load.ts';
import { type BenchToken, clientHeaders, host, pathOf } from './requests.ts';
import { pin, type Server, type Workbench } from './workbench.ts';

const extAuthz = 'envoy.filters.http.ext_authz';
const rbac = 'envoy.filters.http.rbac';

export const variants = {
  alone: 'Envoy, no check',
  known: 'account-authz',
  'jwt-authn': "Envoy's own jwt_authn and rbac filters",
  opa: 'opa-envoy-plugin',
} as const;
export type Variant = keyof typeof variants;

export function clientRequest(token: BenchToken, account = token.account): Request {
  const headers = { ...clientHeaders, ':authority': host, authorization: `Bearer ${token.text}` };
  return { path: pathOf(account), headers };
}

export interface RunningVariant {
  readonly port: number;
  readonly pids: readonly number[];
  /** The length of the upstream's answer. */
  readonly answerBytes: number;
  stop(): Promise<void>;
}

/** `service`: of the variants that call one. */
export async function startVariant(bench: Workbench, variant: Variant, service?: Server): Promise<RunningVariant> {
  const [upstream = 0] = await freePorts(1);
  const own = variant === 'jwt-authn' ? await ownFilters(bench) : [];
  const envoy = await startEnvoy({
    upstream,
    ...(service === undefined ? {} : { authz: `127.0.0.1:${service.port}` }),
    edit(bootstrap) {
      addUpstream(bootstrap, upstream);
      if (service === undefined) replaceCheck(bootstrap, own);
      // It reads the header map, which is Envoy's default.
      if (variant === 'opa') bootstrap.setIn([...httpFilterPath(bootstrap, extAuthz), 'encode_raw_headers'], false);
    },
  });
  await pin(envoy.pid, bench.cores?.server);
  const [known = bench.tokens.forged] = bench.tokens.good;
  const served = await ask(envoy.port, clientRequest(known));
  const refused = [clientRequest(known, 'acct-other1'), clientRequest(bench.tokens.forged)];
  const others = await Promise.all(refused.map(request => ask(envoy.port, request)));
  if (served.status !== 200 || (variant !== 'alone' && others.some(({ status }) => status === 200)))
    throw new Error(`${variant}: ${[served, ...others].map(({ status }) => status)}`);
  return {
    port: envoy.port,
    pids: service === undefined ? [envoy.pid] : [envoy.pid, service.pid],
    answerBytes: served.body.length,
    stop: () => envoy.stop(),
  };
}

async function ownFilters({ tokens }: Workbench): Promise<readonly object[]> {
  const text = await readFile(new URL('peers/envoy-jwt-authn.yaml', import.meta.url), 'utf8');
  return parse(text.replace('JWKS', `'${JSON.stringify({ keys: [tokens.publicJwk] })}'`));
}

/** An upstream within the same Envoy, which needs no other process; and no access log, which this process would have to read. */
function addUpstream(bootstrap: Document, port: number): void {
  bootstrap.deleteIn([...connectionManagerPath(bootstrap), 'access_log']);
  const types = 'type.googleapis.com/envoy.extensions.filters';
  const router = { '@type': `${types}.http.router.v3.Router` };
  const listener = {
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
              http_filters: [{ name: 'envoy.filters.http.router', typed_config: router }],
            },
          },
        ],
      },
    ],
  };
  bootstrap.addIn(['static_resources', 'listeners'], bootstrap.createNode(listener));
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
  // Route settings of a removed filter would be an error.
  const routes = [...connectionManagerPath(bootstrap), 'route_config', 'virtual_hosts', 0, 'routes'];
  const all = bootstrap.getIn(routes);
  if (isSeq(all))
    for (const index of all.items.keys()) bootstrap.deleteIn([...routes, index, 'typed_per_filter_config']);
}
