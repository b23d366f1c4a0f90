// The targets of `render`: the options that each takes, what it refuses, and its files.
import { dirname } from 'node:path';
import { isLoopback } from '../../text/listen-address.ts';
import { printable } from '../../text/printable.ts';
import { tlsFiles } from '../envoy-settings/authz-cluster.ts';
import { typed } from '../envoy-settings/extension.ts';
import {
  defaultOptions,
  type EnvoySettings,
  isInPod,
  type RenderOptions,
  type RenderSettings,
} from '../envoy-settings/settings.ts';
import type { Members } from '../envoy-settings/tree.ts';
import { bootstrapFile } from './bootstrap.ts';
import { type DataPlane, dataPlanes } from './capabilities.ts';
import { podSocket } from './default-listen.ts';
import { envoyGatewayFiles, envoyGatewayProblem } from './envoy-gateway.ts';
import { partsFile } from './envoy-parts.ts';
import { gatewayApiFiles, gatewayApiProblem } from './gateway-api.ts';
import { istioFiles, istioProblem } from './istio.ts';
import { kgatewayFiles, kgatewayProblem } from './kgateway.ts';
import { isOwnFolder, kubernetesFiles } from './kubernetes.ts';
import type { OptionName } from './options.ts';
import type { RenderedFile, RenderedFiles } from './rendered-files.ts';

export interface Target {
  readonly summary: string;
  /** The options that it takes. */
  readonly options: readonly OptionName[];
  readonly dataPlane: (options: RenderOptions) => DataPlane;
  /** Why it cannot be: a sentence about a key of the configuration or an option. */
  readonly problem?: (settings: RenderSettings) => string | undefined;
  /** What does not fit, although the output can be used: a sentence. */
  readonly warning?: (settings: RenderSettings) => string | undefined;
  /** Envoy itself takes its first file, which is no stream of documents. */
  readonly isForEnvoy?: boolean;
  readonly defaults?: Partial<RenderOptions>;
  /** `listen` where the configuration does not say it; that of the configuration otherwise. */
  readonly listen?: string;
  readonly files: (settings: RenderSettings) => RenderedFiles;
}

const corsOptions = ['cors-origin', 'cors-header', 'cors-expose'] as const;
const listenOptions = ['listen', 'readiness-port', 'envoy-admin-port'] as const;
const limitOptions = ['request-timeout', 'idle-timeout', 'underscores'] as const;
const traffic = ['upstream', 'upstream-protocol', 'trusted-hops', 'upgrade', 'max-headers-kib', 'grpc-web'] as const;
const envoyOptions = [...traffic, ...corsOptions, ...limitOptions, 'shadow'] as const;
/** Of account-authz where it is a Service. */
const serviceOptions = ['authz-host', 'authz-namespace'] as const;
const workloadOptions = ['name', 'namespace', 'selector'] as const;
const serviceDefaults: Partial<RenderOptions> = {
  name: 'subscriptions',
  upstream: { kind: 'tcp', host: 'subscriptions', port: 80 },
};
const unusedHostWarning = ({ authz, tls, authzHost, authzNamespace }: RenderSettings): string | undefined => {
  const isUsed = tls !== undefined || (authz.kind === 'tcp' && authz.host === authzHost);
  const inPod = authzNamespace !== undefined && isInPod(authz) ? 'namespace' : undefined;
  const unused = authzHost !== defaultOptions.authzHost && !isUsed ? 'host' : inPod;
  return unused && `--authz-${unused} is not used: listen of the configuration says where Envoy asks`;
};
const inPodWarning = ({ authz }: RenderSettings): string | undefined =>
  isInPod(authz)
    ? 'listen of the configuration is loopback or a socket: the account-authz that the gateway asks must listen on 0.0.0.0, with tls'
    : undefined;

