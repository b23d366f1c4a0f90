// `check-config` on what a real Envoy runs: dumps of it in every form, from its admin interface and from a file.
import { join } from 'node:path';
import { expect } from 'chai';
import { type Document, stringify } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { fixtureFolder, writeFixture } from '../../lab/config-file.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { useRunning } from '../support/use-running.ts';
import { exampleFile, type Part } from '../toolkit/lint/shipped.ts';

const adminOf = ({ adminPort }: RunningEnvoy) => `http://127.0.0.1:${adminPort}`;

async function check(...args: readonly string[]) {
  return runCommand('check-config', ['--config', exampleFile, ...args]);
}

async function dumpOf(envoy: RunningEnvoy): Promise<Part> {
  return (await fetch(`${adminOf(envoy)}/config_dump?include_eds`)).json();
}

const checkDump = (dump: unknown) => check('--envoy', writeFixture('dump.json', dump));

/** Moves listeners, routes, the check, clusters and endpoints into files from which Envoy discovers them. */
function moveToFiles(bootstrap: Document): void {
  const { listeners, clusters }: Part = (bootstrap.toJS() as Part).static_resources;
  const source = (name: string) => ({
    resource_api_version: 'V3',
    path_config_source: { path: join(fixtureFolder(), name) },
  });
  const write = (name: string, type: string, resources: readonly Part[]) => {
    const typed = resources.map(each => ({ '@type': `type.googleapis.com/envoy.config.${type}`, ...each }));
    writeFixture(name, { resources: typed });
  };
  // A file may have one resource of these types only.
  for (const listener of listeners) {
    const manager = listener.filter_chains[0].filters[0].typed_config;
    const check = manager.http_filters.find((each: Part) => each.name === 'envoy.filters.http.ext_authz');
    if (check !== undefined) {
      const { name, typed_config: config } = check;
      write('ecds.json', 'core.v3.TypedExtensionConfig', [{ name, typed_config: config }]);
      check.config_discovery = { config_source: source('ecds.json'), type_urls: [config['@type']] };
      delete check.typed_config;
    }
    const { name } = manager.route_config;
    write(`rds-${name}.json`, 'route.v3.RouteConfiguration', [manager.route_config]);
    manager.rds = { route_config_name: name, config_source: source(`rds-${name}.json`) };
    delete manager.route_config;
  }
  for (const cluster of clusters) {
    const { name, load_assignment: assignment } = cluster;
    const file = `eds-${name}.json`;
    write(file, 'endpoint.v3.ClusterLoadAssignment', [{ ...assignment, cluster_name: `eds/${name}` }]);
    cluster.type = 'EDS';
    cluster.eds_cluster_config = { service_name: `eds/${name}`, eds_config: source(file) };
    delete cluster.load_assignment;
  }
  write('cds.json', 'cluster.v3.Cluster', clusters);
  write('lds.json', 'listener.v3.Listener', listeners);
  bootstrap.delete('static_resources');
  bootstrap.set('dynamic_resources', { lds_config: source('lds.json'), cds_config: source('cds.json') });
  bootstrap.set('node', { id: 'test', cluster: 'test' });
}

