// Runs the output of the real Envoy Gateway for the overlay envoy-gateway in a real Envoy, with the real account-authz and mutual TLS.
// Program: egctl. Not covered: the gateway's controller, its deployment of Envoy, its delivery of certificates.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { freePorts } from '../../lab/free-ports.ts';
import { render } from '../../lab/kustomize.ts';
import type { Manifest } from '../../lab/manifest.ts';
import { at } from '../../lab/manifest.ts';
import { layOutFiles } from '../../test/deploy/k8s/mounted-files.ts';
import { startConfiguredEnvoy } from '../../test/deploy/k8s/real/configured-envoy.ts';
import { type Row, sendAll } from '../../test/deploy/k8s/real/requests.ts';
import { startLabOf } from '../../test/deploy/k8s/real/standalone.ts';
import { resourcesOf, rulesBrokenBy, staticBootstrap } from './xds-dump.ts';

/** The Envoy release line of Envoy Gateway 1.9. */
const envoyVersion = '1.39.3';
const run = promisify(execFile);

export interface EnvoyGatewayResult {
  /** Conditions that are not True; empty if everything is accepted. */
  readonly refused: readonly string[];
  readonly filter: Readonly<Record<string, unknown>>;
  /** The rules of `check-config --envoy` that the generated configuration breaks. */
  readonly findings: readonly string[];
  readonly rows: readonly Row[];
}

/** `others` are objects beside those of the overlay. */
export async function verifyEnvoyGateway(
  programs: string,
  others: readonly Manifest[] = [],
): Promise<EnvoyGatewayResult> {
  const manifests = await render('k8s/overlays/envoy-gateway');
  const files = await layOutFiles(manifests);
  const tls = join(files.directory, 'envoy-tls');
  const dump = await translate(programs, [
    ...[...manifests, ...others].map(withAddress),
    await secret('account-authz-tls', join(files.directory, 'account-authz', 'tls')),
    await secret('account-authz-client-tls', tls),
  ]);
  const filters = filtersOf(dump);
  const manager = at(filters, 'envoy.filters.network.http_connection_manager', 'typedConfig');
  const name = 'envoy.filters.http.ext_authz/securitypolicy/subscriptions/subscriptions';
  const filter = at(manager, 'httpFilters', name, 'typedConfig');

  const lab = await startLabOf(manifests, files);
  const [port = 0, adminPort = 0] = await freePorts(2);
  const bootstrap = staticBootstrap(dump, filters, {
    port,
    adminPort,
    endpoints: {
      'securitypolicy/subscriptions/subscriptions/extauth/0': Number(lab.service.address.split(':')[1]),
      'httproute/subscriptions/subscriptions/rule/0': lab.upstream.port,
    },
    secrets: {
      'subscriptions/account-authz-client-tls': { chain: join(tls, 'tls.crt'), key: join(tls, 'tls.key') },
      'account-authz/subscriptions-ca': { ca: join(tls, 'ca.crt') },
    },
  });
  const envoy = await startConfiguredEnvoy({ version: envoyVersion, bootstrap, adminPort });
  try {
    const findings = await rulesBrokenBy(dump, 'k8s/overlays/envoy-gateway/config.yaml');
    return { refused: refusedOf(dump), filter: summaryOf(manager, filter), findings, rows: await sendAll(port, lab) };
  } finally {
    await envoy.stop();
    await lab.stop();
    await files.remove();
  }
}

/** The network filters of the listener of the overlay. */
export function filtersOf(dump: unknown): unknown {
  const listener = resourcesOf(dump).listeners.find(({ name }) => name === 'subscriptions/subscriptions/http');
  const filters = at(listener, 'defaultFilterChain', 'filters');
  if (filters === undefined) throw new Error('Envoy Gateway made no listener');
  return filters;
}

/** The objects with their status, and what Envoy would be told. */
export async function translate(programs: string, manifests: readonly Manifest[]): Promise<unknown> {
  const directory = await mkdtemp(join(tmpdir(), 'egctl-'));
  try {
    const file = join(directory, 'manifests.yaml');
    await writeFile(file, manifests.map(each => stringify(each)).join('---\n'));
    const what = ['--from', 'gateway-api', '--to', 'gateway-api,xds', '--type', 'all', '--output', 'json'];
    const { stdout } = await run(
      join(programs, 'egctl'),
      ['experimental', 'translate', ...what, '--file', file, '-n', 'subscriptions'],
      { maxBuffer: 1 << 26 },
    );
    return JSON.parse(stdout);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** egctl ignores EndpointSlices and uses the address of the Service, which the API server would assign, except to a headless one. */
export function withAddress(manifest: Manifest): Manifest {
  return manifest.kind === 'Service'
    ? { ...manifest, spec: { ...(manifest.spec as object), clusterIP: '10.0.0.9' } }
    : manifest;
}

async function secret(name: string, folder: string): Promise<Manifest> {
  const keys = ['tls.crt', 'tls.key', 'ca.crt'];
  const data = await Promise.all(keys.map(async key => [key, (await readFile(join(folder, key))).toString('base64')]));
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'subscriptions' },
    data: Object.fromEntries(data),
  };
}

export function refusedOf(dump: unknown): string[] {
  const refused: string[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    if (
      'type' in node &&
      'status' in node &&
      'reason' in node &&
      node.status !== 'True' &&
      node.reason !== 'NoConflicts'
    )
      refused.push(JSON.stringify(node));
    for (const value of Object.values(node)) visit(value);
  };
  visit(dump);
  return refused;
}

function summaryOf(manager: unknown, filter: unknown): Record<string, unknown> {
  const patterns = at(filter, 'allowedHeaders', 'patterns') as { exact: string }[] | undefined;
  return {
    timeout: at(filter, 'grpcService', 'timeout'),
    statusOnError: at(filter, 'statusOnError', 'code'),
    failureModeAllow: at(filter, 'failureModeAllow') ?? false,
    retries: at(filter, 'grpcService', 'retryPolicy', 'numRetries'),
    shown: patterns?.map(({ exact }) => exact).join(' '),
    mergeSlashes: at(manager, 'mergeSlashes'),
    normalizePath: at(manager, 'normalizePath'),
    escapedSlashes: at(manager, 'pathWithEscapedSlashesAction'),
    underscores: at(manager, 'commonHttpProtocolOptions', 'headersWithUnderscoresAction'),
  };
}
