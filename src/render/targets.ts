// The targets of `render`: the files that each consists of.
import { dirname } from 'node:path';
import { isLoopback, type TcpAddress } from '../text/listen-address.ts';
import { authzFilters } from './authz-filters.ts';
import { bootstrap, bootstrapIntroduction, layeredRuntime } from './bootstrap.ts';
import { authzClusterOf, tlsFiles } from './clusters.ts';
import { managerSettings, otherHosts, virtualHost } from './connection-manager.ts';
import { backendTls, clientTrafficPolicy, securityPolicy } from './envoy-gateway.ts';
import { gatewayRoutesProblem, httpRoute, openHttpRoutes } from './envoy-gateway-routes.ts';
import { typed } from './extension.ts';
import { authorizationPolicies, destinationRule, envoyFilter, meshConfig, serviceEntry } from './istio.ts';
import { accountAuthzPatch, envoyPatch, isOwnFolder, sidecarKustomization, socketPatch } from './kubernetes.ts';
import type { OptionName } from './options.ts';
import { type EnvoySettings, isInPod, type RenderOptions, type RenderSettings } from './settings.ts';
import { above, type Members, type Tree } from './tree.ts';

export interface RenderedFile {
  readonly name: string;
  /** Lines of a comment at its top. */
  readonly introduction: readonly string[];
  readonly content: readonly Tree[] | string;
}

export interface Target {
  readonly summary: string;
  /** The options that it takes. */
  readonly options: readonly OptionName[];
  /** Why it cannot be for this configuration: a sentence about one of its keys. */
  readonly problem?: (settings: RenderSettings) => string | undefined;
  /** What does not fit, although the output can be used: a sentence. */
  readonly warning?: (settings: RenderSettings) => string | undefined;
  /** Envoy itself takes its first file, which is no stream of documents. */
  readonly isForEnvoy?: boolean;
  readonly defaults?: Partial<RenderOptions>;
  readonly files: (settings: RenderSettings) => readonly RenderedFile[];
}

const corsOptions = ['cors-origin', 'cors-header'] as const;
const listenOptions = ['listen', 'readiness-port', 'envoy-admin-port'] as const;
const envoyOptions = ['upstream', 'upstream-protocol', 'trusted-hops', ...corsOptions] as const;
const workloadOptions = ['name', 'namespace', 'selector'] as const;

export const targets: Readonly<Record<string, Target>> = {
  envoy: {
    summary: 'a whole bootstrap',
    options: [...listenOptions, ...envoyOptions, 'authz-host'],
    isForEnvoy: true,
    files: settings => [bootstrapFile(settings), ...secretFiles(settings)],
  },
  'envoy-parts': {
    summary: 'the parts for your own bootstrap',
    options: [...envoyOptions, 'authz-host'],
    isForEnvoy: true,
    files: settings => [
      { name: 'envoy-parts.yaml', introduction: partsIntroduction, content: [parts(settings)] },
      ...secretFiles(settings),
    ],
  },
  kubernetes: {
    summary: 'a kustomize component with both sidecars, for your own Deployments',
    options: [...listenOptions, ...envoyOptions, ...workloadOptions, 'image', 'envoy-image'],
    defaults: { selector: { 'account-authz/sidecar': 'true' } },
    problem({ authz, authzAdmin, tls }) {
      if (!isInPod(authz) || tls !== undefined)
        return 'listen of the configuration must be a loopback port or a Unix socket, without tls (Envoy runs in the same pod)';
      if (authz.kind === 'unix' && !isOwnFolder(dirname(authz.path)))
        return 'listen of the configuration must be a socket in a folder of its own, such as unix:/run/account-authz/authz.sock';
      return isLoopback(authzAdmin.host)
        ? `admin of the configuration must not be loopback, where the probes of the kubelet cannot reach it: write 0.0.0.0:${authzAdmin.port}`
        : undefined;
    },
    files: kubernetesFiles,
  },
  istio: {
    summary: 'policies, an EnvoyFilter and the extension provider, for a workload in a mesh',
    options: ['upstream', ...workloadOptions],
    defaults: { selector: { 'app.kubernetes.io/name': 'subscriptions' } },
    problem: ({ authz, tls }) =>
      authz.kind === 'tcp' && isInPod(authz) && tls === undefined
        ? undefined
        : 'listen of the configuration must be a loopback port, without tls',
    files: settings => [
      file('authorization-policy.yaml', authorizationPolicies(settings), [
        'Istio checks the paths under the routes of the configuration, by whole segments. CUSTOM comes before ALLOW, and a request that no',
        'CUSTOM rule matches is not checked at all, so the second policy refuses (403) everything else.',
      ]),
      file(
        'envoy-filter.yaml',
        [envoyFilter(settings)],
        [
          'Settings for which Istio has no field, so that its Envoy is as strict as a bootstrap of `render envoy`, which has the reasons.',
        ],
      ),
      file(
        'service-entry.yaml',
        [serviceEntry(settings), destinationRule(settings)],
        [
          'The name of account-authz in the mesh: each pod reaches its own. A namespace whose workloads are checked needs one.',
        ],
      ),
      file(
        'mesh-config.yaml',
        [meshConfig(settings)],
        [
          'A part of the MeshConfig of Istio, to be merged with yours: `meshConfig:` in the values of the chart istiod or of istioctl, or',
          'the key `mesh` of the ConfigMap istio in istio-system. Istio ignores a key that it does not know: copy, do not type.',
        ],
      ),
    ],
  },
  'envoy-gateway': {
    summary: 'policies for your own HTTPRoute, and the route',
    options: ['upstream', 'authz-host', 'trusted-hops', 'gateway', ...corsOptions, ...workloadOptions],
    defaults: { name: 'subscriptions', upstream: { kind: 'tcp', host: 'subscriptions', port: 80 } },
    warning: ({ authz }) =>
      isInPod(authz)
        ? 'listen of the configuration is loopback or a socket: the account-authz that the gateway asks must listen on 0.0.0.0, with tls'
        : undefined,
    problem: gatewayRoutesProblem,
    files: settings => [
      file('security-policy.yaml', [securityPolicy(settings, serviceAddress(settings))], []),
      file(
        'client-traffic-policy.yaml',
        [clientTrafficPolicy(settings)],
        ['As strict as a bootstrap of `render envoy`, which has the reasons.'],
      ),
      file('http-route.yaml', [httpRoute(settings)], []),
      ...openFiles(openHttpRoutes(settings)),
      ...(settings.tls === undefined
        ? []
        : [
            file('backend-tls.yaml', backendTls(settings), [
              'The gateway speaks TLS to account-authz, and only to a server whose certificate has its name. The EnvoyProxy belongs to your Gateway',
              'or GatewayClass: `parametersRef`.',
            ]),
          ]),
    ],
  },
};

