// The configuration against the pods and Envoy: addresses, header names, keys and the sample workload.
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../../../src/config/schema.ts';
import { createIdentityHeaders } from '../../../../src/envoy/identity-headers.ts';
import { parseRevocation } from '../../../../src/revocation/revocation-entry.ts';
import { isLoopback, parseListenAddress } from '../../../../src/text/listen-address.ts';
import { at, type Facts, listOf, memoized, type Path, problemsOf, type Rules } from '../facts.ts';
import { configMapOf, containerOf, ofKind, type Pod, podsOf } from '../manifest.ts';
import { addressText } from './listening.ts';

const manager: Path = ['filter_chains', 0, 'filters', 0, 'typed_config'];
export const publicManager: Path = ['static_resources', 'listeners', 'public', ...manager];
export const extAuthz: Path = [...publicManager, 'http_filters', 'envoy.filters.http.ext_authz', 'typed_config'];

export function configurationProblems(facts: Facts): string[] {
  return problemsOf([
    ...podsOf(facts.manifests).flatMap(pod => podRules(facts, pod)),
    ...sampleRules(facts),
    ...revocationRules(facts),
    ...(facts.bootstrap === undefined ? [] : bootstrapRules(facts)),
  ]);
}

function podRules({ config }: Facts, pod: Pod): Rules {
  const container = containerOf(pod, 'account-authz');
  if (container === undefined) return [];
  const { startupProbe, readinessProbe, livenessProbe } = container;
  const listen = parseListenAddress(config.listen);
  const staysInside = listen.kind === 'unix' || (listen.kind === 'tcp' && isLoopback(listen.host));
  const isSidecar = pod.labels['account-authz/mode'] === 'sidecar';
  return [
    [staysInside === isSidecar, isSidecar ? 'listen leaves the pod' : 'listen cannot be reached'],
    [isSidecar || config.tls?.clientCaFile !== undefined, 'account-authz takes calls without a certificate'],
    // Readiness waits for the first keys; liveness and startup must not.
    [
      startupProbe?.httpGet?.path === '/livez' && livenessProbe?.httpGet?.path === '/livez',
      'an outage of the keys ends account-authz',
    ],
    [readinessProbe?.httpGet?.path === '/readyz', 'account-authz is asked before it has keys'],
  ];
}

function revocationRules({ manifests }: Facts): Rules {
  const list = configMapOf(manifests, 'account-authz-revocation')?.['revoked.jsonl'];
  if (list === undefined) return [];
  const entries = list.split('\n').filter(line => line !== '');
  const areGood = entries.every(line => parseRevocation(Buffer.from(line)).kind === 'revocation');
  return [[areGood, 'account-authz refuses the revocation list']];
}

/** One sample workload in all overlays and in compose.yaml; the demo has its own issuer, and that of a partner. */
function sampleRules({ config, sample }: Facts): Rules {
  const sampleOf = ({ routes, account, roles, shutdown, identityHeaders, issuers }: Config): string =>
    JSON.stringify({
      routes,
      account,
      roles: [...roles],
      shutdown,
      identityHeaders,
      audiences: issuers[0]?.audiences,
    });
  return [
    [
      sampleOf(config) === sampleOf(sample),
      'the configuration protects another workload than demo/compose/account-authz/config.yaml',
    ],
    ...config.issuers.map(
      ({ issuer, jwksUrl, discoveryUrl }) =>
        [
          (jwksUrl ?? discoveryUrl)?.startsWith(`${issuer}/`) === true,
          `the keys of ${issuer} are those of another`,
        ] as const,
    ),
  ];
}

/** The bootstrap of an overlay equals envoy.yaml except for the cluster of account-authz. */
function bootstrapRules({ manifests, bootstrap, config, envoy, tlsCluster }: Facts): Rules {
  const ownCluster = at(envoy, 'static_resources', 'clusters', 'account-authz');
  const cluster = at(bootstrap, 'static_resources', 'clusters', 'account-authz');
  const tls = at(cluster, 'transport_socket', 'typed_config');
  const service = ofKind(manifests, 'Service').find(({ metadata }) => metadata.name === 'account-authz');
  const upstream = at(
    bootstrap,
    'static_resources',
    'clusters',
    'upstream',
    'load_assignment',
    'endpoints',
    0,
    'lb_endpoints',
    0,
  );
  const asked = addressText(at(cluster, 'load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint', 'address'));
  const apps = podsOf(manifests).flatMap(pod => containerOf(pod, 'app') ?? []);
  return [
    [withoutCluster(bootstrap) === withoutCluster(envoy), 'the bootstrap is not envoy.yaml'],
    [
      isDeepStrictEqual(withoutAddress(cluster), withoutAddress(service === undefined ? ownCluster : tlsCluster)),
      'account-authz is asked in another way than envoy.yaml or components/mutual-tls does',
    ],
    [
      asked === (service === undefined ? config.listen : `${service.metadata.name}:${service.spec.ports[0]?.port}`),
      'Envoy calls another address than account-authz listens on',
    ],
    [
      (config.tls !== undefined) === (tls !== undefined),
      'Envoy speaks TLS where account-authz does not, or the reverse',
    ],
    [
      apps.length > 0 && apps.every(({ args = [] }) => args.includes(addressText(at(upstream, 'endpoint', 'address')))),
      'Envoy forwards somewhere else than the app listens',
    ],
    ...headerRules(config, at(bootstrap, ...publicManager), at(bootstrap, ...extAuthz), 'Envoy'),
  ];
}

function withoutAddress(cluster: unknown): unknown {
  return { ...Object(cluster), load_assignment: undefined };
}

// Watched certificate files require a node id.
const withoutCluster = memoized((bootstrap: unknown) =>
  JSON.stringify(bootstrap, (key, value: unknown) => {
    if (key === 'node') return undefined;
    return key === 'clusters' ? listOf(value).filter(each => at(each, 'name') !== 'account-authz') : value;
  }),
);

/** In the notation of Envoy's configuration. */
export function headerRules(config: Config, connectionManager: unknown, filter: unknown, who: string): Rules {
  const mutations = at(connectionManager, 'early_header_mutation_extensions', 0, 'typed_config', 'mutations');
  const shown = listOf(at(filter, 'allowed_headers', 'patterns')).map(pattern => at(pattern, 'exact'));
  const allowed = at(filter, 'decoder_header_mutation_rules', 'allow_expression', 'regex');
  const removed = listOf(mutations).map(each => at(each, 'remove_on_match', 'key_matcher', 'safe_regex', 'regex'));
  const ours = ownedNames(config);
  return [
    [
      ['authorization', ...config.account.headers].every(name => shown.includes(name)),
      `${who} does not show account-authz what names an account`,
    ],
    [ours.every(name => removed.some(regex => matches(regex, name))), `${who} lets clients set our headers`],
    [[...ours, 'authorization'].every(name => matches(allowed, name)), `${who} refuses what account-authz sets`],
    [['x-original-url', 'host', ':path'].every(name => !matches(allowed, name)), `${who} lets too much be set`],
  ];
}

export function ownedNames(config: Config): string[] {
  const { names, lookAlikes } = createIdentityHeaders(config.identityHeaders);
  return [...names.values(), ...lookAlikes];
}

export function matches(regex: unknown, name: string): boolean {
  return typeof regex === 'string' && new RegExp(`^(?:${regex})$`).test(name);
}
