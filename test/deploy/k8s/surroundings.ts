// The surroundings of an overlay, the same for all of them: the Secrets of the trial script, the mesh configuration for Istio and
// the envoy.yaml of this repository.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { configSchema } from '../../../src/config/schema.ts';
import { at, type Secrets, type Surroundings } from './facts.ts';
import { parseManifests } from './manifest.ts';

const project = new URL('../../../', import.meta.url);
const run = promisify(execFile);

export const meshConfigText = readFileSync(new URL('k8s/overlays/istio/mesh-config.yaml', project), 'utf8');

export async function loadSurroundings(): Promise<Surroundings> {
  const load = async (path: string): Promise<unknown> => parse(await readFile(new URL(path, project), 'utf8'));
  const alerts = await readFile(new URL('k8s/monitoring/alerts.yaml', project), 'utf8');
  return {
    secrets: await trialSecrets(),
    meshConfig: parse(meshConfigText),
    envoy: await load('envoy.yaml'),
    tlsCluster: at(await load('k8s/components/mutual-tls/envoy.yaml'), 'static_resources', 'clusters', 'account-authz'),
    jobs: Array.from(alerts.matchAll(/job=~"([^"]+)"/g), ([, job]) => new RegExp(`^(?:${job})$`)),
    sample: configSchema.parse(await load('demo/compose/account-authz/config.yaml')),
  };
}

async function trialSecrets(): Promise<Secrets> {
  const { stdout } = await run('bash', [fileURLToPath(new URL('k8s/make-trial-certificates.sh', project))]);
  const decoded = (data: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]));
  return Object.fromEntries(parseManifests(stdout).map(({ metadata, data }) => [metadata.name, decoded(data)]));
}