function file(name: string, content: RenderedFile['content'], introduction: readonly string[] = []): RenderedFile {
  return { name, introduction, content };
}

function bootstrapFile(settings: EnvoySettings): RenderedFile {
  return file('envoy.yaml', [bootstrap(settings)], bootstrapIntroduction(settings));
}

function openFiles(routes: readonly Tree[]): readonly RenderedFile[] {
  if (routes.length === 0) return [];
  return [
    file('open-routes.yaml', routes, [
      'What the gateway serves without a check: no SecurityPolicy with extAuth names these routes.',
    ]),
  ];
}

function kubernetesFiles(settings: RenderSettings): readonly RenderedFile[] {
  const { authz } = settings;
  const patches = [
    file('envoy-container.yaml', [envoyPatch(settings)]),
    file('account-authz.yaml', [accountAuthzPatch(settings)]),
    ...(authz.kind === 'unix' ? [file('socket.yaml', [socketPatch(dirname(authz.path))])] : []),
  ];
  return [
    file(
      'kustomization.yaml',
      [
        sidecarKustomization(
          settings,
          patches.map(({ name }) => name),
        ),
      ],
      [
        'Envoy in front of the app and account-authz beside it, as native sidecars (Kubernetes 1.30 or later) of every Deployment with the',
        'label. The app listens on loopback, so that nobody bypasses Envoy.',
      ],
    ),
    ...patches,
    bootstrapFile(settings),
    file('config.yaml', settings.configText),
  ];
}

const defaultPort = 9191;

/** Where the gateway finds account-authz: never in its own pod. */
function serviceAddress({ authz, authzHost }: RenderSettings): TcpAddress {
  if (authz.kind === 'tcp' && !isInPod(authz)) return authz;
  return { kind: 'tcp', host: authzHost, port: authz.kind === 'tcp' ? authz.port : defaultPort };
}

const partsIntroduction = [
  'The parts that your own bootstrap needs, so that Envoy asks account-authz about each request. Each part says where it belongs.',
  'Check the whole with: account-authz check-config --config FILE --envoy YOUR-BOOTSTRAP',
];

function parts(settings: EnvoySettings): Members {
  const { routes, domains, name, ...corsSettings } = virtualHost(settings);
  const hostSettings = { ...(settings.hosts && { domains }), ...corsSettings };
  return {
    layered_runtime: above('Add to the bootstrap, or its setting to a layer of yours.', layeredRuntime),
    cluster: above('Add to static_resources.clusters.', authzClusterOf(settings)),
    connection_manager: above(
      'Add to the settings of the HttpConnectionManager of each listener that leads to the service, in place of its own.',
      managerSettings(settings),
    ),
    http_filters: above(
      'Put at the start of http_filters of that connection manager. After them, keep only filters that refuse, limit or count, and the router.',
      authzFilters(settings),
    ),
    virtual_host: Object.values(hostSettings).some(each => each !== undefined)
      ? above('Add to the virtual host.', hostSettings)
      : undefined,
    routes: above(
      'The routes of the virtual host. The cluster `upstream` is your service, `upstream-grpc` the same over HTTP/2. The last route refuses every other path.',
      routes,
    ),
    other_hosts:
      settings.hosts &&
      above('Add to virtual_hosts: a request for a host that account.hosts does not have is answered 404.', otherHosts),
  };
}

/** Read by Envoy (SDS from a file), again whenever the mounted files change. */
function secretFiles({ tls }: EnvoySettings): readonly RenderedFile[] {
  if (tls === undefined) return [];
  const folder = '/etc/envoy-tls';
  const watched = { watched_directory: { path: folder } };
  const file = ({ name }: { name: string }, content: Members): RenderedFile => ({
    name: `${name}.yaml`,
    introduction: ['Envoy reads it (SDS from a file), and again whenever the files change.'],
    content: [{ resources: [typed('transport_sockets.tls.v3.Secret', { name, ...content })] }],
  });
  const certificate = file(tlsFiles.clientCertificate, {
    tls_certificate: {
      certificate_chain: { filename: `${folder}/tls.crt` },
      private_key: { filename: `${folder}/tls.key` },
      ...watched,
    },
  });
  const authority = file(tlsFiles.serverAuthority, {
    validation_context: { trusted_ca: { filename: `${folder}/ca.crt` }, ...watched },
  });
  return tls.showsCertificate ? [certificate, authority] : [authority];
}
