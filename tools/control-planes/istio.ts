// Runs the output of the real istiod for the overlay istio in a real Envoy, with the real account-authz. Programs: pilot-discovery, kubectl.
// Not covered: injection, mutual TLS of the mesh, Istio's own filters.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { defaultEnvoyVersion } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { render } from '../../lab/kustomize.ts';
import { at, ofKind } from '../../lab/manifest.ts';
import { layOutFiles } from '../../test/deploy/k8s/mounted-files.ts';
import { startConfiguredEnvoy } from '../../test/deploy/k8s/real/configured-envoy.ts';
import { type Row, sendAll } from '../../test/deploy/k8s/real/requests.ts';
import { startLabOf, tcp } from '../../test/deploy/k8s/real/standalone.ts';
import type { KubeApiServer } from './kube-api-server.ts';
import { resourcesOf, rulesBrokenBy, staticBootstrap } from './xds-dump.ts';

const meshConfig = new URL('../../k8s/overlays/istio/mesh-config.yaml', import.meta.url);

export interface IstioResult {
  /** The asserted parts of the generated filter. */
  readonly filter: Readonly<Record<string, unknown>>;
  /** The rules of `check-config --envoy` that the generated configuration breaks. */
  readonly findings: readonly string[];
  readonly rows: readonly Row[];
}

/** Of the pod. Another address than that of account-authz, which would be a service of the pod. */
const podIp = '10.244.0.7';

export async function verifyIstio(programs: string, api: KubeApiServer): Promise<IstioResult> {
  const manifests = await render('k8s/overlays/istio');
  const dump = await generatedFor(programs, api, manifests);
  const { listeners } = resourcesOf(dump);
  const inbound = listeners.find(({ name }) => name === 'virtualInbound');
  const chains = (inbound?.filterChains ?? []) as { name?: string; filters: unknown }[];
  const chain = chains.find(({ name }) => name === '0.0.0.0_8000');
  if (chain === undefined) throw new Error(`istiod made no chain for port 8000: ${chains.map(({ name }) => name)}`);
  const manager = at(chain.filters, 'envoy.filters.network.http_connection_manager', 'typedConfig');
  const filter = at(manager, 'httpFilters', 'envoy.filters.http.ext_authz', 'typedConfig');
  if (filter === undefined) throw new Error('istiod made no ext_authz filter');

  const files = await layOutFiles(manifests);
  const lab = await startLabOf(manifests, files);
  const [port = 0, adminPort = 0] = await freePorts(2);
  const authz = Number(lab.service.address.split(':')[1]);
  const endpoints = { 'outbound|9191||account-authz.internal': authz, 'inbound|8000||': lab.upstream.port };
  const bootstrap = staticBootstrap(dump, chain.filters, { port, adminPort, destinationPort: 8000, endpoints });
  const envoy = await startConfiguredEnvoy({ version: defaultEnvoyVersion, bootstrap, adminPort });
  try {
    const rows = await sendAll(port, lab);
    const findings = await rulesBrokenBy(dump, 'k8s/overlays/istio/config.yaml');
    return { filter: { ...summaryOf(filter), ...strictnessOf(manager) }, findings, rows };
  } finally {
    await envoy.stop();
    await lab.stop();
    await files.remove();
  }
}

function summaryOf(filter: unknown): Record<string, unknown> {
  return {
    timeout: at(filter, 'grpcService', 'timeout'),
    statusOnError: at(filter, 'statusOnError', 'code'),
    failureModeAllow: at(filter, 'failureModeAllow') ?? false,
    retries: at(filter, 'grpcService', 'retryPolicy', 'numRetries'),
    validateMutations: at(filter, 'validateMutations'),
    encodeRawHeaders: at(filter, 'encodeRawHeaders'),
  };
}

function strictnessOf(manager: unknown): Record<string, unknown> {
  return {
    mergeSlashes: at(manager, 'mergeSlashes'),
    normalizePath: at(manager, 'normalizePath'),
    escapedSlashes: at(manager, 'pathWithEscapedSlashesAction'),
    underscores: at(manager, 'commonHttpProtocolOptions', 'headersWithUnderscoresAction'),
    early: at(manager, 'earlyHeaderMutationExtensions', 0, 'name') !== undefined,
  };
}

