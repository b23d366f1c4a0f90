// compose.yaml without a container engine: as hardened as the manifests, and consistent with envoy.yaml, the configuration and the demo.
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { blocksOf } from '../../../lab/document.ts';
import { renderText } from '../../../lab/kustomize.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { parsePodPlan } from '../../../tools/rehearsal/pod-plan.ts';
import { execForm, lastOf, parseDockerfile, product } from '../../support/dockerfile.ts';
import { type ComposeFile, type ComposeService, composeProblems } from './compose-file.ts';
import { dockerCompose, runTool } from './python-tool.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const read = (name: string): Promise<string> => readFile(`${project}${name}`, 'utf8');
const text = await read('compose.yaml');
const parseCompose = (yaml: string): ComposeFile => parse(yaml, { merge: true });
const { services } = parseCompose(text);
const serviceOf = (name: string): ComposeService => services[name] ?? {};
const optionOf = (name: string, option: string): string => {
  const command = serviceOf(name).command ?? [];
  return command[command.indexOf(option) + 1] ?? '';
};
const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1));

interface Bootstrap {
  readonly admin: { readonly address: SocketAddress };
  readonly static_resources: {
    readonly listeners: readonly { readonly name: string; readonly address: SocketAddress }[];
    readonly clusters: readonly {
      readonly name: string;
      readonly load_assignment: {
        readonly endpoints: readonly { readonly lb_endpoints: readonly { endpoint: { address: SocketAddress } }[] }[];
      };
    }[];
  };
}

interface SocketAddress {
  readonly socket_address: { readonly address: string; readonly port_value: number };
}

const bootstrap: Bootstrap = parse(await read('envoy.yaml'));
const addressText = ({ socket_address: { address, port_value } }: SocketAddress): string => `${address}:${port_value}`;
const listenerPort = (name: string): number =>
  bootstrap.static_resources.listeners.find(each => each.name === name)?.address.socket_address.port_value ?? 0;
const clusterAddress = (name: string): string => {
  const cluster = bootstrap.static_resources.clusters.find(each => each.name === name);
  const endpoint = cluster?.load_assignment.endpoints[0]?.lb_endpoints[0]?.endpoint;
  return endpoint === undefined ? '' : addressText(endpoint.address);
};

const loaded = await loadConfig(`${project}demo/compose/account-authz/config.yaml`);
const config = loaded.kind === 'misconfiguration' ? undefined : loaded.config;

