// What manifests say of the configuration, of Envoy's bootstrap and of the code: ports, paths, addresses, times and header names
// that stand in two places are the same in both.
import { dirname } from 'node:path';
import { isLoopback, parseListenAddress } from '../../src/address/listen-address.ts';
import { defaultConfigFile } from '../../src/commands/command.ts';
import type { Config } from '../../src/config/schema.ts';
import { createIdentityHeaders } from '../../src/envoy/identity-headers.ts';
import { version } from '../../src/version.ts';
import { at, type Facts, type Path, problemsOf, type Rules } from './facts.ts';
import { type Container, containerOf, containersOf, ofKind, type Pod, podsOf } from './manifest.ts';

export function agreementProblems(facts: Facts): string[] {
  return problemsOf([
    ...podsOf(facts.manifests).flatMap(pod => [
      ...authzRules(facts, pod),
      ...envoyRules(facts, pod),
      ...appRules(pod),
      ...stopRules(facts, pod),
    ]),
    ...imageRules(facts),
    ...(facts.bootstrap === undefined ? [] : bootstrapRules(facts)),
    ...istioRules(facts),
    ...gatewayRules(facts),
  ]);
}

const manager: Path = ['filter_chains', 0, 'filters', 0, 'typed_config'];
const publicManager: Path = ['static_resources', 'listeners', 'public', ...manager];
const extAuthz: Path = [...publicManager, 'http_filters', 'envoy.filters.http.ext_authz', 'typed_config'];
const socketPath = (cluster: unknown): unknown =>
  at(cluster, 'load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint', 'address');

function portsOf(container: Container | undefined): Record<string, number> {
  return Object.fromEntries((container?.ports ?? []).map(({ name, containerPort }) => [name, containerPort]));
}

function mountOf(container: Container | undefined, path: string) {
  return container?.volumeMounts?.find(({ mountPath }) => mountPath === path);
}

function authzRules({ config }: Facts, pod: Pod): Rules {
  const container = containerOf(pod, 'account-authz');
  if (container === undefined) return [];
  const { startupProbe, readinessProbe, livenessProbe } = container;
  const listen = parseListenAddress(config.listen);
  const admin = parseListenAddress(config.admin);
  const ports = portsOf(container);
  const isSidecar = pod.labels['account-authz/mode'] === 'sidecar';
  const folder = dirname(defaultConfigFile);
  return [
    [container.args?.join(' ') === `serve --config ${defaultConfigFile}`, 'account-authz is given another command'],
    [mountOf(container, folder)?.readOnly === true, `account-authz has no ${folder} that it can only read`],
    [admin.kind === 'tcp' && !isLoopback(admin.host) && admin.port === ports['authz-admin'], 'admin is another port'],
    ...[
      [startupProbe, '/livez'] as const,
      [readinessProbe, '/readyz'] as const,
      [livenessProbe, '/livez'] as const,
    ].map(
      ([probe, path]) =>
        [
          probe?.httpGet?.path === path && probe.httpGet.port === 'authz-admin',
          `account-authz is not probed at ${path} of admin`,
        ] as const,
    ),
    ...(isSidecar
      ? ([
          [listen.kind === 'unix' || (listen.kind === 'tcp' && isLoopback(listen.host)), 'listen leaves the pod'],
          [ports['authz-grpc'] === undefined, 'listen has a port of the pod'],
        ] as const)
      : ([
          [config.tls?.clientCaFile !== undefined, 'account-authz takes calls without a certificate'],
          [listen.kind === 'tcp' && listen.port === ports['authz-grpc'], 'listen is another port'],
        ] as const)),
    ...(listen.kind === 'unix' ? socketRules(pod, dirname(listen.path)) : []),
  ];
}

function socketRules(pod: Pod, folder: string): Rules {
  const [authz, envoy] = [containerOf(pod, 'account-authz'), containerOf(pod, 'envoy')];
  const [server, client] = [mountOf(authz, folder), mountOf(envoy, folder)];
  const volume = (pod.spec.volumes ?? []).find(({ name }) => name === server?.name);
  const user = (container: Container | undefined) => container?.securityContext?.runAsUser;
  return [
    [volume?.emptyDir !== undefined && server?.readOnly !== true, 'account-authz cannot make its socket'],
    [client !== undefined && client.name === server?.name, 'Envoy does not see the socket'],
    [user(authz) !== undefined && user(authz) === user(envoy), 'Envoy runs as another user than the socket is for'],
  ];
}

