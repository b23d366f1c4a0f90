// What a cluster run deploys: each overlay with the run's authentication service, and a Deployment of somebody else with `render kubernetes`.
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseDocument, stringify } from 'yaml';
import { readSnippet } from '../../lab/document.ts';
import { type Authentication, audience } from './authentication.ts';
import { extendMesh, gatewayKustomization, gatewayObjects, gatewayOptions, gatewayPods } from './istio-gateway.ts';
import { kubectl } from './kubectl.ts';

const run = promisify(execFile);
const project = fileURLToPath(new URL('../../', import.meta.url));

export const deploymentNames = [
  'envoy-sidecar',
  'service',
  'quickstart',
  'render kubernetes',
  'envoy-sidecar over TCP',
  'istio',
  'istio gateway',
  'istio waypoint',
] as const;
export type DeploymentName = (typeof deploymentNames)[number];

export interface Deployed {
  readonly name: DeploymentName;
  readonly namespace: string;
  /** The Deployment whose pods hold the app. */
  readonly workload: string;
  readonly labels: string;
  readonly replicas: number;
  /** The Deployment with account-authz. */
  readonly authz: { readonly workload: string; readonly labels: string; readonly replicas: number };
  readonly service: { readonly name: string; readonly port: number };
  /** Where each pod of the workload takes requests, or each pod of the gateway before it: a waypoint takes mutual TLS alone. */
  readonly port: number;
  readonly entryLabels?: string;
  /** The container of Envoy. */
  readonly envoy: string;
}

const sample = { workload: 'subscriptions', labels: 'app.kubernetes.io/name=subscriptions', replicas: 2 };

const authzService = { workload: 'account-authz', labels: 'app.kubernetes.io/name=account-authz', replicas: 2 };

export function describeDeployment(name: DeploymentName): Deployed {
  const service = { name: 'subscriptions', port: 80 };
  const envoy = { port: 8080, envoy: 'envoy' };
  const inSample = { name, namespace: 'subscriptions', ...sample, authz: sample, service, ...envoy };
  switch (name) {
    case 'quickstart': {
      const one = { ...sample, replicas: 1 };
      return { ...inSample, namespace: 'account-authz-demo', ...one, authz: one };
    }
    case 'service':
      return { ...inSample, authz: authzService };
    case 'render kubernetes': {
      const orders = { workload: 'orders', labels: 'app=orders', replicas: 2 };
      return { name, namespace: 'shop', ...orders, authz: orders, service: { name: 'orders', port: 80 }, ...envoy };
    }
    case 'istio':
      return { ...inSample, port: 8000, envoy: 'istio-proxy' };
    case 'istio gateway':
    case 'istio waypoint': {
      const [workload, gateway] = name === 'istio gateway' ? ['edge-istio', 'edge'] : ['waypoint', 'waypoint'];
      const entry = { port: 80, entryLabels: gatewayPods('edge'), service: { name: 'edge-istio', port: 80 } };
      return {
        ...inSample,
        workload,
        labels: gatewayPods(gateway),
        authz: authzService,
        ...entry,
        envoy: 'istio-proxy',
      };
    }
    default:
      return inSample;
  }
}

/** As docs/revocation.md says; its ConfigMap is not in the manifests. */
export function hasRevocationList(name: DeploymentName): boolean {
  return name === 'envoy-sidecar' || name === 'service' || name === 'istio';
}