/** Applies the overlay, registers a pod of it and an Envoy that connects as its sidecar, and returns the configuration that istiod sends. */
async function generatedFor(
  programs: string,
  api: KubeApiServer,
  manifests: Awaited<ReturnType<typeof render>>,
): Promise<unknown> {
  const [deployment] = ofKind(manifests, 'Deployment');
  const template = at(deployment?.spec, 'template') as
    | { metadata: { labels?: Record<string, string> }; spec: object }
    | undefined;
  const namespace = 'subscriptions';
  const name = 'istio-probe';
  for (const each of ['istio-system', namespace]) await api.kubectl(['create', 'namespace', each]);
  await api.must(
    ['apply', '--server-side', '--force-conflicts', '-f', '-'],
    manifests.map(each => stringify(each)).join('---\n'),
  );
  const labels = { ...template?.metadata.labels, 'security.istio.io/tlsMode': 'istio' };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels },
    spec: { ...template?.spec, nodeName: 'n1' },
  };
  await api.must(['apply', '-f', '-'], stringify(pod));
  const status = {
    phase: 'Running',
    podIP: podIp,
    podIPs: [{ ip: podIp }],
    hostIP: '127.0.0.1',
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  const patch = ['patch', 'pod', name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
  await api.must(['-n', namespace, ...patch]);

  const [http = 0, grpc = 0, monitoring = 0, adminPort = 0] = await freePorts(4);
  const directory = await mkdtemp(join(tmpdir(), 'istiod-'));
  const mesh = join(directory, 'mesh.yaml');
  await writeFile(mesh, stringify(parse(await readFile(meshConfig, 'utf8'))));
  const istiod = spawn(
    join(programs, 'pilot-discovery'),
    [
      ...['discovery', '--kubeconfig', api.kubeconfig, '--meshConfig', mesh],
      ...['--httpAddr', `127.0.0.1:${http}`, '--httpsAddr', '', '--grpcAddr', `127.0.0.1:${grpc}`],
      ...['--secureGRPCAddr', '', '--monitoringAddr', `127.0.0.1:${monitoring}`],
    ],
    {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        POD_NAMESPACE: 'istio-system',
        POD_NAME: 'istiod',
        PILOT_CERT_PROVIDER: 'none',
        ENABLE_CA_SERVER: 'false',
        VALIDATION_WEBHOOK_CONFIG_NAME: '',
        INJECTION_WEBHOOK_CONFIG_NAME: '',
      },
    },
  );
  process.once('exit', () => istiod.kill('SIGKILL'));
  let log = '';
  for (const stream of [istiod.stdout, istiod.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
  }
  const ended = once(istiod, 'exit');
  const readyAt = performance.now() + 60_000;
  while (
    !(await fetch(`http://127.0.0.1:${http}/ready`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (performance.now() > readyAt) throw new Error(`istiod is not ready:\n${log.slice(-2000)}`);
    await delay(200);
  }
  // It rejects Istio's own filters; only its connection matters.
  const sidecar = await startConfiguredEnvoy({
    version: defaultEnvoyVersion,
    bootstrap: sidecarBootstrap({ name, namespace, labels, grpc, adminPort }),
    adminPort,
  });
  try {
    const deadline = performance.now() + 30_000;
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${http}/debug/config_dump?proxyID=${name}.${namespace}`);
      const text = await answer.text();
      if (answer.ok && text.includes('virtualInbound')) {
        const refused = log.split('\n').filter(line => /deny configs|failed to process|unknown field/i.test(line));
        if (refused.length > 0) throw new Error(`istiod refuses a part:\n${refused.join('\n')}`);
        return JSON.parse(text);
      }
      if (performance.now() > deadline) throw new Error(`istiod made nothing for the pod:\n${log.slice(-2000)}`);
      await delay(250);
    }
  } finally {
    await sidecar.stop();
    istiod.kill('SIGTERM');
    await Promise.race([ended, delay(10_000).then(() => istiod.kill('SIGKILL'))]);
    await rm(directory, { recursive: true, force: true });
  }
}

function sidecarBootstrap(options: {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly grpc: number;
  readonly adminPort: number;
}): unknown {
  const { name, namespace, labels, grpc, adminPort } = options;
  const ads = { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '5s' };
  return {
    node: {
      id: `sidecar~${podIp}~${name}.${namespace}~${namespace}.svc.cluster.local`,
      cluster: `subscriptions.${namespace}`,
      metadata: {
        NAMESPACE: namespace,
        NAME: name,
        LABELS: labels,
        CLUSTER_ID: 'Kubernetes',
        INSTANCE_IPS: podIp,
        INTERCEPTION_MODE: 'REDIRECT',
        SERVICE_ACCOUNT: 'subscriptions',
      },
    },
    admin: { address: tcp(adminPort) },
    dynamic_resources: {
      lds_config: ads,
      cds_config: ads,
      ads_config: {
        api_type: 'GRPC',
        transport_api_version: 'V3',
        grpc_services: [{ envoy_grpc: { cluster_name: 'xds' } }],
      },
    },
    static_resources: {
      clusters: [
        {
          name: 'xds',
          type: 'STATIC',
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          load_assignment: {
            cluster_name: 'xds',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: tcp(grpc) } }] }],
          },
        },
      ],
    },
  };
}
