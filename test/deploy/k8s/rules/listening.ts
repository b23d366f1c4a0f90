// Ports: the ports that a container listens on match its declared ports, its probes, the Services and every client.
import { isLoopback, parseListenAddress, type TcpAddress } from '../../../../src/text/listen-address.ts';
import { at, type Facts, listOf, problemsOf, type Rules } from '../facts.ts';
import { type Container, containersOf, isSelected, nameOf, ofKind, type Pod, type Probe, podsOf } from '../manifest.ts';

/** The addresses that a container listens on, by its arguments, the configuration or the bootstrap. */
export function listeningOf({ config, bootstrap }: Facts, { name, args = [] }: Container): TcpAddress[] {
  const option = (given: string): string[] => (args.includes(given) ? [args[args.indexOf(given) + 1] ?? ''] : []);
  const addresses =
    name === 'account-authz'
      ? [config.listen, config.admin]
      : name === 'envoy'
        ? [at(bootstrap, 'admin', 'address'), ...listenersOf(bootstrap)].map(addressText)
        : [...option('--listen'), ...option('--health')];
  return addresses.map(parseListenAddress).filter(address => address.kind === 'tcp');
}

function listenersOf(bootstrap: unknown): unknown[] {
  return listOf(at(bootstrap, 'static_resources', 'listeners')).map(listener => at(listener, 'address'));
}

/** Envoy's core.v3.Address in the notation of the configuration. */
export function addressText(address: unknown): string {
  const pipe = at(address, 'pipe', 'path');
  if (pipe !== undefined) return `unix:${pipe}`;
  return `${at(address, 'socket_address', 'address')}:${at(address, 'socket_address', 'port_value')}`;
}

/** The number of a port that a Service, a policy or a monitor refers to by name. */
export function portNumber(pod: Pod, port: string | number): number | undefined {
  const ports = containersOf(pod).flatMap(container => container.ports ?? []);
  return ports.find(({ name, containerPort }) => name === port || containerPort === port)?.containerPort;
}

export function listeningProblems(facts: Facts): string[] {
  return problemsOf([
    ...podsOf(facts.manifests).flatMap(pod => podRules(facts, pod)),
    ...serviceRules(facts),
    ...monitorRules(facts),
  ]);
}

function podRules(facts: Facts, pod: Pod): Rules {
  const all = containersOf(pod).flatMap(container => listeningOf(facts, container).map(({ port }) => port));
  return [
    [new Set(all).size === all.length, `two containers of ${pod.name} listen at one port`],
    ...containersOf(pod).flatMap(container => containerRules(facts, pod, container)),
  ];
}

function containerRules(facts: Facts, pod: Pod, container: Container): Rules {
  const who = `${pod.name}/${container.name}`;
  const listening = listeningOf(facts, container);
  const reachable = listening.filter(({ host }) => !isLoopback(host)).map(({ port }) => port);
  const declared = (container.ports ?? []).map(({ containerPort }) => containerPort);
  const { name, startupProbe, readinessProbe, livenessProbe } = container;
  const probes = name === 'drain' ? [] : [startupProbe, readinessProbe, livenessProbe];
  return [
    [sameItems(declared, reachable), `${who} listens at ${reachable} and declares ${declared}`],
    [(container.ports ?? []).every(({ protocol = 'TCP' }) => protocol === 'TCP'), `${who} has a port that is not TCP`],
    ...probes.map(probe => [isAnswered(facts, container, probe), `${who} does not answer one of its probes`] as const),
  ];
}

/** The paths that answer probes, by port. */
function probePaths({ config, bootstrap }: Facts, container: Container): Record<number, readonly string[]> {
  const admin = parseListenAddress(config.admin);
  if (container.name === 'account-authz') return admin.kind === 'tcp' ? { [admin.port]: ['/livez', '/readyz'] } : {};
  if (container.name === 'envoy') {
    const readiness = at(bootstrap, 'static_resources', 'listeners', 'readiness');
    const manager = at(readiness, 'filter_chains', 0, 'filters', 0, 'typed_config');
    const headers = at(manager, 'http_filters', 'envoy.filters.http.health_check', 'typed_config', 'headers');
    const port = Number(at(readiness, 'address', 'socket_address', 'port_value'));
    return { [port]: [String(at(headers, ':path', 'string_match', 'exact'))] };
  }
  const health = parseListenAddress(container.args?.[container.args.indexOf('--health') + 1] ?? '');
  return health.kind === 'tcp' ? { [health.port]: ['/healthz'] } : {};
}

function isAnswered(facts: Facts, container: Container, probe: Probe | undefined): boolean {
  const target = probe?.httpGet ?? probe?.tcpSocket;
  const ports = container.ports ?? [];
  const port = ports.find(each => each.name === target?.port || each.containerPort === target?.port);
  const paths = probePaths(facts, container)[port?.containerPort ?? 0];
  return paths !== undefined && (probe?.httpGet === undefined || paths.includes(probe.httpGet.path));
}

function serviceRules({ manifests }: Facts): Rules {
  return ofKind(manifests, 'Service').flatMap(service => {
    const pods = podsOf(manifests).filter(({ labels }) => isSelected(labels, { matchLabels: service.spec.selector }));
    const who = nameOf(service);
    return service.spec.ports.flatMap(({ name, port, targetPort, appProtocol }): Rules => {
      const isGrpc = targetPort === 'authz-grpc';
      return [
        [
          pods.every(pod => portNumber(pod, targetPort) !== undefined),
          `${who} leads to ${targetPort}, which is no port`,
        ],
        [
          ['http', 'envoy-http', 'app', 'authz-grpc'].includes(String(targetPort)) &&
            name === (isGrpc ? 'grpc' : 'http'),
          `${who} leads past what answers requests`,
        ],
        [isGrpc || port === 80, `${who} is not at the port of HTTP`],
        [appProtocol === (isGrpc ? 'grpc' : 'http'), `${who} names another protocol than is spoken at ${targetPort}`],
      ];
    });
  });
}

/** The job name that the alerts expect: the operator sets the label job to NAMESPACE/NAME. */
function monitorRules({ manifests, config, jobs }: Facts): Rules {
  const admin = parseListenAddress(config.admin);
  return ofKind(manifests, 'PodMonitor').flatMap(monitor => {
    const { namespace, name } = monitor.metadata;
    const pods = podsOf(manifests).filter(({ labels }) => isSelected(labels, monitor.spec.selector));
    const [endpoint, ...more] = monitor.spec.podMetricsEndpoints;
    const isServed = pods.every(pod => admin.kind === 'tcp' && portNumber(pod, endpoint?.port ?? '') === admin.port);
    return [
      [
        more.length === 0 && endpoint?.path === '/metrics' && isServed,
        `${nameOf(monitor)} scrapes a port or path without metrics`,
      ],
      [jobs.every(job => job.test(`${namespace}/${name}`)), `${nameOf(monitor)} is a job that no alert knows`],
    ] as const;
  });
}

/** Compares as sets. */
export function sameItems(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.map(String).sort().join('\n') === others.map(String).sort().join('\n');
}