/** The manifests, as `kubectl kustomize` prints them. */
export async function manifestsOf(name: DeploymentName, authentication: Authentication): Promise<string> {
  if (name === 'quickstart') return readFile(join(project, 'k8s', 'quickstart.yaml'), 'utf8');
  const folder = await mkdtemp(join(tmpdir(), 'cluster-'));
  try {
    await cp(join(project, 'k8s'), join(folder, 'k8s'), { recursive: true });
    return await kubectl(['kustomize', await writeKustomization(name, folder, authentication)]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The folder to apply. */
async function writeKustomization(
  name: DeploymentName,
  folder: string,
  authentication: Authentication,
): Promise<string> {
  const overlays = join(folder, 'k8s', 'overlays');
  const configOf = (overlay: string): Promise<string> => readFile(join(overlays, overlay, 'config.yaml'), 'utf8');
  const files = ['config.yaml', 'ca.pem'];
  const write: Write = async (target, config, kustomization, caFile = '/etc/account-authz/ca.pem') => {
    await mkdir(target, { recursive: true });
    await writeFile(join(target, 'config.yaml'), withIssuer(config, authentication, caFile));
    await writeFile(join(target, 'ca.pem'), authentication.authority);
    if (kustomization !== undefined) await writeFile(join(target, 'kustomization.yaml'), stringify(kustomization));
    return target;
  };
  switch (name) {
    case 'istio gateway':
    case 'istio waypoint': {
      const target = join(overlays, 'istio-gateway');
      const attach = name === 'istio gateway' ? 'gateway' : 'waypoint';
      const listen = 'listen: 0.0.0.0:9191\nlistenInsecure: true';
      await write(target, (await configOf('istio')).replace(/^listen: .*$/m, listen), gatewayKustomization(attach));
      await writeFile(join(target, 'gateway.yaml'), gatewayObjects(attach));
      await product(['render', 'istio', '--config', 'config.yaml', ...gatewayOptions(attach), '--out', '.'], target);
      await extendMesh(await readFile(join(target, 'mesh-config.yaml'), 'utf8'));
      return target;
    }
    case 'render kubernetes':
      // Without listen, which is then the socket.
      return writeOrders(
        join(folder, 'orders'),
        write,
        (await configOf('envoy-sidecar')).replace(/^listen: .*\n/m, ''),
      );
    case 'envoy-sidecar over TCP': {
      const target = join(overlays, 'envoy-sidecar');
      const config = (await configOf('envoy-sidecar')).replace(/^listen: .*$/m, 'listen: 127.0.0.1:9191');
      await write(target, config);
      await product(['render', 'kubernetes', '--config', 'config.yaml', '--out', 'authz'], target);
      await cp(join(target, 'ca.pem'), join(target, 'authz', 'ca.pem'));
      const component = parseDocument(await readFile(join(target, 'authz', 'kustomization.yaml'), 'utf8'));
      component.setIn(['configMapGenerator', 0, 'files'], files);
      await writeFile(join(target, 'authz', 'kustomization.yaml'), component.toString());
      const kustomization = parseDocument(await readFile(join(target, 'kustomization.yaml'), 'utf8'));
      kustomization.set('components', ['authz']);
      kustomization.delete('configMapGenerator');
      kustomization.deleteIn(['patches', 1]); // the folder of the socket
      await writeFile(join(target, 'kustomization.yaml'), kustomization.toString());
      return target;
    }
    default: {
      const target = join(overlays, name);
      const text = await readFile(join(target, 'kustomization.yaml'), 'utf8');
      const kustomization = parseDocument(text);
      kustomization.setIn(['configMapGenerator', 0, 'files'], files);
      let config = await configOf(name);
      // As docs/deploy says for a change without a rollout.
      if (name === 'envoy-sidecar')
        kustomization.setIn(['configMapGenerator', 0, 'options'], { disableNameSuffixHash: true });
      if (hasRevocationList(name)) {
        kustomization.addIn(['patches'], kustomization.createNode(revocationMount(name)));
        config += 'revocation: { file: /etc/account-authz-revocation/revoked.jsonl }\n';
      }
      if (name === 'istio') await extendMesh(await readFile(join(target, 'mesh-config.yaml'), 'utf8'));
      if (name === 'istio') kustomization.addIn(['patches'], kustomization.createNode(unrestricted));
      await writeFile(join(target, 'kustomization.yaml'), kustomization.toString());
      return write(target, config);
    }
  }
}

/** The patch of docs/revocation.md. */
function revocationMount(name: DeploymentName): object {
  const text = readSnippet('docs/revocation.md', 'yaml', 'labelSelector: account-authz/sidecar=true');
  const forService = text
    .replace('account-authz/sidecar=true', authzService.labels)
    .replace('initContainers:', 'containers:');
  return parse(name === 'service' ? forService : text).patches[0];
}

/** As docs/deploy/istio.md says for a mesh without its CNI agent. */
const unrestricted = {
  target: { version: 'v1', kind: 'Namespace' },
  patch: '- { op: replace, path: /metadata/labels/pod-security.kubernetes.io~1enforce, value: privileged }',
};

type Write = (target: string, config: string, kustomization?: object, caFile?: string) => Promise<string>;

const orders = `
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: { pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: orders, labels: { app: orders } }
spec:
  replicas: 2
  selector: { matchLabels: { app: orders } }
  strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }
  template:
    metadata: { labels: { app: orders } }
    spec:
      containers:
        - name: app
          image: ghcr.io/account-authz/account-authz-demo:0.1.0
          args: [demo/serve.ts, upstream, --listen, "127.0.0.1:9000", --health, "0.0.0.0:8001"]
          ports: [{ name: health, containerPort: 8001 }]
          readinessProbe: { httpGet: { path: /healthz, port: health }, periodSeconds: 5 }
          lifecycle: { preStop: { sleep: { seconds: 15 } } }
          securityContext:
            runAsNonRoot: true
            allowPrivilegeEscalation: false
            capabilities: { drop: [ALL] }
            seccompProfile: { type: RuntimeDefault }
---
apiVersion: v1
kind: Service
metadata: { name: orders, labels: { app: orders } }
spec: { selector: { app: orders }, ports: [{ port: 80, targetPort: 9000 }] }
`;

/** The steps of "Your own workload" in docs/deploy/README.md, for an app that listens on 127.0.0.1:9000. */
async function writeOrders(target: string, write: Write, config: string): Promise<string> {
  const mount = readSnippet('docs/deploy/README.md', 'yaml', 'name: account-authz-files, files');
  const kustomization = { namespace: 'shop', resources: ['orders.yaml'], components: ['authz'] };
  await write(target, config, { ...kustomization, ...parse(mount) }, '/etc/account-authz-files/ca.pem');
  await writeFile(join(target, 'orders.yaml'), orders);
  const options = ['--upstream', '127.0.0.1:9000', '--selector', 'app=orders', '--out', 'authz'];
  await product(['render', 'kubernetes', '--config', 'config.yaml', ...options], target);
  return target;
}

async function product(args: readonly string[], cwd: string): Promise<void> {
  await run(process.execPath, [join(project, 'dist', 'main.js'), ...args], { cwd });
}

function withIssuer(text: string, { issuer, jwksUrl }: Authentication, caFile: string): string {
  const config = parseDocument(text);
  config.setIn(['issuers', 0], { issuer, audiences: [audience], jwksUrl, caFile });
  return config.toString();
}
