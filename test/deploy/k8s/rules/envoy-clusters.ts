// Envoy's bootstrap against itself and the Services: each cluster, filter and certificate that it names exists, and each DNS name
// resolves to one address per pod.
import { isIP } from 'node:net';
import { authorizationServiceName } from '../../../../src/envoy/protocol.ts';
import { at, type Facts, listOf, type Path, problemsOf, type Rules, valuesIn, valuesOf } from '../facts.ts';
import { containerOf, containersOf, ofKind, podsOf } from '../manifest.ts';
import { addressText, listeningOf, sameItems } from './listening.ts';

export function envoyClusterProblems(facts: Facts): string[] {
  if (facts.bootstrap === undefined) return [];
  const clusters = listOf(at(facts.bootstrap, 'static_resources', 'clusters'));
  return problemsOf([
    ...nameRules(facts, clusters),
    ...clusters.flatMap(cluster => clusterRules(facts, cluster)),
    ...certificateRules(facts),
  ]);
}

function nameRules({ bootstrap }: Facts, clusters: readonly unknown[]): Rules {
  const names = clusters.map(cluster => at(cluster, 'name'));
  const named = [...valuesOf(bootstrap, 'cluster_name'), ...valuesOf(bootstrap, 'cluster')].filter(
    name => name !== at(bootstrap, 'node', 'cluster'),
  );
  const filters = valuesOf(bootstrap, 'http_filters').flatMap(list => listOf(list).map(filter => at(filter, 'name')));
  const values = valuesIn(bootstrap);
  const perRoute = valuesOf(bootstrap, 'typed_per_filter_config').flatMap(each => Object.keys(Object(each)));
  const metadata = values
    .filter(({ path }) => path.at(-2) === 'metadata_matcher' && path.at(-1) === 'filter')
    .map(({ value }) => value);
  const logged = values.flatMap(({ value }) =>
    Array.from(String(value).matchAll(/%(?:DYNAMIC_METADATA|FILTER_STATE)\(([^:)]+)/g), ([, name]) => name),
  );
  return [
    [sameItems([...new Set(named)], names), `Envoy has the clusters ${names} and names ${[...new Set(named)]}`],
    [
      [...perRoute, ...metadata, ...logged].every(name => filters.includes(name)),
      'Envoy names a filter that it does not have',
    ],
  ];
}

const secretType = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret';
const endpoints: Path = ['load_assignment', 'endpoints', 0, 'lb_endpoints'];

function clusterRules(facts: Facts, cluster: unknown): Rules {
  const name = String(at(cluster, 'name'));
  const [endpoint, ...more] = listOf(at(cluster, ...endpoints));
  const address = at(endpoint, 'endpoint', 'address');
  const host = String(at(address, 'socket_address', 'address') ?? '');
  const port = Number(at(address, 'socket_address', 'port_value'));
  const service = ofKind(facts.manifests, 'Service').find(({ metadata }) => metadata.name === host);
  const isByName = host !== '' && isIP(host) === 0;
  const checked = at(cluster, 'health_checks', 0, 'grpc_health_check', 'service_name');
  return [
    [at(cluster, 'load_assignment', 'cluster_name') === name, `cluster ${name} assigns load to another one`],
    [more.length === 0, `cluster ${name} has a second address`],
    [at(cluster, 'type') === (isByName ? 'STRICT_DNS' : 'STATIC'), `cluster ${name} finds its address another way`],
    ...(isByName
      ? ([
          [
            service?.spec.ports.some(each => each.port === port) === true,
            `cluster ${name} has no Service at ${host}:${port}`,
          ],
          // With a virtual IP, Envoy would see one host: no retry on another pod, no health check of each pod.
          [service?.spec.clusterIP === 'None', `cluster ${name} takes Service/${host} for one host`],
        ] as const)
      : [
          [
            isListenedTo(facts, addressText(address)),
            `cluster ${name} has an address that nothing listens on`,
          ] as const,
        ]),
    [
      checked === undefined || checked === authorizationServiceName,
      `cluster ${name} checks the health of another service`,
    ],
  ];
}

function isListenedTo(facts: Facts, address: string): boolean {
  return podsOf(facts.manifests)
    .filter(pod => containerOf(pod, 'envoy') !== undefined)
    .every(pod =>
      containersOf(pod).some(
        container =>
          (container.name === 'account-authz' && facts.config.listen === address) ||
          listeningOf(facts, container).some(({ host, port }) => `${host}:${port}` === address),
      ),
    );
}

/** Certificates that Envoy reads from files exist under the configured names, and are watched. */
function certificateRules({ bootstrap, envoyFiles }: Facts): Rules {
  const asked = valuesIn(bootstrap).filter(({ value }) => at(value, 'sds_config') !== undefined);
  return asked.flatMap(({ value }): Rules => {
    const path = String(at(value, 'sds_config', 'path_config_source', 'path'));
    const resources = listOf(at(envoyFiles[path.split('/').at(-1) ?? ''], 'resources'));
    const names = resources.map(each => at(each, 'name'));
    return [
      [sameItems(names, [at(value, 'name')]), `${path} has ${names}, Envoy expects ${at(value, 'name')}`],
      [at(value, 'sds_config', 'resource_api_version') === 'V3', `${path} is asked for in another version`],
      [resources.every(each => at(each, '@type') === secretType), `${path} has no secret`],
      [
        resources.every(each => valuesOf(each, 'watched_directory').some(folder => at(folder, 'path') !== undefined)),
        `${path} is not read again`,
      ],
    ];
  });
}
