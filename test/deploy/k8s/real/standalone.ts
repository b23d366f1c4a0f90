// Our own Envoy as an overlay mounts it, with the real account-authz as the overlay configures it; only paths, addresses and issuer differ.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { defaultEnvoyVersion } from '../../../../lab/envoy.ts';
import { freePorts } from '../../../../lab/free-ports.ts';
import { type Overlay, render } from '../../../../lab/kustomize.ts';
import { at, configMapOf, type Manifest } from '../../../../lab/manifest.ts';
import { type Lab, startLab } from '../../../e2e/lab.ts';
import { layOutFiles, type MountedFiles } from '../mounted-files.ts';
import { startConfiguredEnvoy } from './configured-envoy.ts';
import { type Row, sendAll } from './requests.ts';

/** `secrets` are the operator's; default: generated. */
export async function verifyStandalone(
  overlay: Overlay,
  secrets?: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<Row[]> {
  const manifests = await render(`k8s/overlays/${overlay}`);
  const files = await layOutFiles(manifests, { secrets });
  const lab = await startLabOf(manifests, files);
  const [port = 0, ready = 0, adminPort = 0] = await freePorts(3);
  const bootstrap: unknown = parse(await readFile(String(files.bootstrap), 'utf8'));
  const place = (address: unknown, to: unknown): void => {
    Object.assign(address as object, { address: to });
  };
  const listener = (name: string): unknown => at(bootstrap, 'static_resources', 'listeners', name);
  place(at(bootstrap, 'admin'), tcp(adminPort));
  place(listener('public'), tcp(port));
  place(listener('readiness'), tcp(ready));
  place(endpointOf(bootstrap, 'upstream'), tcp(lab.upstream.port));
  place(endpointOf(bootstrap, 'account-authz'), addressOf(lab.service.address));
  const envoy = await startConfiguredEnvoy({ version: defaultEnvoyVersion, bootstrap, adminPort });
  try {
    return await sendAll(port, lab);
  } finally {
    await envoy.stop();
    await lab.stop();
    await files.remove();
  }
}

/** account-authz with the configuration of an overlay, for tokens of the test's issuer. */
export async function startLabOf(manifests: readonly Manifest[], files: MountedFiles): Promise<Lab> {
  const config = parse(configMapOf(manifests, 'account-authz-config')?.['config.yaml'] ?? '');
  const { issuers: _theirs, listen, admin: _port, ...rest } = config;
  const isSocket = String(listen).startsWith('unix:');
  return startLab({
    ...JSON.parse(JSON.stringify(rest).replaceAll('/etc/', `${files.directory}/`)),
    listen: isSocket ? `unix:${join(files.directory, 'authz.sock')}` : '127.0.0.1:0',
  });
}

function endpointOf(bootstrap: unknown, cluster: string): unknown {
  const found = at(bootstrap, 'static_resources', 'clusters', cluster);
  return at(found, 'load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint');
}

export function tcp(port: number): unknown {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}

export function addressOf(listen: string): unknown {
  if (listen.startsWith('unix:')) return { pipe: { path: listen.slice('unix:'.length) } };
  return tcp(Number(listen.split(':')[1]));
}
