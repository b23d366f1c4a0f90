// The derived files under k8s/. They are committed because kustomize reads nothing above its own root,
// and because users first want a single file to apply.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { renderText } from './kustomize.ts';

const project = new URL('../../../', import.meta.url);

interface DerivedFile {
  readonly path: string;
  make(): Promise<string>;
}

const read = (path: string): Promise<string> => readFile(new URL(path, project), 'utf8');

/** Made after the bootstraps that they contain. */
export const derivedFiles: readonly DerivedFile[] = [
  {
    path: 'k8s/quickstart.yaml',
    make: async () =>
      `# Rendered from overlays/demo: kubectl apply -f k8s/quickstart.yaml\n${await renderText('k8s/overlays/demo')}`,
  },
];

export function readDerivedFile(path: string): Promise<string> {
  return read(path);
}

export async function writeDerivedFiles(): Promise<void> {
  for (const { path, make } of derivedFiles) await writeFile(fileURLToPath(new URL(path, project)), await make());
}
