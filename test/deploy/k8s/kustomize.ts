// Renders the overlays with the real kustomize: finds the program or installs it once.
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Manifest, parseManifests } from './manifest.ts';

export const overlays = ['envoy-sidecar', 'envoy-sidecar-socket', 'service', 'istio', 'envoy-gateway', 'demo'] as const;
export type Overlay = (typeof overlays)[number];

const version = '5.8.2';
const projectDirectory = fileURLToPath(new URL('../../../', import.meta.url));
const cacheDirectory = join(projectDirectory, '.cache', 'kustomize');
const run = promisify(execFile);

let found: Promise<string> | undefined;

/**
 * Path of a kustomize: `$KUSTOMIZE_BIN`, one on the PATH, or version 5.8.2, which the first call builds with Go from the Go module
 * proxy into `.cache/kustomize/`.
 */
export function kustomizeBinary(): Promise<string> {
  found ??= findKustomize();
  return found;
}

async function findKustomize(): Promise<string> {
  const named = process.env.KUSTOMIZE_BIN;
  if (named !== undefined && named !== '') return named;
  const onPath = await run('kustomize', ['version']).then(
    () => true,
    () => false,
  );
  if (onPath) return 'kustomize';
  const directory = join(cacheDirectory, version);
  const binary = join(directory, 'kustomize');
  if (!(await exists(binary))) await install(directory);
  return binary;
}

// Atomic: built in a temporary folder and then renamed. Of two processes that build at once, one wins.
async function install(directory: string): Promise<void> {
  await mkdir(cacheDirectory, { recursive: true });
  const unfinished = await mkdtemp(join(cacheDirectory, `.${version}-`));
  try {
    const env = { ...process.env, GOBIN: unfinished, GOFLAGS: '-trimpath', CGO_ENABLED: '0' };
    await run('go', ['install', `sigs.k8s.io/kustomize/kustomize/v5@v${version}`], { env });
    await rename(unfinished, directory);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    if (await exists(join(directory, 'kustomize'))) return;
    throw new Error(
      `kustomize cannot be had: no $KUSTOMIZE_BIN, none on the PATH, and go could not install ${version}`,
      {
        cause: error,
      },
    );
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
  const { stdout } = await run(await kustomizeBinary(), ['build', join(projectDirectory, folder)], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return stdout;
}

export async function render(folder: string): Promise<Manifest[]> {
  return parseManifests(await renderText(folder));
}
