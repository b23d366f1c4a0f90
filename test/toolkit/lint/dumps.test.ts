// The lint on dumps of real control planes: what it finds in what `render` makes of a configuration, and in dangerous changes of it.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { runCommand } from '../../../lab/command.ts';
import { writeFixture } from '../../../lab/config-file.ts';
import type { Part } from './shipped.ts';

const folder = 'test/fixtures/dumps/';
const istio = { dump: `${folder}istio-envoy.yaml`, config: `${folder}istio-config.yaml` };
const gateway = { dump: `${folder}egctl.yaml`, config: 'k8s/overlays/envoy-gateway/config.yaml' };
const patched = { ...gateway, dump: `${folder}egctl-patched.yaml` };

const known = new Map<string, Part>();

/** A copy: to parse a dump takes 50 ms. */
function read(file: string): Part {
  const dump = known.get(file) ?? parse(readFileSync(file, 'utf8'));
  known.set(file, dump);
  return structuredClone(dump);
}

/** The rules that `check-config --envoy` finds broken, each once. */
async function rulesIn(file: string, config: string): Promise<readonly string[]> {
  const { stderr } = await runCommand('check-config', ['--without-files', '--config', config, '--envoy', file]);
  return [...new Set([...stderr.matchAll(/\[([a-z-]+)\]$/gm)].map(([, rule = '']) => rule))].sort();
}