function envoyRules({ bootstrap }: Facts, pod: Pod): Rules {
  const container = containerOf(pod, 'envoy');
  if (container === undefined) return [];
  const ports = portsOf(container);
  const listenerPort = (name: string) =>
    at(bootstrap, 'static_resources', 'listeners', name, 'address', 'socket_address', 'port_value');
  const { args = [], startupProbe, readinessProbe, livenessProbe, lifecycle } = container;
  const names = containersOf(pod).map(({ name }) => name);
  const heap = at(bootstrap, 'overload_manager', 'resource_monitors', 'envoy.resource_monitors.fixed_heap');
  const heapBytes = Number(at(heap, 'typed_config', 'max_heap_size_bytes'));
  const isNative = container.restartPolicy === 'Always';
  return [
    [args[args.indexOf('--config-path') + 1] === '/etc/envoy/envoy.yaml', 'Envoy is given another bootstrap'],
    [mountOf(container, '/etc/envoy')?.readOnly === true, 'Envoy has no bootstrap that it can only read'],
    [ports['envoy-http'] === listenerPort('public'), 'Envoy listens on another port'],
    [ports['envoy-ready'] === listenerPort('readiness'), 'Envoy tells its readiness on another port'],
    [
      [startupProbe, readinessProbe].every(
        probe => probe?.httpGet?.path === '/ready' && probe.httpGet.port === 'envoy-ready',
      ),
      'Envoy is not probed at /ready',
    ],
    [livenessProbe?.tcpSocket?.port === 'envoy-ready', 'a drain of Envoy would look like its death'],
    [heapBytes <= 0.8 * bytesOf(container.resources?.limits?.memory), 'the heap of Envoy is too large for its limit'],
    [
      Number(args[args.indexOf('--drain-time-s') + 1]) === lifecycle?.preStop?.sleep?.seconds,
      'Envoy drains for another time than it waits for',
    ],
    [!isNative || !names.includes('account-authz') || names[0] === 'account-authz', 'account-authz is not the first'],
    [!isNative || names.indexOf('envoy') < names.indexOf('app'), 'the app starts before Envoy'],
  ];
}

// Behind an Envoy in its pod the app takes calls from nobody else.
function appRules(pod: Pod): Rules {
  const app = containerOf(pod, 'app');
  if (app === undefined || containerOf(pod, 'envoy') === undefined) return [];
  const listen = app.args?.[app.args.indexOf('--listen') + 1];
  return [
    [listen === '127.0.0.1:8000', 'the app can be reached past Envoy'],
    [portsOf(app).app === undefined, 'the port of the app is a port of the pod'],
  ];
}

function stopRules({ config }: Facts, pod: Pod): Rules {
  const waits = containersOf(pod).map(({ lifecycle }) => {
    const { sleep, exec } = lifecycle?.preStop ?? {};
    return sleep?.seconds ?? Number(exec?.command.at(-1) ?? 0);
  });
  const longest = Math.max(...waits);
  const app = containerOf(pod, 'app');
  return [
    [
      pod.spec.terminationGracePeriodSeconds >= longest + config.shutdown.graceSeconds + 5,
      `${pod.name} is killed before it has stopped`,
    ],
    // Told to stop without a wait, it would be gone while calls still come.
    [app === undefined || app.lifecycle?.preStop?.sleep?.seconds === 15, 'the app stops before its callers know'],
  ];
}

function imageRules({ manifests }: Facts): Rules {
  const images = podsOf(manifests).flatMap(containersOf);
  const ours = images.filter(({ image }) => image.startsWith('ghcr.io/account-authz/'));
  return [
    [ours.every(({ image }) => image.endsWith(`:${version}`)), `an image of ours is not ${version}`],
    [
      images.every(each => ours.includes(each) || /^docker\.io\/envoyproxy\/envoy:distroless-v/.test(each.image)),
      'an image is of a stranger',
    ],
  ];
}

