// Client requests through a real Envoy, which shares the servers' core with the service: the shipped envoy.yaml with one service or another, or with Envoy's own filters.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Document, isMap, isSeq, parse } from 'yaml';
import { startEnvoy } from '../lab/envoy.ts';
import { connectionManagerPath, httpFilterPath } from '../lab/envoy-bootstrap.ts';
import { freePorts } from '../lab/free-ports.ts';
import { ask, project, type Request } from './load.ts';
import { type BenchToken, clientHeaders, host, pathOf } from './requests.ts';
import { pin, type Server, type Workbench } from './workbench.ts';

const extAuthz = 'envoy.filters.http.ext_authz';
const rbac = 'envoy.filters.http.rbac';

/** `service`: the contender that is asked. */
export const variants = [
  { name: 'alone', title: 'Envoy, no check' },
  { name: 'known', title: 'account-authz over TCP', service: 'known' },
  { name: 'known-unix', title: 'account-authz over a Unix socket', service: 'known-unix' },
  {
    name: 'known-before',
    title: 'account-authz before, over TCP, with the envoy.yaml of then',
    service: 'known-before',
  },
  { name: 'jwt-authn', title: "Envoy's own jwt_authn and rbac filters" },
  { name: 'opa', title: 'opa-envoy-plugin', service: 'opa' },
] as const satisfies readonly { readonly name: string; readonly title: string; readonly service?: string }[];
export type Variant = (typeof variants)[number];

export function clientRequest(token: BenchToken, account = token.account): Request {
  const headers = { ':authority': host, ...clientHeaders, authorization: `Bearer ${token.text}` };
  return { path: pathOf(account), headers };
}

export interface RunningVariant {
  readonly name: string;
  readonly address: string;
  readonly pids: readonly number[];
  /** The length of the upstream's answer. */
  readonly answerBytes: number;
  stop(): Promise<void>;
}

/** `service`: of the variants that call one. */
export async function startVariant(bench: Workbench, { name }: Variant, service?: Server): Promise<RunningVariant> {
  const [upstream = 0] = await freePorts(1);
  const own = name === 'jwt-authn' ? await ownFilters(bench) : [];
  const checkout = service?.checkout ?? project;
  const envoy = await startEnvoy({
    bootstrap: await readFile(join(checkout, 'envoy.yaml'), 'utf8'),
    upstream,
    ...(service === undefined ? {} : { authz: service.address }),
    edit(bootstrap) {
      addUpstream(bootstrap, upstream);
      if (service === undefined) replaceCheck(bootstrap, own);
      // It reads the header map, which is Envoy's default.
      if (name === 'opa') bootstrap.setIn([...httpFilterPath(bootstrap, extAuthz), 'encode_raw_headers'], false);
    },
  });
  await pin(envoy.pid, bench.cores?.server);
  const address = `127.0.0.1:${envoy.port}`;
  const [known = bench.tokens.forged] = bench.tokens.good;
  const served = await ask(address, clientRequest(known));
  const refused = [clientRequest(known, 'acct-other1'), clientRequest(bench.tokens.forged)];
  const others = await Promise.all(refused.map(request => ask(address, request)));
  if (served.status !== 200 || (name !== 'alone' && others.some(({ status }) => status === 200)))
    throw new Error(`${name}: ${[served, ...others].map(({ status }) => status)}`);
  return {
    name,
    address,
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
