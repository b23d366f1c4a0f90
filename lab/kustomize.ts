// Renders folders of k8s/ with the real kustomize.
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Manifest, parseManifests } from './manifest.ts';
import { runProgram } from './programs.ts';

export const overlays = ['envoy-sidecar', 'service', 'istio', 'envoy-gateway', 'demo'] as const;
export type Overlay = (typeof overlays)[number];

const project = fileURLToPath(new URL('../', import.meta.url));

/** The text that `kubectl apply -k` would apply; a relative folder is one of the project. */
export async function renderText(folder: string): Promise<string> {
  const { good, output } = await runProgram('kustomize', ['build', resolve(project, folder)]);
  if (!good) throw new Error(output);
  return output;
}

export async function render(folder: string): Promise<Manifest[]> {
  return parseManifests(await renderText(folder));
}