export const targets: Readonly<Record<string, Target>> = {
  envoy: {
    summary: 'a whole bootstrap',
    dataPlane: () => dataPlanes.envoy,
    options: [...listenOptions, ...envoyOptions, 'authz-host'],
    isForEnvoy: true,
    warning: unusedHostWarning,
    files: settings => [bootstrapFile(settings), ...secretFiles(settings)],
  },
  'envoy-parts': {
    summary: 'the parts for your own bootstrap',
    dataPlane: () => dataPlanes.envoy,
    options: [...envoyOptions, 'authz-host'],
    isForEnvoy: true,
    warning: settings =>
      settings.upstream === defaultOptions.upstream && !(settings.isShadow && settings.upstreams.length > 0)
        ? unusedHostWarning(settings)
        : '--upstream without a path, or with --shadow, is not printed: the address of your service is in your bootstrap',
    files: settings => [partsFile(settings), ...secretFiles(settings)],
  },
  kubernetes: {
    summary: 'a kustomize component with both sidecars, for your own Deployments',
    dataPlane: () => dataPlanes.envoy,
    options: [...listenOptions, ...envoyOptions, ...workloadOptions, 'image', 'envoy-image'],
    defaults: { selector: { 'account-authz/sidecar': 'true' } },
    listen: podSocket,
    problem({ listen, authz, authzAdmin, tls }) {
      if (isLoopback(listen.host))
        return `--listen must not be loopback, where neither the Service nor the probes of the kubelet reach Envoy: write 0.0.0.0:${listen.port}`;
      if (!isInPod(authz) || tls !== undefined)
        return 'listen of the configuration must be a loopback port or a Unix socket, without tls (Envoy runs in the same pod)';
      if (authz.kind === 'unix' && !isOwnFolder(dirname(authz.path)))
        return 'listen of the configuration must be a socket in a folder of its own, such as unix:/run/account-authz/authz.sock';
      return isLoopback(authzAdmin.host)
        ? `admin of the configuration must not be loopback, where the probes of the kubelet cannot reach it: write 0.0.0.0:${authzAdmin.port}`
        : undefined;
    },
    warning({ namedFiles, cacheDirectory }) {
      const folder = cacheDirectory === undefined ? [] : [`${cacheDirectory} (writable)`];
      const missing = [...namedFiles, ...folder].map(each => printable(each, 256));
      return missing.length === 0
        ? undefined
        : `the component mounts config.yaml alone: mount in the container account-authz too: ${missing.join(', ')}`;
    },
    files: kubernetesFiles,
  },
  istio: {
    summary: 'policies, an EnvoyFilter and the extension provider, for a workload, gateway or waypoint',
    dataPlane: ({ attach }) => (attach === 'waypoint' ? dataPlanes.waypoint : dataPlanes.istio),
    options: [
      'attach',
      'upstream',
      'idle-timeout',
      'underscores',
      'max-headers-kib',
      'shadow',
      ...serviceOptions,
      ...corsOptions,
      ...workloadOptions,
    ] as const,
    problem: istioProblem,
    warning: settings =>
      settings.attach === 'sidecar' && !isLoopback(settings.upstream.host)
        ? '--upstream is used for its port alone, that of the container: a sidecar leads to its own pod'
        : unusedHostWarning(settings),
    files: istioFiles,
  },
  'envoy-gateway': {
    summary: 'policies for your own HTTPRoute, and the route',
    dataPlane: () => dataPlanes.envoyGateway,
    options: [
      'upstream',
      ...serviceOptions,
      'trusted-hops',
      'gateway',
      'merge',
      ...corsOptions,
      ...limitOptions,
      ...workloadOptions,
    ],
    defaults: serviceDefaults,
    warning: inPodWarning,
    problem: envoyGatewayProblem,
    files: envoyGatewayFiles,
  },
  'gateway-api': {
    summary: 'an HTTPRoute with the filter ExternalAuth, for Cilium and agentgateway',
    dataPlane: () => dataPlanes.gatewayApi,
    options: ['upstream', ...serviceOptions, 'gateway', 'request-timeout', ...workloadOptions],
    defaults: serviceDefaults,
    warning: settings =>
      settings.tls?.showsCertificate === true
        ? 'tls.clientCaFile of the configuration: the gateway must show a certificate (spec.tls.backend of the Gateway), which Cilium cannot'
        : inPodWarning(settings),
    problem: gatewayApiProblem,
    files: gatewayApiFiles,
  },
  kgateway: {
    summary: 'GatewayExtension and policies for a Gateway and HTTPRoute of kgateway',
    dataPlane: () => dataPlanes.kgateway,
    options: [
      'upstream',
      ...serviceOptions,
      'trusted-hops',
      'gateway',
      'request-timeout',
      'idle-timeout',
      'upgrade',
      'max-headers-kib',
      ...corsOptions,
      ...workloadOptions,
    ],
    defaults: serviceDefaults,
    warning: settings =>
      settings.tls?.showsCertificate === true
        ? 'tls.clientCaFile of the configuration: show a certificate with a BackendConfigPolicy (spec.tls.secretRef) of the Service'
        : inPodWarning(settings),
    problem: kgatewayProblem,
    files: kgatewayFiles,
  },
};

/** The files by which Envoy gets its certificates and authorities (SDS from a file). */
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