function bootstrapRules({ manifests, bootstrap, config }: Facts): Rules {
  const clusterOf = (name: string) => socketPath(at(bootstrap, 'static_resources', 'clusters', name));
  const asked = clusterOf('account-authz');
  const listen = parseListenAddress(config.listen);
  const service = ofKind(manifests, 'Service').find(({ metadata }) => metadata.name === 'account-authz');
  const tls = at(bootstrap, 'static_resources', 'clusters', 'account-authz', 'transport_socket', 'typed_config');
  const endpoint = `${at(asked, 'socket_address', 'address')}:${at(asked, 'socket_address', 'port_value')}`;
  const isAsked =
    service === undefined
      ? (listen.kind === 'unix' ? `unix:${at(asked, 'pipe', 'path')}` : endpoint) === config.listen
      : endpoint === `${service.metadata.name}:${service.spec.ports[0]?.port}`;
  const upstream = clusterOf('upstream');
  return [
    [isAsked, 'Envoy asks somewhere else than account-authz listens'],
    [(service !== undefined) === (tls !== undefined), 'Envoy speaks TLS where account-authz does not, or the reverse'],
    [
      at(upstream, 'socket_address', 'address') === '127.0.0.1' &&
        at(upstream, 'socket_address', 'port_value') === 8000,
      'Envoy forwards somewhere else than the app listens',
    ],
    ...headerRules(config, at(bootstrap, ...publicManager), at(bootstrap, ...extAuthz), 'Envoy'),
  ];
}

