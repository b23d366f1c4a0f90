// The address of account-authz in Envoy's bootstrap against the Services, and the certificate files of Envoy. Everything else of the
// bootstrap is compared with envoy.yaml as a whole (configuration.ts), which Envoy accepts (bootstraps.test.ts).
import { isIP } from 'node:net';
import { at, type Facts, listOf, problemsOf, type Rules, valuesIn, valuesOf } from '../facts.ts';
import { ofKind } from '../manifest.ts';
import { sameItems } from './listening.ts';

const secretType = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret';

export function envoyClusterProblems(facts: Facts): string[] {
  return facts.bootstrap === undefined ? [] : problemsOf([...addressRules(facts), ...certificateRules(facts)]);
}

function addressRules({ manifests, bootstrap }: Facts): Rules {
  const assignment = at(bootstrap, 'static_resources', 'clusters', 'account-authz', 'load_assignment');
  const [endpoint, ...more] = listOf(at(assignment, 'endpoints', 0, 'lb_endpoints'));
  const address = at(endpoint, 'endpoint', 'address', 'socket_address');
  const host = String(at(address, 'address') ?? '');
  const service = ofKind(manifests, 'Service').find(({ metadata }) => metadata.name === host);
  const isAsked = service?.spec.ports.some(({ port }) => port === Number(at(address, 'port_value')));
  const isByName = host !== '' && isIP(host) === 0;
  return [
    [at(assignment, 'cluster_name') === 'account-authz', 'cluster account-authz assigns load to another one'],
    [more.length === 0, 'cluster account-authz has a second address'],
    [!isByName || isAsked === true, `cluster account-authz has no Service at ${host}`],
    // With a virtual IP, Envoy would see one host: no retry on another pod, no health check of each pod.
    [!isByName || service?.spec.clusterIP === 'None', `cluster account-authz takes Service/${host} for one host`],
  ];
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
      [resources.every(each => at(each, '@type') === secretType), `${path} has no secret`],
      [
        resources.every(each => valuesOf(each, 'watched_directory').some(folder => at(folder, 'path') !== undefined)),
        `${path} is not read again`,
      ],
    ];
  });
}
