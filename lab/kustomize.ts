// Renders folders of k8s/ with the real kustomize: finds the program or installs it once.
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Manifest, parseManifests } from './manifest.ts';

export const overlays = ['envoy-sidecar', 'envoy-sidecar-socket', 'service', 'istio', 'envoy-gateway', 'demo'] as const;
export type Overlay = (typeof overlays)[number];

const version = '5.8.2';
const project = fileURLToPath(new URL('../', import.meta.url));
const cache = join(project, '.cache', 'kustomize');
const run = promisify(execFile);

let found: Promise<string> | undefined;

/** Path of a kustomize: `$KUSTOMIZE_BIN`, one on the PATH, or version 5.8.2, which the first call builds with Go into `.cache/kustomize/`. */
export function kustomizeBinary(): Promise<string> {
  found ??= findKustomize();
  return found;
}

async function findKustomize(): Promise<string> {
  const named = process.env.KUSTOMIZE_BIN;
  if (named !== undefined && named !== '') return named;
  const onPath = await run('kustomize', ['version']).catch(() => undefined);
  if (onPath !== undefined) return 'kustomize';
  const binary = join(cache, version, 'kustomize');
  if (!(await exists(binary))) await install();
  return binary;
}

// Atomic: built in a temporary folder and then renamed. Of two processes that build at once, one wins.
async function install(): Promise<void> {
  await mkdir(cache, { recursive: true });
  const unfinished = await mkdtemp(join(cache, `.${version}-`));
  try {
    const env = { ...process.env, GOBIN: unfinished, GOFLAGS: '-trimpath', CGO_ENABLED: '0' };
    await run('go', ['install', `sigs.k8s.io/kustomize/kustomize/v5@v${version}`], { env });
    await rename(unfinished, join(cache, version));
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    if (await exists(join(cache, version, 'kustomize'))) return;
    throw new Error(`kustomize: no $KUSTOMIZE_BIN, none on the PATH, and go could not install ${version}`, { cause });
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** The text that `kubectl apply -k` would apply; the folder is relative to the project. */
export async function renderText(folder: string): Promise<string> {
  const options = { maxBuffer: 16 * 1024 * 1024 };
  const { stdout } = await run(await kustomizeBinary(), ['build', join(project, folder)], options);
  return stdout;
}

export async function render(folder: string): Promise<Manifest[]> {
  return parseManifests(await renderText(folder));
}