describe('check-config on what control planes make of render', () => {
  const lacks = ['guard-missing', 'mutation-rules-missing', 'trailers-kept', 'validate-mutations'];
  const dumps = [
    ['an Envoy that istiod configures', istio.dump, istio.config, []],
    ['istiod, with filters that only its own Envoy has', `${folder}istiod.yaml`, 'k8s/overlays/istio/config.yaml', []],
    ['egctl', gateway.dump, gateway.config, lacks],
    ['egctl with the EnvoyPatchPolicy', patched.dump, patched.config, []],
  ] as const;
  for (const [name, dump, config, rules] of dumps) {
    it(`finds ${rules.length === 0 ? 'nothing' : rules.join(', ')} in the dump of ${name}, as YAML and as JSON`, async () => {
      expect(await rulesIn(dump, config)).to.deep.equal(rules);
      expect(await rulesIn(writeFixture('dump.json', read(dump)), config)).to.deep.equal(rules);
    });
  }

  /** The filter chains of Istio's inbound listener, by name. */
  const chainsOf = (dump: Part): Part => {
    const listeners = dump.configs.flatMap((each: Part) => each.dynamic_listeners ?? []);
    const { listener } = listeners.find((each: Part) => each.name === 'virtualInbound').active_state;
    return { listener, ...Object.fromEntries(listener.filter_chains.map((each: Part) => [each.name, each])) };
  };
  const filtersOf = (chain: Part): Part[] => chain.filters[0].typed_config.http_filters;
  const without = (chain: Part, name: string): void => {
    const filters = filtersOf(chain);
    filters.splice(
      filters.findIndex(each => each.name === name),
      1,
    );
  };
  const clusterOf = (dump: Part, name: string): Part =>
    dump.configs
      .flatMap((each: Part) => each.dynamic_active_clusters ?? [])
      .find(({ cluster }: Part) => cluster.name === name).cluster;

  const changes: readonly (readonly [name: string, rules: readonly string[], edit: (dump: Part) => void])[] = [
    [
      'no guard behind the check that a policy decides on',
      ['conditional-check', 'guard-missing'],
      dump => without(chainsOf(dump)['0.0.0.0_8000'], 'account-authz.only-allowed'),
    ],
    [
      'no policy in front of the check that depends on one',
      ['conditional-check'],
      dump => without(chainsOf(dump)['0.0.0.0_8000'], 'envoy.filters.http.rbac'),
    ],
    [
      'a port of the service without the check',
      ['conditional-check', 'guard-missing', 'public-route-missing', 'unchecked-listener'],
      dump => without(chainsOf(dump)['0.0.0.0_8000'], 'envoy.filters.http.ext_authz'),
    ],
    [
      'bytes of the port of the service',
      ['unchecked-listener'],
      dump => {
        const { listener, virtualInbound } = chainsOf(dump);
        listener.default_filter_chain = { filters: structuredClone(virtualInbound.filters) };
      },
    ],
    [
      'a cluster for other ports that leads to the port of the service',
      ['conditional-check', 'guard-missing', 'other-host', 'unchecked-listener'],
      dump => {
        clusterOf(dump, 'InboundPassthroughCluster').original_dst_lb_config = { upstream_port_override: 8000 };
      },
    ],
    [
      'a long time to connect to account-authz',
      ['connect-timeout'],
      dump => {
        clusterOf(dump, 'outbound|9191||account-authz.internal').connect_timeout = '10s';
      },
    ],
  ];
  for (const [name, rules, edit] of changes) {
    it(`finds ${name} in the dump of an Envoy that istiod configures`, async () => {
      const dump = read(istio.dump);
      edit(dump);
      expect(await rulesIn(writeFixture('dump.json', dump), istio.config)).to.deep.equal(rules);
    });
  }

  it('finds nothing in the dump of a sidecar that has had requests, whose own address its Envoy then shows', async () => {
    const dump = read(istio.dump);
    const { dynamic_endpoint_configs: endpoints } = dump.configs.find((each: Part) =>
      each['@type'].endsWith('.EndpointsConfigDump'),
    );
    const address = { socket_address: { address: '10.202.0.14', port_value: 8000 } };
    for (const cluster of ['inbound|8000||', 'outbound|80||subscriptions.subscriptions.svc.cluster.local'])
      endpoints.push({
        endpoint_config: {
          '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
          cluster_name: cluster,
          endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
        },
      });
    expect(await rulesIn(writeFixture('dump.json', dump), istio.config)).to.deep.equal([]);
  });

  for (const [what, tunnel, rules] of [
    [
      'nothing in the listener by which a sidecar of an ambient mesh calls others',
      { hostname: '%DOWNSTREAM_LOCAL_ADDRESS%' },
      [],
    ],
    ['an internal listener that leads to the service without a tunnel', undefined, ['unchecked-listener']],
  ] as const)
    it(`finds ${what}`, async () => {
      const dump = read(istio.dump);
      const states = dump.configs.find((each: Part) =>
        each['@type'].endsWith('.ListenersConfigDump'),
      ).dynamic_listeners;
      const typed_config = {
        '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
        stat_prefix: 'connect_originate',
        cluster: 'inbound|8000||',
        tunneling_config: tunnel,
      };
      const filter_chains = [{ filters: [{ name: 'envoy.filters.network.tcp_proxy', typed_config }] }];
      const listener = { name: 'connect_originate', internal_listener: {}, filter_chains };
      states.push({
        name: 'connect_originate',
        active_state: { listener: { ...states[0].active_state.listener, ...listener } },
      });
      expect(await rulesIn(writeFixture('dump.json', dump), istio.config)).to.deep.equal(rules);
    });

  it('finds nothing but the missing check in the dump of a sidecar without any', async () => {
    const dump = read(istio.dump);
    const { listener, ...chains } = chainsOf(dump);
    for (const chain of Object.values(chains) as Part[]) {
      if (chain.filters[0].typed_config.http_filters !== undefined) without(chain, 'envoy.filters.http.ext_authz');
    }
    expect(listener.filter_chains).to.have.length(4);
    expect(await rulesIn(writeFixture('dump.json', dump), istio.config)).to.deep.equal(['unchecked-listener']);
  });

  it('finds a route of the gateway on which the guard is off', async () => {
    const dump = read(patched.dump);
    const configs: Part[] = Object.values<Part>(dump.xds)[0].configs;
    const [{ routeConfig }] = configs.flatMap(each => each.dynamicRouteConfigs ?? []);
    delete routeConfig.virtualHosts[0].routes[0].typedPerFilterConfig['account-authz.only-allowed'];
    expect(await rulesIn(writeFixture('dump.json', dump), patched.config)).to.deep.equal(['guard-missing']);
  });
});