/** In the spelling of Envoy's own configuration. */
function headerRules(config: Config, connectionManager: unknown, filter: unknown, who: string): Rules {
  const mutations = at(connectionManager, 'early_header_mutation_extensions', 0, 'typed_config', 'mutations');
  const patterns = at(filter, 'allowed_headers', 'patterns');
  const shown = Array.isArray(patterns) ? patterns.map(pattern => at(pattern, 'exact')) : [];
  const allowed = at(filter, 'decoder_header_mutation_rules', 'allow_expression', 'regex');
  const removed = (Array.isArray(mutations) ? mutations : []).map(each =>
    at(each, 'remove_on_match', 'key_matcher', 'safe_regex', 'regex'),
  );
  const { names, lookAlikes } = createIdentityHeaders(config.identityHeaders);
  const ours = [...names.values(), ...lookAlikes];
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

function matches(regex: unknown, name: string): boolean {
  return typeof regex === 'string' && new RegExp(`^(?:${regex})$`).test(name);
}

function istioRules({ manifests, config, meshConfig }: Facts): Rules {
  const policies = ofKind(manifests, 'AuthorizationPolicy');
  const [entry] = ofKind(manifests, 'ServiceEntry');
  const [filter] = ofKind(manifests, 'EnvoyFilter');
  if (policies.length === 0 && entry === undefined) return [];
  const custom = policies.filter(({ spec }) => spec.action === 'CUSTOM');
  const allow = policies.filter(({ spec }) => spec.action === 'ALLOW');
  const covered = ['/api/subscriptions', '/api/subscriptions/*'];
  const pathsOf = (each: (typeof policies)[number] | undefined) =>
    (each?.spec.rules ?? []).flatMap(rule => rule.to.flatMap(({ operation }) => operation.paths ?? []));
  const patches = (filter?.spec.configPatches ?? []).map(({ patch }) => patch.value.typed_config);
  const listen = `${entry?.spec.endpoints[0]?.address}:${entry?.spec.ports[0]?.number}`;
  const provider = {
    name: 'account-authz',
    envoyExtAuthzGrpc: {
      service: entry?.spec.hosts[0],
      port: entry?.spec.ports[0]?.number,
      timeout: '0.5s',
      statusOnError: '503',
      failOpen: false,
      clearRouteCache: false,
    },
  };
  return [
    [custom.length === 1 && custom[0]?.spec.provider?.name === provider.name, 'no policy asks account-authz'],
    [pathsOf(custom[0]).join() === covered.join(), 'a path under the protected one is not asked about'],
    [
      allow.length === 1 && pathsOf(allow[0]).join() === [...covered, '/metrics'].join(),
      'what is not asked about is not refused',
    ],
    [listen === config.listen && entry?.spec.resolution === 'STATIC', 'the mesh asks somewhere else'],
    [entry?.spec.exportTo?.join() === '.', 'the name account-authz.internal is taken in other namespaces'],
    // Istio ignores what it does not know, so nothing but the whole will do.
    [
      JSON.stringify(meshConfig) ===
        JSON.stringify({
          pathNormalization: { normalization: 'DECODE_AND_MERGE_SLASHES' },
          extensionProviders: [provider],
        }),
      'the mesh configuration is not what was tried',
    ],
    ...headerRules(config, patches[0], patches[1], 'Istio'),
  ];
}

function gatewayRules({ manifests, config }: Facts): Rules {
  const [policy] = ofKind(manifests, 'SecurityPolicy');
  const [traffic] = ofKind(manifests, 'ClientTrafficPolicy');
  const [route] = ofKind(manifests, 'HTTPRoute');
  const [gateway] = ofKind(manifests, 'Gateway');
  const [proxy] = ofKind(manifests, 'EnvoyProxy');
  const [tls] = ofKind(manifests, 'BackendTLSPolicy');
  if (policy === undefined && route === undefined) return [];
  const targets = (references: readonly { kind: string; name: string }[] | undefined) =>
    references?.map(({ kind, name }) => `${kind}/${name}`).join();
  const portOf = (name: string, port: number | undefined) =>
    ofKind(manifests, 'Service').some(
      ({ metadata, spec }) => metadata.name === name && spec.ports.some(each => each.port === port),
    );
  const { extAuth } = policy?.spec ?? {};
  const backend = extAuth?.grpc?.backendRefs[0];
  const service = route?.spec.rules[0]?.backendRefs[0];
  const removed = traffic?.spec.headers.earlyRequestHeaders.removeOnMatch ?? [];
  const { names, lookAlikes } = createIdentityHeaders(config.identityHeaders);
  return [
    [extAuth?.failOpen === false, 'Envoy Gateway fails open'],
    [extAuth?.statusOnError === 503, 'Envoy Gateway calls an outage a refusal'],
    [extAuth?.timeout === '500ms', 'Envoy Gateway waits too long'],
    [extAuth?.recomputeRoute === false, 'Envoy Gateway may move a request to another route'],
    [
      ['authorization', ...config.account.headers].every(name => extAuth?.headersToExtAuth?.includes(name)),
      'Envoy Gateway does not show account-authz what names an account',
    ],
    [targets(policy?.spec.targetRefs) === `HTTPRoute/${route?.metadata.name}`, 'the route is not asked about'],
    [targets(traffic?.spec.targetRefs) === `Gateway/${gateway?.metadata.name}`, 'the gateway is not strict'],
    [targets(route?.spec.parentRefs) === `Gateway/${gateway?.metadata.name}`, 'the route is at no gateway'],
    [backend?.name === 'account-authz' && portOf(backend.name, backend.port), 'Envoy Gateway asks somewhere else'],
    [service !== undefined && portOf(service.name, service.port), 'Envoy Gateway forwards somewhere else'],
    [
      route?.spec.rules.length === 1 &&
        JSON.stringify(route.spec.rules[0]?.matches) ===
          JSON.stringify([{ path: { type: 'PathPrefix', value: '/api/subscriptions' } }]),
      'another path than the protected one leads to the app',
    ],
    [
      traffic?.spec.path.escapedSlashesAction === 'RejectRequest' && traffic.spec.path.disableMergeSlashes === false,
      'Envoy Gateway leaves two spellings of a path',
    ],
    [traffic?.spec.headers.withUnderscoresAction === 'RejectRequest', 'Envoy Gateway takes names with underscores'],
    [
      [...names.values(), ...lookAlikes].every(name =>
        removed.some(({ type, value }) => type === 'RegularExpression' && matches(value, name)),
      ),
      'Envoy Gateway lets clients set our headers',
    ],
    [
      proxy?.metadata.name === gateway?.spec.infrastructure.parametersRef.name &&
        proxy?.spec.backendTLS.clientCertificateRef.name === 'account-authz-client-tls',
      'Envoy Gateway shows no certificate',
    ],
    [
      targets(tls?.spec.targetRefs) === 'Service/account-authz' && tls?.spec.validation.hostname === 'account-authz',
      'Envoy Gateway takes any certificate',
    ],
  ];
}

function bytesOf(quantity: string | undefined): number {
  const [, count, unit] = /^(\d+)([KMG]i)$/.exec(quantity ?? '') ?? [];
  return Number(count) * 1024 ** (['Ki', 'Mi', 'Gi'].indexOf(unit ?? '') + 1);
}
