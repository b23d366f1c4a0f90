// Verifies k8s/ with programs that `npm test` does not need: a real API server with Pod Security, istiod, Envoy Gateway.
//   npx tsx tools/control-planes/main.ts TOOLS_DIR
// TOOLS_DIR/bin: etcd, kube-apiserver, kubectl, pilot-discovery, egctl. TOOLS_DIR/crds: the custom kinds, as YAML (those of
// Istio, of the Gateway API, of Envoy Gateway's chart gateway-crds-helm, and the PodMonitor of the Prometheus operator).
// Needs `npm run build`. Writes a report to standard output; exits with 0 if everything passes.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { overlays, render } from '../../lab/kustomize.ts';
import { type Manifest, parseManifests, podsOf } from '../../lab/manifest.ts';
import type { Row } from '../../test/deploy/k8s/real/requests.ts';
import { verifyStandalone } from '../../test/deploy/k8s/real/standalone.ts';
import { verifyEnvoyGateway } from './envoy-gateway.ts';
import { verifyIstio } from './istio.ts';
import { type KubeApiServer, startKubeApiServer } from './kube-api-server.ts';

const [tools] = process.argv.slice(2);
if (tools === undefined) throw new Error('usage: verify.ts TOOLS_DIR');
const programs = join(tools, 'bin');
const run = promisify(execFile);
let failures = 0;

function report(good: boolean, what: string): void {
  if (!good) failures += 1;
  process.stdout.write(`${good ? 'ok  ' : 'FAIL'}  ${what}\n`);
}

function reportRows(rows: readonly Row[]): void {
  for (const { request, answer, upstream, good } of rows)
    report(good, `  ${request.padEnd(44)} ${answer.padEnd(24)} ${upstream}`);
}

function heading(text: string): void {
  process.stdout.write(`\n${text}\n`);
}

const yamlOf = (manifests: readonly Manifest[]): string => manifests.map(each => stringify(each)).join('---\n');

/** A dry run. Strict, and a warning counts as a refusal: for a Deployment, Pod Security only warns. */
async function verifyApiServer(api: KubeApiServer, name: string, manifests: readonly Manifest[]): Promise<void> {
  const namespace = manifests.filter(({ kind }) => kind === 'Namespace');
  await api.must(['apply', '--server-side', '--force-conflicts', '-f', '-'], yamlOf(namespace));
  const others = manifests.filter(({ kind }) => kind !== 'Namespace');
  const strict = ['--dry-run=server', '--validate=strict', '--warnings-as-errors', '-f', '-'];
  const { ok, output } = await api.kubectl(['apply', ...strict], yamlOf(others));
  report(ok, `${name}: ${others.length} objects${ok ? '' : `\n${output}`}`);
  for (const pod of podsOf(manifests)) {
    const refusal = await refusalOf(api, manifests, pod.name, pod.labels, pod.spec);
    report(refusal === undefined, `${name}: the pod of ${pod.name}${refusal === undefined ? '' : `\n${refusal}`}`);
  }
}

/** Created as a Pod, so that Pod Security enforces. */
async function refusalOf(
  api: KubeApiServer,
  manifests: readonly Manifest[],
  name: string,
  labels: unknown,
  spec: unknown,
): Promise<string | undefined> {
  const namespace = manifests.find(({ kind }) => kind === 'Namespace')?.metadata.name;
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, labels }, spec };
  const { ok, output } = await api.kubectl(
    ['create', '--dry-run=server', '--validate=strict', '-f', '-'],
    stringify(pod),
  );
  return ok ? undefined : output;
}

heading('Our Envoy as each overlay mounts it, with account-authz as it configures it');
for (const overlay of ['envoy-sidecar', 'envoy-sidecar-socket', 'service', 'demo'] as const) {
  process.stdout.write(`${overlay}\n`);
  reportRows(await verifyStandalone(overlay));
}

heading('The overlay service with the certificates of k8s/make-trial-certificates.sh');
const trialSecrets = parseManifests((await run('bash', ['k8s/make-trial-certificates.sh'])).stdout);
const decoded = trialSecrets.map(({ metadata, data = {} }) => [
  metadata.name,
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()])),
]);
reportRows(await verifyStandalone('service', Object.fromEntries(decoded)));

const api = await startKubeApiServer(programs);
try {
  heading('kube-apiserver, namespace restricted');
  await api.must(['apply', '--server-side', '-f', join(tools, 'crds')]);
  await api.must(['wait', '--for=condition=Established', '--timeout=60s', '-f', join(tools, 'crds')]);
  const folders = [
    ...overlays.map(name => `k8s/overlays/${name}`),
    'test/fixtures/k8s-variants/plain',
    'test/fixtures/k8s-variants/everything',
  ];
  for (const folder of folders) await verifyApiServer(api, folder, await render(folder));
  const secretsDryRun = ['apply', '--dry-run=server', '--validate=strict', '-n', 'subscriptions', '-f', '-'];
  const secrets = await api.kubectl(secretsDryRun, yamlOf(trialSecrets));
  report(secrets.ok, `the Secrets of k8s/make-trial-certificates.sh${secrets.ok ? '' : `\n${secrets.output}`}`);
  const manifests = await render('k8s/overlays/envoy-sidecar');
  const [pod] = podsOf(manifests);
  for (const [mistake, change] of [
    ['the network of its host', { hostNetwork: true }],
    ['a folder of its host', { volumes: [...(pod?.spec.volumes ?? []), { name: 'x', hostPath: { path: '/' } }] }],
    ['less time to stop than its preStop takes', { terminationGracePeriodSeconds: 10 }],
  ] as const) {
    const refusal = await refusalOf(api, manifests, 'planted', pod?.labels, { ...pod?.spec, ...change });
    report(refusal !== undefined, `a pod with ${mistake} is refused: ${refusal?.replace(/\s+/g, ' ').slice(0, 200)}`);
  }

  heading('istiod');
  const istio = await verifyIstio(programs, api);
  report(
    istio.filter.statusOnError === 'ServiceUnavailable' && istio.filter.timeout === '0.500s',
    JSON.stringify(istio.filter),
  );
  report(istio.findings.length === 0, `check-config on its dump: ${istio.findings.join(', ') || 'nothing found'}`);
  reportRows(istio.rows);
} finally {
  await api.stop();
}

// What Envoy Gateway has no setting for (docs/deploy/envoy-gateway.md).
const gatewayLacks = ['guard-missing', 'mutation-rules-missing', 'trailers-kept', 'validate-mutations'];
const patch = parseManifests(await readFile('k8s/overlays/envoy-gateway/envoy-patch-policy.yaml', 'utf8'));
for (const [name, others, findings] of [
  ['Envoy Gateway', [], gatewayLacks],
  ['Envoy Gateway with the EnvoyPatchPolicy', patch, []],
] as const) {
  heading(name);
  const gateway = await verifyEnvoyGateway(programs, others);
  report(gateway.refused.length === 0, `every object is accepted ${gateway.refused.join('\n')}`);
  report(
    gateway.filter.statusOnError === 'ServiceUnavailable' && gateway.filter.timeout === '0.500s',
    JSON.stringify(gateway.filter),
  );
  const found = gateway.findings.join(', ');
  report(found === findings.join(', '), `check-config on its dump: ${found || 'nothing found'}`);
  reportRows(gateway.rows);
}

process.stdout.write(`\n${failures === 0 ? 'all as it should be' : `${failures} not as they should be`}\n`);
process.exit(failures === 0 ? 0 : 1);