describe('check-config on a running Envoy', () => {
  const envoy = useRunning(startEnvoy);
  const old = useRunning(() => startEnvoy({ version: envoyVersions[0] }));
  const discovering = useRunning(() => startEnvoy({ edit: moveToFiles }));

  it('finds nothing in the dump of the shipped bootstrap, from its admin interface', async () => {
    const { code, stdout, stderr } = await check('--envoy-admin', adminOf(envoy));
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout.split('\n').at(-2)).to.equal(
      `# ${adminOf(envoy)}/: no dangerous setting found: 0 findings, 0 not judged`,
    );
  });

  it('finds nothing in it in the oldest supported Envoy', async () => {
    expect(await check('--envoy-admin', adminOf(old))).to.include({ code: 0, stderr: '' });
  });

  it('finds nothing in it where listeners, routes, the check, clusters and endpoints are discovered', async () => {
    expect(await check('--envoy-admin', adminOf(discovering))).to.include({ code: 0, stderr: '' });
    const dump = await dumpOf(discovering);
    for (const list of [
      'dynamic_listeners',
      'dynamic_route_configs',
      'ecds_filters',
      'dynamic_active_clusters',
      'dynamic_endpoint_configs',
    ])
      expect(JSON.stringify(dump)).to.contain(list);
    const [first] = dump.configs.flatMap((each: Part) => each.dynamic_endpoint_configs ?? []);
    first.endpoint_config.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value = 9193;
    const changed = await checkDump(dump);
    expect(changed.code).to.equal(1);
    expect(changed.stderr).to.match(
      /\.dynamic_endpoint_configs\[0\]\.endpoint_config\.\S+: leads to "[^"]*", and the configuration listens on .*\[authz-address\]/,
    );
    const [{ ecds_filter: filter }] = dump.configs.flatMap((each: Part) => each.ecds_filters ?? []);
    filter.typed_config.failure_mode_allow = true;
    expect((await checkDump(dump)).stderr).to.match(/\.ecds_filter\.typed_config\.\S+: .*\[failure-mode-allow\]/);
    filter.name = 'elsewhere';
    expect((await checkDump(dump)).stderr).to.match(/\.config_discovery: takes settings .*\[dynamic-settings\]/);
    const listener = dump.configs.flatMap((each: Part) => each.dynamic_listeners ?? [])[0].active_state.listener;
    listener.filter_chains[0].filters[0].typed_config.rds.route_config_name = 'elsewhere';
    expect((await checkDump(dump)).stderr).to.match(
      /\.active_state\.listener\.\S+\.rds: takes settings from outside this file: .*\[dynamic-settings\]/,
    );
  });

  it('reads a dump as YAML, and wrapped by namespace and pod as egctl prints it', async () => {
    const dump = await dumpOf(envoy);
    expect(await check('--envoy', writeFixture('dump.yaml', stringify(dump)))).to.include({ code: 0, stderr: '' });
    const wrapped = { 'envoy-gateway-system': { 'envoy-a': dump, 'envoy-b': toCamelCase(dump) } };
    expect(await checkDump(wrapped)).to.include({ code: 0, stderr: '' });
    const [, { static_clusters: clusters }] = dump.configs;
    clusters[0].cluster.connect_timeout = '9s';
    const { stderr } = await checkDump(wrapped);
    expect(stderr).to.match(
      /dump\.json:\d+:\d+: envoy-gateway-system\.envoy-a\.configs\[1\]\.static_clusters\[0\]\.cluster\.connect_timeout: .*\[connect-timeout\]/,
    );
  });

  it('judges every listener of a dump, names places without lines where it is longer than 4 MiB', async () => {
    const dump = await dumpOf(envoy);
    const { static_listeners: listeners } = dump.configs.find((each: Part) => each.static_listeners !== undefined);
    const second = structuredClone(listeners.find((each: Part) => each.listener.name === 'public'));
    second.listener.name = 'second';
    const manager = second.listener.filter_chains[0].filters[0].typed_config;
    manager.http_filters = manager.http_filters.slice(-1);
    const changed = structuredClone(dump);
    changed.configs.find((each: Part) => each.static_listeners !== undefined).static_listeners.push(second);
    const pods = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`pod-${i}`, dump]));
    const { code, stderr } = await checkDump({ ...pods, 'pod-79': changed });
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /^\S+dump\.json: pod-79\.\S+static_listeners\[2\]\.\S+http_filters: have no check.*\[unchecked-listener\]/m,
    );
  });

  it('prints names and places of a dump, and no value of it', async () => {
    const dump = await dumpOf(envoy);
    const secret = 'do-not-print-me';
    const spoiled = JSON.parse(JSON.stringify(dump), (key, value) =>
      typeof value === 'string' && !['@type', 'name', 'cluster', 'cluster_name', 'filter', 'key'].includes(key)
        ? secret
        : value,
    );
    const { code, stdout, stderr } = await checkDump(spoiled);
    expect(code).to.equal(1);
    expect(stderr.split('\n').length).to.be.above(10);
    expect(stdout + stderr).not.to.contain(secret);
  });
});

/** As protojson prints it: egctl does. */
function toCamelCase(value: Part): Part {
  if (Array.isArray(value)) return value.map(toCamelCase);
  if (typeof value !== 'object' || value === null) return value;
  const camel = (key: string) =>
    /^[a-z_]+$/.test(key) ? key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()) : key;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [camel(key), toCamelCase(each)]));
}
