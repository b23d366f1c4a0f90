// What Istio needs, so that the Envoy of a sidecar, a gateway or a waypoint asks account-authz.
import { allowKey } from '../../authz/principal.ts';
import { authzConnection } from '../envoy-settings/authz-cluster.ts';
import { authzCall, extAuthzSettings, filterNames, seconds } from '../envoy-settings/authz-filter.ts';
import { documentProblem } from '../envoy-settings/open-routes.ts';
import { renamed } from '../envoy-settings/setting.ts';
import { isInPod, type RenderSettings } from '../envoy-settings/settings.ts';
import { above, beside, inline, type Members, type Tree } from '../envoy-settings/tree.ts';
import { passiveHealthCheck, serviceAddress } from './authz-service.ts';
import { shadowIntroduction } from './bootstrap.ts';
import { envoyFilter, podLabels } from './istio-filter.ts';
import { isKubernetesName, manifest, type RenderedFiles, renderedFile } from './rendered-files.ts';

/** The name of the ServiceEntry, by which the mesh knows account-authz: in every pod, its own. */
const ownPod = 'account-authz.internal';

const waypointGuard =
  'Refuses (403) what was not checked, and an empty answer of the check, which means allow in this protocol.';

/** What an option or a key of the configuration must be for Istio: a sentence. */
export function istioProblem(settings: RenderSettings): string | undefined {
  const { attach, authz, tls, upstream, upstreams, selector, namespace, authzNamespace, publicRoutes } = settings;
  if (upstreams.length > 0) return '--upstream must have no path: route by path in a VirtualService';
  if (authz.kind !== 'tcp' || tls !== undefined || (attach === 'sidecar' && !isInPod(authz)))
    return `listen of the configuration must be a ${attach === 'sidecar' ? 'loopback ' : ''}port, without tls: the mesh encrypts`;
  const unfit = documentProblem(settings);
  if (unfit !== undefined || attach === 'sidecar') return unfit;
  if (!isInPod(authz) && (authzNamespace ?? namespace) === undefined)
    return '--namespace or --authz-namespace must name the namespace of account-authz';
  if (attach === 'gateway') {
    if (selector === undefined) return '--selector must have the labels of the pods of the gateway';
    return publicRoutes.length === 0 || upstream.host.includes('.svc.')
      ? undefined
      : '--upstream must be the full name of a Service (orders.shop.svc.cluster.local:80), to which the routes of public lead';
  }
  if (isInPod(authz)) return 'listen of the configuration must not be loopback: a waypoint asks a Service';
  if (!isKubernetesName(upstream.host))
    return '--upstream must be the Service that is checked, without its namespace (orders:80)';
  return publicRoutes.length === 0 && settings.metadata === undefined
    ? undefined
    : 'public and protectedResource of the configuration must be empty: a waypoint removes no forged header where it does not check';
}

export function istioFiles(settings: RenderSettings): RenderedFiles {
  const { attach, isShadow } = settings;
  const isWaypoint = attach === 'waypoint';
  const checked = [
    'Istio checks the paths under the routes of the configuration, by whole segments. CUSTOM comes before ALLOW, and a request that no CUSTOM rule matches is not checked at all, so the second policy refuses (403) everything else.',
    ...(attach === 'gateway'
      ? ['So the gateway must be of this API alone; beside others, attach to the workload (--attach sidecar).']
      : []),
  ];
  return [
    renderedFile('authorization-policy.yaml', authorizationPolicies(settings), isShadow ? shadowIntroduction : checked),
    renderedFile(
      'envoy-filter.yaml',
      isWaypoint ? [] : [resource('networking.istio.io/v1alpha3', 'EnvoyFilter', settings, envoyFilter(settings))],
      [
        'Settings for which Istio has no field, so that its Envoy is as strict as a bootstrap of `render envoy`, which has the reasons.',
      ],
    ),
    isInPod(settings.authz)
      ? renderedFile(
          'service-entry.yaml',
          [serviceEntry(settings), destinationRule(settings)],
          [
            'The name of account-authz in the mesh: each pod reaches its own. A namespace whose workloads are checked needs one.',
          ],
        )
      : renderedFile(
          'destination-rule.yaml',
          [destinationRule(settings)],
          [
            'How the mesh reaches account-authz. Whoever answers there decides: require mutual TLS for its pods (PeerAuthentication, STRICT).',
            ...(isWaypoint
              ? [
                  'Its Service needs a cluster IP: a waypoint reaches no pod of a Service with `clusterIP: None`, and answers 503.',
                ]
              : []),
          ],
        ),
    renderedFile(
      'mesh-config.yaml',
      [meshConfig(settings)],
      [
        'A part of the MeshConfig of Istio, to be merged with yours: `meshConfig:` in the values of the chart istiod or of istioctl, or the key `mesh` of the ConfigMap istio in istio-system. Istio ignores a key that it does not know: copy, do not type.',
      ],
    ),
  ];
}

function resource(
  apiVersion: string,
  kind: string,
  settings: RenderSettings,
  spec: Members,
  name = 'account-authz',
): Members {
  return manifest(apiVersion, kind, { name: named(settings, name), namespace: settings.namespace }, spec);
}

function named({ name: prefix }: RenderSettings, name: string): string {
  return prefix === undefined ? name : `${prefix}-${name}`;
}

/** A mesh has one provider of a name: that of each pod's own account-authz does for all pods, each Service needs its own. */
function providerName(settings: RenderSettings): string {
  return isInPod(settings.authz) ? 'account-authz' : named(settings, 'account-authz');
}

