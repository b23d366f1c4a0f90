// Renders folders of k8s/ with the real kustomize.
import { fileURLToPath } from 'node:url';
import { type Manifest, parseManifests } from './manifest.ts';
import { runProgram } from './programs.ts';

export const overlays = ['envoy-sidecar', 'envoy-sidecar-socket', 'service', 'istio', 'envoy-gateway', 'demo'] as const;
export type Overlay = (typeof overlays)[number];

/** The text that `kubectl apply -k` would apply; the folder is relative to the project. */
export async function renderText(folder: string): Promise<string> {
  const { good, output } = await runProgram('kustomize', [
    'build',
    fileURLToPath(new URL(`../${folder}`, import.meta.url)),
  ]);
  if (!good) throw new Error(output);
  return output;
}

export async function render(folder: string): Promise<Manifest[]> {
  return parseManifests(await renderText(folder));
}