/** The configuration that Docker Compose renders from these files, each merged into the previous ones. */
async function renderCompose(
  yaml: readonly string[],
  { profiles = ['test', 'observability'], output = '--quiet' } = {},
): Promise<{ good: boolean; output: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'compose-'));
  try {
    const files = yaml.map((_, index) => join(directory, `${index}.yaml`));
    for (const [index, file] of files.entries()) await writeFile(file, yaml[index] ?? '');
    const options = [...profiles.flatMap(name => ['--profile', name]), ...files.flatMap(file => ['-f', file])];
    return await runTool(dockerCompose, [...options, 'config', output]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Whether a volume of the service has this file of its file system. */
async function isMounted(name: string, path: string): Promise<boolean> {
  for (const volume of serviceOf(name).volumes ?? []) {
    const [source = '', target = ''] = volume.split(':');
    if (path !== target && !path.startsWith(`${target}/`)) continue;
    const found = await stat(`${project}${source}${path.slice(target.length)}`).catch(() => undefined);
    if (found?.isFile()) return true;
  }
  return false;
}

describe('compose.yaml', () => {
  it('follows the rules of the manifests', () => {
    expect(composeProblems({ services })).to.deep.equal([]);
  });

  it('has the containers of a pod, a client and the observers', () => {
    const profiles = Object.entries(services).map(([name, { profiles = ['always'] }]) => `${name}: ${profiles.join()}`);
    expect(profiles).to.deep.equal([
      'pod: always',
      'authentication-service: always',
      'upstream: always',
      'account-authz: always',
      'envoy: always',
      'client: test',
      'prometheus: observability',
      'grafana: observability',
    ]);
  });

  const mistakes: readonly (readonly [name: string, from: string | RegExp, to: string, problem: RegExp])[] = [
    ['a user by name', 'user: "65532:65532"', 'user: nonroot', /envoy does not run as a numeric/],
    ['root', 'user: "65532:65532"', 'user: "0:0"', /envoy does not run as a numeric/],
    ['a root that can be written to', 'read_only: true', 'read_only: false', /can write to its root/],
    ['capabilities', 'cap_drop: [ALL]', 'cap_drop: [NET_RAW]', /capabilities/],
    ['new privileges', 'security_opt:', 'x-opt:', /gain privileges/],
    ['no limit of memory', 'mem_limit: 512m # fixed', '# fixed', /envoy has no limits/],
    ['an image that moves', /envoy:v1[\d.]+/, 'envoy:latest', /envoy has an image that is not pinned/],
    ['an image without its digest', /:v3\.15\.0@sha256:\w+/, ':v3.15.0', /prometheus has an image/],
    ['a port for everybody', '"127.0.0.1:${GATEWAY_PORT', '"${GATEWAY_PORT', /pod is published/],
    ['a folder that can be written to', '/etc/account-authz:ro', '/etc/account-authz', /can write to a folder/],
    [
      'an Envoy that starts first',
      'account-authz: { condition: service_healthy }\n      upstream',
      'account-authz: { condition: service_started }\n      upstream',
      /envoy does not wait for account-authz/,
    ],
    ['a container outside the pod', /network_mode: service:pod\n {4}mem_limit: 256m/, 'mem_limit: 256m', /is outside/],
    ['spaces in a health check', '/app/dist/main.js, health,', '"/app/dist/main.js health",', /Podman/],
  ];
  for (const [name, from, to, problem] of mistakes) {
    it(`breaks a rule with ${name}`, () => {
      const planted = text.replaceAll(typeof from === 'string' ? from : new RegExp(from, 'g'), () => to);
      expect(planted).to.not.equal(text);
      expect(composeProblems(parseCompose(planted)).join('\n')).to.match(problem);
    });
  }

  it('is valid by Docker Compose', async () => {
    expect(await renderCompose([text])).to.deep.equal({ good: true, output: '' });
  });

  for (const [from, to] of [
    ['service_healthy', 'service_helthy'],
    ['read_only:', 'readonly:'],
    ['service:pod', 'service:podd'],
    ['interval: 3s', 'interval: 3'],
  ] as const) {
    it(`is refused by Docker Compose with ${to}`, async () => {
      expect((await renderCompose([text.replaceAll(from, to)])).good).to.equal(false);
    });
  }

  describe('as docs/deploy/compose.md says', () => {
    let page: string;
    let override: string;
    before(async () => {
      page = await read('docs/deploy/compose.md');
      override = blocksOf(page).find(block => block.text.startsWith('# compose.override.yaml\n'))?.text ?? '';
    });

    it('becomes healthy in the containers that the page names', () => {
      const [, named = ''] = /The command ends when ([^:]+) are healthy/.exec(page) ?? [];
      const healthy = Object.entries(services)
        .filter(([, { healthcheck, profiles }]) => healthcheck !== undefined && profiles === undefined)
        .map(([name]) => name);
      expect(Array.from(named.matchAll(/`(.+?)`/g), ([, name]) => name)).to.have.members(healthy);
    });

    it('has no demo services with the override, and nothing depends on them', async () => {
      const { good, output } = await renderCompose([text, override], { profiles: [], output: '--format=json' });
      expect(good, output).to.equal(true);
      const { services: merged }: ComposeFile = JSON.parse(output);
      expect(Object.keys(merged)).to.have.members(['account-authz', 'envoy', 'pod', 'upstream']);
      expect(merged['account-authz']?.depends_on).to.have.all.keys('pod');
      expect(merged.upstream).to.include({ network_mode: 'service:pod', user: '65532:65532' });
      expect(merged.upstream?.build).to.equal(undefined);
      expect(merged.upstream?.command).to.be.oneOf([undefined, null]);
    });

    it('is invalid if the override leaves account-authz depending on a demo service', async () => {
      const waiting = override.slice(0, override.indexOf('  account-authz:'));
      expect((await renderCompose([text, waiting])).good).to.equal(false);
    });
  });

  it('mounts only existing files', async () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) => volumes);
    expect(mounted).to.have.length.greaterThan(3);
    for (const volume of mounted) expect(await stat(`${project}${volume.split(':')[0]}`)).to.be.an('object');
  });

  it('mounts each file that a command or a health check reads', async () => {
    const paths = Object.entries(services).flatMap(([name, { command = [], entrypoint = [], healthcheck }]) =>
      [...command, ...entrypoint, ...(healthcheck?.test ?? [])]
        .filter(argument => /^(?:--[\w.-]+=)?\/etc\//.test(argument))
        .map(argument => [name, argument.replace(/^--[\w.-]+=/, '')] as const),
    );
    expect(paths.map(([name]) => name)).to.include.members(['account-authz', 'envoy', 'prometheus']);
    for (const [name, path] of paths) expect(await isMounted(name, path), `${name}: ${path}`).to.equal(true);
  });

  it('mounts the rules of Prometheus, and dashboards where Grafana looks for them', async () => {
    const { rule_files } = parse(await read('demo/compose/prometheus/prometheus.yml')) as { rule_files: string[] };
    const { providers } = parse(await read('demo/compose/grafana/provisioning/dashboards/account-authz.yaml')) as {
      providers: { options: { path: string } }[];
    };
    expect(rule_files).to.deep.equal(['/etc/monitoring/alerts.yaml']);
    expect(await isMounted('prometheus', '/etc/monitoring/alerts.yaml')).to.equal(true);
    expect(serviceOf('grafana').volumes?.join()).to.match(/:\/etc\/grafana\/provisioning:ro/);
    expect(providers.map(({ options }) => options.path)).to.deep.equal(['/etc/grafana/dashboards']);
    expect(serviceOf('grafana').volumes?.join()).to.match(/dashboard\.json:\/etc\/grafana\/dashboards\//);
  });

  it('asks each service for its health at a port that it listens on', () => {
    const ports = Object.entries(services).flatMap(([name, { healthcheck }]) =>
      Array.from((healthcheck?.test ?? []).join(' ').matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g), ([, port]) => [
        name,
        Number(port),
      ]),
    );
    expect(Object.fromEntries(ports)).to.deep.equal({
      'authentication-service': portOf(optionOf('authentication-service', '--listen')),
      upstream: portOf(optionOf('upstream', '--control')),
      prometheus: 9090,
      grafana: 3000,
    });
  });

  it('runs Envoy with the envoy.yaml of the repository, and the upstream at its address there', () => {
    expect(optionOf('upstream', '--listen')).to.equal(clusterAddress('upstream'));
    expect(serviceOf('envoy').volumes).to.include(`./envoy.yaml:${optionOf('envoy', '--config-path')}:ro`);
  });

  it('runs account-authz with a configuration that is valid and consistent with envoy.yaml', () => {
    expect(loaded).to.not.have.property('problems');
    expect(config?.listen).to.equal(clusterAddress('account-authz'));
    expect(optionOf('account-authz', '--config')).to.equal('/etc/account-authz/config.yaml');
    expect(serviceOf('account-authz').volumes).to.deep.equal(['./demo/compose/account-authz:/etc/account-authz:ro']);
  });

  it('has the health check of the image for account-authz', async () => {
    const stage = parseDockerfile(await read('Dockerfile')).stages.find(({ name }) => name === product);
    expect(serviceOf('account-authz').healthcheck?.test.slice(1)).to.deep.equal(execForm(lastOf(stage, 'HEALTHCHECK')));
  });

  it('runs the authentication service at the address in the configuration', () => {
    const [issuer] = config?.issuers ?? [];
    expect(issuer?.issuer).to.equal(optionOf('authentication-service', '--issuer'));
    expect(portOf(optionOf('authentication-service', '--issuer'))).to.equal(
      portOf(optionOf('authentication-service', '--listen')),
    );
  });

  it('binds the controls of the demo to the loopback address', () => {
    for (const name of ['authentication-service', 'upstream'])
      expect(optionOf(name, '--control')).to.match(/^127\.0\.0\.1:\d+$/);
  });

  it('publishes the ports of Envoy, of the authentication service and of the metrics', () => {
    const inside = (serviceOf('pod').ports ?? []).map(portOf);
    expect(inside).to.deep.equal([
      listenerPort('public'),
      listenerPort('readiness'),
      portOf(optionOf('authentication-service', '--listen')),
      portOf(config?.admin ?? ''),
    ]);
  });

  it('probes the readiness listener of Envoy', async () => {
    const script = await read('demo/compose/envoy/ready.sh');
    expect(script).to.include(`/dev/tcp/127.0.0.1/${listenerPort('readiness')}\n`);
  });

  it('has Prometheus scrape account-authz and Envoy at their ports', async () => {
    const { scrape_configs } = parse(await read('demo/compose/prometheus/prometheus.yml')) as {
      scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[];
    };
    const targets = Object.fromEntries(
      scrape_configs.map(each => [each.job_name, each.static_configs.flatMap(({ targets }) => targets)]),
    );
    expect(targets).to.deep.include({
      'account-authz': [`127.0.0.1:${portOf(config?.admin ?? '')}`],
      envoy: [addressText(bootstrap.admin.address)],
    });
  });

  it('has Grafana query the Prometheus of the pod', async () => {
    const { datasources } = parse(await read('demo/compose/grafana/provisioning/datasources/prometheus.yaml')) as {
      datasources: { type: string; url: string }[];
    };
    expect(datasources.map(({ type, url }) => `${type} ${url}`)).to.deep.equal(['prometheus http://pod:9090']);
  });

  it('has the memory limits and the version of Envoy of the manifests', async () => {
    const yaml = await renderText('k8s/overlays/envoy-sidecar');
    const images = parsePodPlan(yaml).containers.map(({ image }) => image);
    const versions = images.filter(image => image.includes('/envoy:')).map(image => /v\d[\d.]+/.exec(image)?.[0]);
    const limits = Array.from(
      yaml.matchAll(/limits:\n(?:\s+ephemeral-storage: \w+\n)?\s+memory: (\d+)Mi/g),
      ([, mebibytes]) => `${mebibytes}m`,
    );
    expect(serviceOf('envoy').image).to.include(`:${versions.join()}}`);
    expect(limits).to.include.members([serviceOf('account-authz').mem_limit, serviceOf('envoy').mem_limit]);
  });
});