function authzHost(settings: RenderSettings): string {
  if (isInPod(settings.authz)) return ownPod;
  const { host } = serviceAddress(settings);
  return host.includes('.') ? host : `${host}.${settings.authzNamespace ?? settings.namespace}.svc.cluster.local`;
}

/** CUSTOM comes before ALLOW, and a request that no CUSTOM rule matches is not checked at all: the second policy refuses it. */
function authorizationPolicies(settings: RenderSettings): readonly Tree[] {
  const { attach, isShadow, upstream } = settings;
  const open = settings.publicRoutes.flatMap(({ path, subtree }) => [path, subtree ? `${path}/*` : `${path}/`]);
  const paths = [
    ...settings.paths.flatMap(path => (path === '/' ? ['/*'] : [path, `${path}/*`])),
    // Checked too where the EnvoyFilter does not serve them: other methods, hosts and spellings are refused.
    ...open,
    ...(settings.metadata === undefined ? [] : [settings.metadata.path]),
  ];
  const target =
    attach === 'waypoint'
      ? { targetRefs: [inline({ group: '', kind: 'Service', name: upstream.host })] }
      : { selector: { matchLabels: podLabels(settings) } };
  const policy = (spec: Members, name?: string): Members =>
    resource('security.istio.io/v1', 'AuthorizationPolicy', settings, { ...target, ...spec }, name);
  const operation = (fields: Members): Members => ({ operation: inline(fields) });
  const provider = inline({ name: providerName(settings) });
  const custom = (rule: Members): Members => policy({ action: 'CUSTOM', provider, rules: [{ to: [operation(rule)] }] });
  // Of the pod: of a gateway, other ports are listeners too.
  const ports = attach === 'sidecar' ? [String(upstream.port)] : undefined;
  if (isShadow) return [custom({ ports, notPaths: open.length === 0 ? undefined : open })];
  // A waypoint has no guard of an EnvoyFilter and removes no header: it refuses what was not allowed, and a request that has one of these.
  const overrides = settings.headers.filter(({ removed }) => removed === 'everywhere').flatMap(({ names }) => names);
  const when = [
    above(waypointGuard, inline({ key: `experimental.${filterNames.extAuthz}[${allowKey}]`, values: ['allow'] })),
    ...overrides
      .filter(name => !name.endsWith('*'))
      .map(name => inline({ key: `request.headers[${name}]`, notValues: ['*'] })),
  ];
  const metrics = above(
    'Metrics of account-authz. Probes do not come this way: the agent of Istio makes them itself.',
    { to: [operation({ ports: [String(settings.authzAdmin.port)], methods: ['GET'], paths: ['/metrics'] })] },
  );
  return [
    custom({ paths }),
    policy(
      {
        action: 'ALLOW',
        rules: [
          { to: [operation({ ports, paths })], when: attach === 'waypoint' ? when : undefined },
          isInPod(settings.authz) ? metrics : undefined,
        ],
      },
      'nothing-else',
    ),
  ];
}

function serviceEntry(settings: RenderSettings): Tree {
  return resource('networking.istio.io/v1', 'ServiceEntry', settings, {
    hosts: inline([ownPod]),
    exportTo: inline(['.']),
    location: beside('MESH_EXTERNAL', 'no mutual TLS: it never leaves the pod'),
    resolution: 'STATIC',
    ports: [inline({ number: serviceAddress(settings).port, name: 'grpc', protocol: 'GRPC' })],
    endpoints: [inline({ address: '127.0.0.1' })],
  });
}

function destinationRule(settings: RenderSettings): Tree {
  const isOwn = isInPod(settings.authz);
  const place = isOwn ? settings : { ...settings, namespace: settings.authzNamespace ?? settings.namespace };
  return resource('networking.istio.io/v1', 'DestinationRule', place, {
    host: authzHost(settings),
    exportTo: isOwn ? inline(['.']) : undefined,
    trafficPolicy: {
      connectionPool: {
        tcp: inline({ connectTimeout: seconds(isOwn ? authzConnection.connectMs : authzConnection.tlsConnectMs) }),
        http: above(
          'Each client that goes away during its check resets a stream. Node ends a connection after 1,000 resets, with the checks of others on it.',
          inline({
            maxRequestsPerConnection: authzConnection.maxChecksPerConnection,
            maxConcurrentStreams: authzConnection.maxStreams,
          }),
        ),
      },
      outlierDetection: isOwn
        ? undefined
        : beside(
            { ...passiveHealthCheck, consecutive5xxErrors: 0 },
            'ejects a pod at once if it cannot be reached, never for its answers',
          ),
    },
  });
}

/** A part of MeshConfig. */
function meshConfig(settings: RenderSettings): Tree {
  return {
    pathNormalization: settings.isShadow
      ? undefined
      : {
          normalization: beside(
            'DECODE_AND_MERGE_SLASHES',
            'one spelling of a path for the policies, for account-authz and for the app',
          ),
        },
    extensionProviders: [
      {
        name: providerName(settings),
        envoyExtAuthzGrpc: {
          service: isInPod(settings.authz) ? beside(ownPod, 'the ServiceEntry: the same pod') : authzHost(settings),
          port: serviceAddress(settings).port,
          timeout: beside(seconds(authzCall.timeoutMs), 'the default of Istio is ten minutes'),
          ...renamed(extAuthzSettings(settings), {
            statusOnError: { from: 'status_on_error', value: '503' },
            failOpen: 'failure_mode_allow',
            clearRouteCache: 'clear_route_cache',
          }),
        },
      },
    ],
  };
}
